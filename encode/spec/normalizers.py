"""Normalizers, by HuggingFace's names."""

from msgspec import Struct

from tokenweir.encode.spec.values import Pattern


class NFC(Struct, frozen=True, tag="NFC"):
    """Normalization to Unicode's form C, canonical composition, by the tables of HuggingFace's library."""


class NFD(Struct, frozen=True, tag="NFD"):
    """Normalization to Unicode's form D, canonical decomposition, by the tables of HuggingFace's library."""


class NFKC(Struct, frozen=True, tag="NFKC"):
    """Normalization to Unicode's form KC, compatibility composition, by the tables of HuggingFace's library."""


class NFKD(Struct, frozen=True, tag="NFKD"):
    """Normalization to Unicode's form KD, compatibility decomposition, by the tables of HuggingFace's library."""


class Lowercase(Struct, frozen=True, tag="Lowercase"):
    """A normalizer that lowers the case, character by character."""


class StripAccents(Struct, frozen=True, tag="StripAccents"):
    """A normalizer that removes combining marks; the text should be decomposed before."""


class StripSpace(Struct, frozen=True, tag="Strip"):
    """A normalizer that removes white space at the left end of a text, the right end, or both."""

    strip_left: bool = True
    strip_right: bool = True


class Prepend(Struct, frozen=True, tag="Prepend"):
    """A normalizer that puts the text `prepend` before a text that is not empty."""

    prepend: str


class Replace(Struct, frozen=True, tag="Replace"):
    """A normalizer, and a decoder for each token, that replaces every match of `pattern` by `content`."""

    pattern: Pattern
    content: str


class BertNormalizer(Struct, frozen=True, tag="BertNormalizer"):
    """BERT's normalizer.

    Attributes:
        clean_text: Whether to remove control characters and turn all white space into spaces.
        handle_chinese_chars: Whether to put spaces around Chinese characters.
        strip_accents: Whether to remove accents; None means the value of `lowercase`.
        lowercase: Whether to lower the case.

    """

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True


class Precompiled(Struct, frozen=True, tag="Precompiled"):
    """A normalizer that applies a SentencePiece character map (base64) to grapheme clusters, as HuggingFace does it."""

    precompiled_charsmap: str


class SentencePieceNormalizer(Struct, frozen=True, tag="SentencePieceNormalizer", kw_only=True):
    """SentencePiece's own normalizer (sentencepiece 0.2.3, normalizer.cc).

    Attributes:
        charsmap: The precompiled character map, a Darts trie and its replacements; if empty, no character is replaced.
        add_dummy_prefix: Whether to put a space before the text, or after it with `suffix`.
        remove_extra_whitespaces: Whether to remove spaces at the ends and to replace runs of spaces by one.
        escape_whitespaces: Whether a space becomes U+2581.
        suffix: Whether a word's space comes after it: the model's `treat_whitespace_as_suffix`.
        user_defined: User-defined pieces, which are not normalized.

    """

    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    suffix: bool = False
    user_defined: tuple[str, ...] = ()


class NormalizerSequence(Struct, frozen=True, tag="Sequence"):
    """Normalizers applied one after the other."""

    normalizers: tuple["Normalizer", ...]


SingleNormalizer = (
    NFC
    | NFD
    | NFKC
    | NFKD
    | Lowercase
    | StripAccents
    | StripSpace
    | Prepend
    | Replace
    | BertNormalizer
    | Precompiled
    | SentencePieceNormalizer
)
"""All normalizers except the sequence; `parts` flattens a normalizer to these."""

Normalizer = SingleNormalizer | NormalizerSequence
