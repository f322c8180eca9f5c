"""Decoders: how tokens become text."""

from msgspec import Struct

from tokenweir.encode.spec.normalizers import Replace
from tokenweir.encode.spec.pre_tokenizers import ByteLevel, Metaspace
from tokenweir.encode.spec.values import Character, Count


class ByteFallback(Struct, frozen=True, tag="ByteFallback"):
    """Decodes a run of tokens such as `<0xE4>` to the text that their bytes spell."""


class Fuse(Struct, frozen=True, tag="Fuse"):
    """Joins all tokens to one, so that later decoders see the whole text."""


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
    """Replaces `suffix`, which ends a word, by a space."""

    suffix: str = "</w>"


class SentencePieceDecoder(Struct, frozen=True, tag="SentencePieceDecoder", kw_only=True):
    """SentencePiece's own decoding (sentencepiece 0.2.3): each U+2581 is a space, except the dummy prefix.

    The library takes nothing from the end, whatever `treat_whitespace_as_suffix` says.

    Attributes:
        strip_prefix: Remove the dummy prefix, a U+2581 at the beginning of the first piece (`add_dummy_prefix`).
        strip_extra: Remove one U+2581 from each piece until there is text (`remove_extra_whitespaces`).

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
"""All decoders except the sequence: the results of `parts`."""

Decoder = SingleDecoder | DecoderSequence
