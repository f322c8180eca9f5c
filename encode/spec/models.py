"""Models: how pieces become ids."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from tokenweir.encode.spec.values import Count

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""The types of a SentencePiece model's pieces. GGUF files have them for the tokens of every model."""


class BPE(Struct, frozen=True, tag="BPE", kw_only=True):
    """Byte-pair encoding by a list of merges, in order of priority.

    Attributes:
        vocab: Token to id; under a `ByteLevel` pre-tokenizer, spelled in its alphabet.
        merges: Pairs, as `"a b"` or `("a", "b")`; a pair listed twice keeps its later place.
        dropout: Random merging; refused unless None or 0.
        unk_token: What a character becomes that is no token; without one it vanishes.
        continuing_subword_prefix: Spelled before every character of a piece but the first.
        end_of_word_suffix: Spelled after the last character of a piece.
        fuse_unk: Neighbouring unknown characters become one `unk_token`.
        byte_fallback: An unknown character becomes its bytes' tokens (`<0xE4>`), if all exist.
        ignore_merges: A piece that is a token is taken whole, whatever the merges say.

    """

    vocab: Mapping[str, int]
    merges: Sequence[str | tuple[str, str]]
    dropout: float | None = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False


class RankBPE(Struct, frozen=True, tag="RankBPE"):
    """Byte-pair encoding as tiktoken does it: the pair whose concatenation has the lowest rank merges first.

    Attributes:
        ranks: Token bytes to rank, which is the id. (tekken's ids begin after its special tokens; so do its ranks here.)
        ignore_merges: A piece that is a token is taken whole, whatever the ranks say.

    """

    ranks: Mapping[bytes, int]
    ignore_merges: bool = True


class SentencePiece(Struct, frozen=True, tag="SentencePiece", kw_only=True):
    """A SentencePiece model (sentencepiece 0.2.3): BPE by scores, or Unigram in 32-bit arithmetic.

    Attributes:
        algorithm: `BPE` or `Unigram`.
        pieces: The pieces by id; no two are equal.
        scores: Their scores, as 32-bit floats.
        types: Their types, a byte each: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
        unk_id: The piece of type 2.
        byte_fallback: Unknown characters become the bytes' pieces (`<0xE4>`).
        unk_surface: What `unk_id` decodes to.

    """

    algorithm: Literal["BPE", "Unigram"]
    pieces: Sequence[str]
    scores: Sequence[float]
    types: bytes
    unk_id: int
    byte_fallback: bool = False
    unk_surface: str = " \u2047 "


class Unigram(Struct, frozen=True, tag="Unigram"):
    """The most probable segmentation (Viterbi) as HuggingFace computes it, in 64-bit arithmetic.

    Attributes:
        vocab: (piece, log probability) by id.
        unk_id: The id of what is unknown; without one, a character that no piece covers cannot be encoded, as in the library.
        byte_fallback: Unknown characters become the bytes' tokens, if all exist.

    """

    vocab: tuple[tuple[str, float], ...]
    unk_id: int | None = None
    byte_fallback: bool = False


class WordPiece(Struct, frozen=True, tag="WordPiece", kw_only=True):
    """The longest token first, from left to right; a piece that cannot be covered so is one unknown token.

    Attributes:
        vocab: Token to id.
        unk_token: The unknown token.
        continuing_subword_prefix: What tokens are spelled with that do not begin a piece.
        max_input_chars_per_word: Longer pieces are unknown, in characters.

    """

    vocab: Mapping[str, int]
    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"
    max_input_chars_per_word: Count = 100


Model = BPE | RankBPE | SentencePiece | Unigram | WordPiece
