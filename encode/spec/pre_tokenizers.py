"""Pre-tokenizers, by HuggingFace's names."""

from typing import Literal

from msgspec import Struct

from tokenweir.encode.spec.values import Character, Pattern

SplitBehavior = Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


class Split(Struct, frozen=True, tag="Split", kw_only=True):
    """Split at the matches of a pattern.

    Attributes:
        pattern: The pattern to search for.
        behavior: The treatment of a match: `Isolated`, `Removed`, `MergedWithPrevious`, `MergedWithNext`, `Contiguous`.
        invert: Matches and gaps change places.
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
    """GPT-2's alphabet of 256 printable characters, as pre-tokenizer, post-processor and decoder alike."""

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True


class Metaspace(Struct, frozen=True, tag="Metaspace", kw_only=True):
    """Replaces spaces by `replacement`, which begins a piece; as a decoder, replaces it by spaces.

    Attributes:
        replacement: One character.
        prepend_scheme: Put `replacement` before a piece: each (`always`), the text's first (`first`), or none.
        split: Cut before each `replacement`.
        add_prefix_space: A key of old files; the library refuses false unless `prepend_scheme` is `never`.
        str_rep: A key of old files, equal to `replacement`.

    """

    replacement: Character = "\u2581"
    prepend_scheme: Literal["always", "first", "never"] = "always"
    split: bool = True
    add_prefix_space: bool | None = None
    str_rep: str | None = None


class Digits(Struct, frozen=True, tag="Digits"):
    """Splits numeric characters from others; with `individual_digits`, each from the next."""

    individual_digits: bool = False


class Punctuation(Struct, frozen=True, tag="Punctuation"):
    """Splits punctuation characters from others."""

    behavior: SplitBehavior = "Isolated"


class Whitespace(Struct, frozen=True, tag="Whitespace"):
    r"""Takes the matches of `\w+|[^\w\s]+`."""


class WhitespaceSplit(Struct, frozen=True, tag="WhitespaceSplit"):
    """Splits at white space, which is removed."""


class BertPreTokenizer(Struct, frozen=True, tag="BertPreTokenizer"):
    """Splits at white space, which is removed, and punctuation characters from others."""


class CharDelimiterSplit(Struct, frozen=True, tag="CharDelimiterSplit"):
    """Splits at each occurrence of a character, which is removed."""

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
