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
        vocab: The id of each token; under a `ByteLevel` pre-tokenizer, tokens are spelled in GPT-2's byte alphabet.
        merges: The pairs to merge, as `"a b"` or `("a", "b")`; a pair listed twice keeps its later place.
        dropout: The probability of skipping a merge; refused unless it is None or 0.
        unk_token: The token for a character that is not a token; None drops the character.
        continuing_subword_prefix: A prefix of the tokens of all characters of a piece except the first.
        end_of_word_suffix: A suffix of the token of a piece's last character.
        fuse_unk: Whether neighbouring unknown characters become one `unk_token`.
        byte_fallback: Whether an unknown character becomes the tokens of its bytes (`<0xE4>`), if all exist.
        ignore_merges: Whether a piece that is a token is taken whole, without merging.

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
        ranks: The rank of each token, which is its id. (Tekken's ids begin after its special tokens; so do its ranks here.)
        ignore_merges: Whether a piece that is a token is taken whole, without merging.

    """

    ranks: Mapping[bytes, int]
    ignore_merges: bool = True


class SentencePiece(Struct, frozen=True, tag="SentencePiece", kw_only=True):
    """A SentencePiece model (sentencepiece 0.2.3): BPE by scores, or Unigram in 32-bit arithmetic.

    Attributes:
        algorithm: `BPE` or `Unigram`.
        pieces: The pieces by id; no two are equal.
        scores: Their scores, with the precision of 32-bit floats.
        types: Their types, a byte each: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
        unk_id: The id of the unknown piece, the only one of type 2.
        byte_fallback: Whether unknown characters become the pieces of their bytes (`<0xE4>`).
        unk_surface: The text to which `unk_id` decodes.

    """

    algorithm: Literal["BPE", "Unigram"]
    pieces: Sequence[str]
    scores: Sequence[float]
    types: bytes
    unk_id: int
    byte_fallback: bool = False
    unk_surface: str = " \u2047 "


class Unigram(Struct, frozen=True, tag="Unigram"):
    """A Unigram model: the most probable segmentation (Viterbi), as HuggingFace computes it, in 64-bit arithmetic.

    Attributes:
        vocab: (piece, log probability) by id.
        unk_id: The id for unknown characters. If it is None, text with a character that no piece covers cannot be encoded,
            as in the library.
        byte_fallback: Whether unknown characters become the tokens of their bytes, if all exist.

    """

    vocab: tuple[tuple[str, float], ...]
    unk_id: int | None = None
    byte_fallback: bool = False


class WordPiece(Struct, frozen=True, tag="WordPiece", kw_only=True):
    """A WordPiece model: the longest token that matches is taken, from left to right.

    A piece that tokens cannot cover in this way becomes one unknown token.

    Attributes:
        vocab: The id of each token.
        unk_token: The unknown token.
        continuing_subword_prefix: The prefix with which tokens are spelled that do not begin a piece.
        max_input_chars_per_word: The most characters of a piece; a longer one is unknown.

    """

    vocab: Mapping[str, int]
    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"
    max_input_chars_per_word: Count = 100


Model = BPE | RankBPE | SentencePiece | Unigram | WordPiece
