"""Normalizers, by HuggingFace's names."""

from msgspec import Struct

from tokenweir.encode.spec.values import Pattern


class NFC(Struct, frozen=True, tag="NFC"):
    """Unicode canonical composition; this and the other forms by the tables of HuggingFace's library."""


class NFD(Struct, frozen=True, tag="NFD"):
    """Unicode canonical decomposition."""


class NFKC(Struct, frozen=True, tag="NFKC"):
    """Unicode compatibility composition."""


class NFKD(Struct, frozen=True, tag="NFKD"):
    """Unicode compatibility decomposition."""


class Lowercase(Struct, frozen=True, tag="Lowercase"):
    """Lower case, character by character."""


class StripAccents(Struct, frozen=True, tag="StripAccents"):
    """Removes combining marks; text is expected to be decomposed."""


class StripSpace(Struct, frozen=True, tag="Strip"):
    """Removes white space at the ends of a text."""

    strip_left: bool = True
    strip_right: bool = True


class Prepend(Struct, frozen=True, tag="Prepend"):
    """Puts `prepend` before a text that is not empty."""

    prepend: str


class Replace(Struct, frozen=True, tag="Replace"):
    """Puts `content` in place of what `pattern` matches; a normalizer, and a decoder for each token."""

    pattern: Pattern
    content: str


class BertNormalizer(Struct, frozen=True, tag="BertNormalizer"):
    """BERT's cleaning: control characters, spaces around Chinese characters, accents (None: as `lowercase`), case."""

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True


class Precompiled(Struct, frozen=True, tag="Precompiled"):
    """A SentencePiece character map (base64), applied to grapheme clusters as HuggingFace does it."""

    precompiled_charsmap: str


class SentencePieceNormalizer(Struct, frozen=True, tag="SentencePieceNormalizer", kw_only=True):
    """SentencePiece's own normalizer (sentencepiece 0.2.3, normalizer.cc).

    Attributes:
        charsmap: The precompiled character map: a Darts trie and its replacements; empty: characters stay.
        add_dummy_prefix: A space before the text, or after it with `suffix`.
        remove_extra_whitespaces: Spaces at the ends go, runs of spaces become one.
        escape_whitespaces: A space becomes U+2581.
        suffix: `treat_whitespace_as_suffix`.
        user_defined: Pieces that are taken as they are.

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
