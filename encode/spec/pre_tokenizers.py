"""Pre-tokenizers, by HuggingFace's names."""

from typing import Literal

from msgspec import Struct

from tokenweir.encode.spec.values import Character, Pattern

SplitBehavior = Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


class Split(Struct, frozen=True, tag="Split", kw_only=True):
    """A pre-tokenizer that splits at the matches of a pattern.

    Attributes:
        pattern: The pattern to search for.
        behavior: The treatment of a match. `Isolated`: it is a piece; `Removed`: it is dropped; `MergedWithPrevious` and
            `MergedWithNext`: it is joined to the text before or after it; `Contiguous`: adjacent matches are one piece.
        invert: Whether matches and the text between them change places.
        dialect: The regex engine that defines the pattern's meaning. The format decides it: Oniguruma for
            tokenizer.json, fancy-regex for a tiktoken rank file.
        unmatched: Text between matches is kept as pieces (HuggingFace) or dropped (tiktoken).

    """

    pattern: Pattern
    behavior: SplitBehavior
    invert: bool = False
    dialect: Literal["oniguruma", "fancy-regex"] = "oniguruma"
    unmatched: Literal["keep", "drop"] = "keep"


class ByteLevel(Struct, frozen=True, tag="ByteLevel"):
    """The component of byte-level models: each byte of text is spelled as one of GPT-2's 256 printable characters.

    It serves as pre-tokenizer, post-processor and decoder.

    Attributes:
        add_prefix_space: As a pre-tokenizer, put a space before each text that does not begin with one; with earlier
            pre-tokenizers in a sequence, before each of their pieces.
        trim_offsets: As a post-processor, remove white space from the offsets of tokens.
        use_regex: As a pre-tokenizer, split by GPT-2's pattern.

    """

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True


class Metaspace(Struct, frozen=True, tag="Metaspace", kw_only=True):
    """A pre-tokenizer that replaces spaces by `replacement` and cuts before it.

    As a decoder, it replaces each `replacement` by a space; those in the first token are removed instead, unless
    `prepend_scheme` is `never`.

    Attributes:
        replacement: One character.
        prepend_scheme: The pieces before which `replacement` is put if they lack it: each (`always`), the text's first
            one (`first`), or no piece (`never`).
        split: Whether to cut before each `replacement`; not used by a decoder.
        add_prefix_space: A key of old files; false raises `TokenizerFileError` unless `prepend_scheme` is `never`.
        str_rep: A key of old files, normally equal to `replacement`; it is neither used nor checked.

    """

    replacement: Character = "\u2581"
    prepend_scheme: Literal["always", "first", "never"] = "always"
    split: bool = True
    add_prefix_space: bool | None = None
    str_rep: str | None = None


class Digits(Struct, frozen=True, tag="Digits"):
    """A pre-tokenizer that splits numeric characters from others; with `individual_digits`, also from each other."""

    individual_digits: bool = False


class Punctuation(Struct, frozen=True, tag="Punctuation"):
    """A pre-tokenizer that splits at punctuation characters; `behavior` is their treatment, as for `Split`."""

    behavior: SplitBehavior = "Isolated"


class Whitespace(Struct, frozen=True, tag="Whitespace"):
    r"""A pre-tokenizer whose pieces are the matches of `\w+|[^\w\s]+`; other text, white space, is dropped."""


class WhitespaceSplit(Struct, frozen=True, tag="WhitespaceSplit"):
    """A pre-tokenizer that splits at white space, which is removed."""


class BertPreTokenizer(Struct, frozen=True, tag="BertPreTokenizer"):
    """BERT's pre-tokenizer: it splits at white space, which is removed, and makes each punctuation character a piece."""


class CharDelimiterSplit(Struct, frozen=True, tag="CharDelimiterSplit"):
    """A pre-tokenizer that splits at each occurrence of the character `delimiter`, which is removed."""

    delimiter: Character


class PreTokenizerSequence(Struct, frozen=True, tag="Sequence"):
    """Pre-tokenizers, each applied inside the pieces of the one before."""

    pretokenizers: tuple["PreTokenizer", ...]


SinglePreTokenizer = (
    Split
    | ByteLevel
    | Metaspace
    | Digits
    | Punctuation
    | Whitespace
    | WhitespaceSplit
    | BertPreTokenizer
    | CharDelimiterSplit
)
"""All pre-tokenizers except the sequence: the results of `parts`."""

PreTokenizer = SinglePreTokenizer | PreTokenizerSequence
