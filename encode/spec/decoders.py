"""Decoders: how tokens become text."""

from msgspec import Struct

from tokenweir.encode.spec.normalizers import Replace
from tokenweir.encode.spec.pre_tokenizers import ByteLevel, Metaspace
from tokenweir.encode.spec.values import Character, Count


class ByteFallback(Struct, frozen=True, tag="ByteFallback"):
    """A decoder that turns a run of byte tokens such as `<0xE4>` into the text that their bytes spell."""


class Fuse(Struct, frozen=True, tag="Fuse"):
    """A decoder that joins all tokens to one, so that later decoders see the whole text."""


class StripDecoder(Struct, frozen=True, tag="Strip"):
    """A decoder that removes the character `content` from each token, up to `start` times at its beginning and `stop` times
    at its end.
    """

    content: Character
    start: Count
    stop: Count


class WordPieceDecoder(Struct, frozen=True, tag="WordPiece"):
    """WordPiece's decoder: a token with `prefix`, which is removed, continues a word; any other gets a space before it.

    `cleanup` removes spaces before punctuation.
    """

    prefix: str = "##"
    cleanup: bool = True


class BPEDecoder(Struct, frozen=True, tag="BPEDecoder"):
    """A decoder that replaces `suffix`, which ends a word, by a space; after the last token by nothing."""

    suffix: str = "</w>"


class SentencePieceDecoder(Struct, frozen=True, tag="SentencePieceDecoder", kw_only=True):
    """SentencePiece's own decoding (sentencepiece 0.2.3): each U+2581 is a space, except the dummy prefix.

    The library takes nothing from the end, whatever `treat_whitespace_as_suffix` says.

    Attributes:
        strip_prefix: Whether to remove the dummy prefix, a U+2581 at the beginning of the first piece; the model's
            `add_dummy_prefix`.
        strip_extra: Whether to remove one U+2581 from the beginning of each piece up to the first that has text; the model's
            `remove_extra_whitespaces`.

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
