"""The compiled core. Everything here is an implementation detail of `tokenweir.encode`.

Texts are `str`; those with lone surrogates raise `TextError`. Guarded offsets are characters, ascending.
"""

from collections.abc import Mapping, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

class NormalizerStep:
    """One step of a normalizer."""

class NormalForm(NormalizerStep):
    """Normalization form C by the tables of HuggingFace's library."""

    def __init__(self) -> None: ...

class Normalizer:
    """Steps, applied one after the other."""

    def __init__(self, steps: Sequence[NormalizerStep]) -> None: ...
    def normalize(self, text: str) -> str: ...
    def normalize_with_origin(self, text: str) -> tuple[str, NDArray[np.int64]]:
        """The same, and for each resulting character the (start, end) characters of `text` it stands at; (n, 2)."""

class PreTokenizer:
    """Text to pieces: automata applied one after the other, each inside the pieces of the one before."""

    def __init__(
        self,
        stages: Sequence[tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint8], int, bool]],
        prefix_space: bool = False,
    ) -> None:
        """Take (transitions, class_index, class_pages, n_classes, keep_gaps) of each stage; see `encode/pattern`."""

    def split(self, text: str) -> NDArray[np.int64]:
        """The (start, end) characters of each piece; shape (n, 2)."""

class Vocabulary:
    """A model's tokens as bytes."""

    @staticmethod
    def byte_level(tokens: Mapping[str, int]) -> Vocabulary:
        """Tokens spelled in GPT-2's byte alphabet."""

    @staticmethod
    def ranks(tokens: Mapping[bytes, int]) -> Vocabulary:
        """Tokens as bytes, as in tiktoken's rank files."""

    def __len__(self) -> int:
        """One more than the highest id."""

class Model:
    """Pieces to ids."""

class Bpe(Model):
    """Byte-pair encoding of a piece. Ids in `control` are never produced for guarded or unparsed text."""

    @staticmethod
    def merges(
        vocabulary: Vocabulary, merges: list[str | tuple[str, str]], whole_first: bool, control: Sequence[int]
    ) -> Bpe:
        """Merges in order of priority; `whole_first`: a piece that is a token is taken whole."""

    @staticmethod
    def ranks(vocabulary: Vocabulary, control: Sequence[int]) -> Bpe:
        """The pair whose concatenation has the lowest rank merges first."""

class WordPiece(Model):
    """The longest token first, from left to right; a piece that cannot be covered so is one unknown token."""

    def __init__(
        self, vocab: Mapping[str, int], unk_token: str, prefix: str, max_chars: int, control: Sequence[int]
    ) -> None:
        """`prefix` begins tokens that do not begin a piece; pieces of more than `max_chars` characters are unknown.

        Ids in `control`, but for that of `unk_token`, are never produced for guarded or unparsed text.
        """

    def encode(self, text: str, guarded: bool = False) -> tuple[list[int], NDArray[np.int64]]:
        """The ids of one piece and the (start, end) characters of each; shape (n, 2)."""

def json_numbers(literals: list[bytes]) -> NDArray[np.float64]:
    """The scores of a Unigram model's pieces as HuggingFace's library reads them, which is not to the nearest float.

    Args:
        literals: As they stand in the JSON file.

    Raises:
        TokenizerFileError: For one that is no JSON number, or too large for 64 bits of floating point.

    """

