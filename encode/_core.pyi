"""The compiled core. Everything here is an implementation detail of `tokenweir.encode`.

Texts are `str`; those with lone surrogates raise `TextError`. Guarded offsets are characters, ascending.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.spec import SplitBehavior

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

class PreTokenizerStage:
    """One step from text to pieces, applied to each piece of the step before."""

class Cut(PreTokenizerStage):
    """Cuts at the matches of an automaton."""

    def __init__(
        self,
        transitions: NDArray[np.uint16],
        class_index: NDArray[np.uint16],
        class_pages: NDArray[np.uint8],
        n_classes: int,
        behavior: SplitBehavior = "Isolated",
        inverted: bool = False,
        context: tuple[NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint8]] | None = None,
    ) -> None:
        """Take the tables of an automaton (see `encode/pattern`), and what becomes of its matches.

        `context`: behind, transitions and symbols of the automaton's `Context`.
        """

class Spaces(PreTokenizerStage):
    """Writes `sign` for each space, and, as `prefix` says, one before a piece that does not begin with it."""

    def __init__(self, sign: str, prefix: Literal["always", "first", "never"]) -> None: ...

class Spell(PreTokenizerStage):
    """Spells each byte as a character of GPT-2's alphabet."""

    def __init__(self) -> None: ...

class Unspell(PreTokenizerStage):
    """Takes spelled text back to bytes."""

    def __init__(self) -> None: ...

class PreTokenizer:
    """Text to pieces: stages, one after the other, each inside the pieces of the one before."""

    def __init__(self, stages: Sequence[PreTokenizerStage]) -> None: ...
    def split(self, text: str) -> NDArray[np.int64]:
        """The (start, end) characters of `text` that each piece stands for; shape (n, 2)."""

    def pieces(self, text: str) -> list[bytes]:
        """The pieces as the model gets them."""

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
