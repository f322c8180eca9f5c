"""Decoders: how tokens become text."""

from msgspec import Struct

from tokenweir.encode.spec.normalizers import Replace
from tokenweir.encode.spec.pre_tokenizers import ByteLevel, Metaspace
from tokenweir.encode.spec.values import Character, Count


class ByteFallback(Struct, frozen=True, tag="ByteFallback"):
    """A run of tokens such as `<0xE4>` is the text that their bytes spell."""


class Fuse(Struct, frozen=True, tag="Fuse"):
    """All tokens become one, so that what follows sees the whole text."""


class StripDecoder(Struct, frozen=True, tag="Strip"):
    """Removes up to `start` times `content` at the beginning of each token, and `stop` times at its end."""

    content: Character
    start: Count
    stop: Count


class WordPieceDecoder(Struct, frozen=True, tag="WordPiece"):
    """Tokens with `prefix` continue a word, others follow a space; `cleanup` undoes spaces before punctuation."""

    prefix: str = "##"
    cleanup: bool = True


class BPEDecoder(Struct, frozen=True, tag="BPEDecoder"):
    """`suffix` ends a word."""

    suffix: str = "</w>"


class SentencePieceDecoder(Struct, frozen=True, tag="SentencePieceDecoder", kw_only=True):
    """SentencePiece's own decoding (sentencepiece 0.2.3): U+2581 is a space, but for the dummy one.

    The library takes nothing from the end, whatever `treat_whitespace_as_suffix` says.

    Attributes:
        strip_prefix: The U+2581 that the first piece begins with is a dummy prefix and goes (`add_dummy_prefix`).
        strip_extra: One goes from each piece until there is text (`remove_extra_whitespaces`).

    """

    strip_prefix: bool = True
    strip_extra: bool = False


class DecoderSequence(Struct, frozen=True, tag="Sequence"):
    """Decoders applied one after the other, each to the list of tokens."""

    decoders: tuple["Decoder", ...]


SingleDecoder = (
    ByteLevel
    | Replace
    | ByteFallback
    | Fuse
    | StripDecoder
    | Metaspace
    | WordPieceDecoder
    | BPEDecoder
    | SentencePieceDecoder
)
"""All but the sequence: what `parts` takes a decoder apart into."""

Decoder = SingleDecoder | DecoderSequence