class HuggingFaceUnigram(Model):
    """Unigram as HuggingFace's `tokenizers` 0.23.3 computes it, in 64-bit arithmetic."""

    def __init__(
        self,
        pieces: list[str],
        scores: NDArray[np.float64],
        unk_id: int | None,
        byte_fallback: bool,
        control: Sequence[int],
    ) -> None:
        """Take pieces and scores by id. Ids in `control` are never produced for guarded or unparsed text.

        Raises:
            TokenizerFileError: For a score that is not finite, or an `unk_id` that is no piece.
            UnsupportedTokenizerError: For a piece of more than 1,024 bytes.

        """

    def encode(self, text: str, guarded: bool = False) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of a text that is one piece, and the (start, end) characters of each.

        Raises:
            UnsupportedTokenizerError: For text that no piece covers where there is no `unk_id`; the library fails too.

        """

    @property
    def trie_bytes(self) -> int:
        """The memory that the trie of pieces takes."""

class SentencePieceUnigram(Model):
    """Unigram as sentencepiece 0.2.3 computes it, in 32-bit arithmetic; text is normalized already."""

    def __init__(
        self,
        pieces: list[str],
        scores: NDArray[np.float64],
        types: bytes,
        unk_id: int,
        byte_fallback: bool,
        control: Sequence[int],
    ) -> None:
        """Take pieces, scores and types (see `spec.SentencePiece`) by id, and the control ids as above.

        Raises:
            TokenizerFileError: For a model that contradicts itself, as the library does.
            UnsupportedTokenizerError: For a piece of more than 1,024 bytes.

        """

    def encode(self, text: str, guarded: bool = False) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of a text that is one piece, and the (start, end) characters of each."""

class AddedTokens:
    """The search for added tokens in text."""

    def __init__(self, tokens: Sequence[tuple[str, int | None, bool, bool, bool]], word_flips: Sequence[int]) -> None:
        r"""Take (content, id, single_word, lstrip, rstrip), and the code points where membership in \w changes."""

class TokenBytes:
    """The bytes of every id."""

    def __init__(self, vocabulary: Vocabulary, added: Sequence[tuple[int | None, str, bool]], size: int) -> None:
        """Take (id, content, special) of the added tokens, and the number of ids at least."""

    def __len__(self) -> int: ...
    def __getitem__(self, token_id: int) -> bytes: ...
    def join(self, ids: Sequence[int], skip_special: bool) -> bytes:
        """The bytes of the tokens, one after the other."""

    def decode(self, ids: Sequence[int], skip_special: bool) -> str:
        """The same as text, with U+FFFD for what is not UTF-8."""

class DecodeStream:
    """The state of an incremental decode; see `tokenweir.encode.decode.DecodeStream`."""

    @overload
    def __init__(self, tokens: TokenBytes, prompt_ids: Sequence[int], skip_special: bool) -> None: ...
    @overload
    def __init__(self, other: DecodeStream) -> None: ...
    def step(self, token_id: int) -> str:
        """Take one id; return the characters that it completes."""

    def feed(self, ids: Sequence[int]) -> str:
        """Take several ids; return the characters that they complete."""

    def flush(self) -> str:
        """End the text: what is held becomes U+FFFD, by Python's `errors="replace"` rule."""

    @property
    def pending(self) -> int:
        """How many bytes of a character that has not ended are held."""

    def reset(self, prompt_ids: Sequence[int] = ()) -> None:
        """Begin again, as a new object would."""

class Encoder:
    """Text to ids: added tokens, normalizer, pre-tokenizer, model."""

    def __init__(
        self,
        normalizer: Normalizer,
        pre_tokenizer: PreTokenizer,
        model: Model,
        raw: AddedTokens,
        normalized: AddedTokens,
        tokens: TokenBytes,
    ) -> None:
        """`raw` tokens are searched in the text as it is, `normalized` ones after the normalizer."""

    def encode(
        self, text: str, parse_special: bool, guarded: Sequence[int], prefix: Sequence[int], suffix: Sequence[int]
    ) -> list[int]: ...
    def encode_array(
        self, text: str, parse_special: bool, guarded: Sequence[int], prefix: Sequence[int], suffix: Sequence[int]
    ) -> NDArray[np.int32]: ...
    def encode_with_offsets(
        self, text: str, parse_special: bool, guarded: Sequence[int]
    ) -> tuple[list[int], NDArray[np.int64], list[int]]:
        """Ids; the (start, end) characters of each, shape (n, 2); and which ids are added tokens found in the text."""

    def count(self, text: str, parse_special: bool, guarded: Sequence[int]) -> int: ...
    def encode_batch(
        self, texts: list[str], parse_special: bool, threads: int, prefix: Sequence[int], suffix: Sequence[int]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of all texts, int32[total], and where each begins, int64[n + 1]; `threads` 0 lets the core choose."""
