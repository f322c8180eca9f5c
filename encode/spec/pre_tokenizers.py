"""Pre-tokenizers, by HuggingFace's names."""

from typing import Literal

from msgspec import Struct

from tokenweir.encode.spec.values import Character, Pattern

SplitBehavior = Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


class Split(Struct, frozen=True, tag="Split", kw_only=True):
    """Split at the matches of a pattern.

    Attributes:
        pattern: What to look for.
        behavior: What becomes of a match: `Isolated`, `Removed`, `MergedWithPrevious`, `MergedWithNext`, `Contiguous`.
        invert: Matches and gaps change places.
        dialect: The regex engine whose reading of the pattern counts. No file says it, the format decides:
            tokenizer.json means Oniguruma, a tiktoken rank file fancy-regex.
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
    """Spaces become `replacement` and begin a piece; as a decoder, the other way round.

    Attributes:
        replacement: One character.
        prepend_scheme: Put `replacement` before a piece: each (`always`), the text's first (`first`), or none.
        split: Cut before each `replacement`.
        add_prefix_space: What old files say besides; the library refuses false unless `prepend_scheme` is `never`.
        str_rep: What old files say besides; the replacement again.

    """

    replacement: Character = "\u2581"
    prepend_scheme: Literal["always", "first", "never"] = "always"
    split: bool = True
    add_prefix_space: bool | None = None
    str_rep: str | None = None


class Digits(Struct, frozen=True, tag="Digits"):
    """Numeric characters apart from others; with `individual_digits`, each alone."""

    individual_digits: bool = False


class Punctuation(Struct, frozen=True, tag="Punctuation"):
    """Punctuation characters apart from others."""

    behavior: SplitBehavior = "Isolated"


class Whitespace(Struct, frozen=True, tag="Whitespace"):
    r"""The matches of `\w+|[^\w\s]+`."""


class WhitespaceSplit(Struct, frozen=True, tag="WhitespaceSplit"):
    """What stands between white space."""


class BertPreTokenizer(Struct, frozen=True, tag="BertPreTokenizer"):
    """What stands between white space, punctuation characters apart."""


class CharDelimiterSplit(Struct, frozen=True, tag="CharDelimiterSplit"):
    """What stands between occurrences of a character."""

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
"""All but the sequence: what `parts` takes a pre-tokenizer apart into."""

PreTokenizer = SinglePreTokenizer | PreTokenizerSequence
