"""`Backend`: an object with the interface of `tokenizers.Tokenizer` that encodes and decodes by tokenweir.

It keeps the original object, which remains the truth: it is asked for all else, and whatever changes it makes the next call build
tokenweir's tokenizer anew from its JSON. A call that tokenweir does not reproduce exactly goes to the original and is counted.
"""

from __future__ import annotations

import asyncio
import copy
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import tokenizers

from tokenweir.encode.encoding.sequence_encoder import Sequences
from tokenweir.encode.errors import TextError, TokenIdError, TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer, sequence_encoder_of
from tokenweir.integrations.batches import BatchEncoder, pad
from tokenweir.integrations.counts import count
from tokenweir.integrations.encoding import Encoding
from tokenweir.integrations.inputs import Fallback, listed, sequence_of, sequences_of

Original = tokenizers.Tokenizer

COMPONENTS = frozenset(["model", "normalizer", "pre_tokenizer", "post_processor", "decoder"])
"""Attributes of the original that have parts of their own, which callers may change in place."""

READ_ONLY = frozenset(
    [
        "get_added_tokens_decoder",
        "get_vocab",
        "get_vocab_size",
        "id_to_token",
        "num_special_tokens_to_add",
        "save",
        "to_str",
        "token_to_id",
    ]
)
"""Methods of the original that change nothing that encoding depends on."""

_MODEL_OPTIONS = (
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
    "max_input_chars_per_word",
    "unk_id",
)
_T = TypeVar("_T")


class Backend:
    """A `tokenizers.Tokenizer` whose encoding and decoding tokenweir does where it can; see the module."""

    _original: Any
    _name: str
    _version: object
    _made: tuple[object, BatchEncoder | str]
    _handed_out: list[tuple[Any, object]]
    _truncation: dict[str, Any] | None
    _padding: dict[str, Any] | None
    _encode_special_tokens: bool

    def __init__(self, original: Any, *, name: str = "") -> None:
        """Take a `tokenizers.Tokenizer`, or a model to make one of; `name` is for `report()`."""
        if is_backend(original):
            original = original._original
        if type(original) is not Original:
            original = Original(original)
        self._set(_original=original, _name=name, _handed_out=[], _made=(None, ""))
        self._forget()

    @classmethod
    def of(cls, value: Any, name: str = "") -> Any:
        """Return a backend of a `tokenizers.Tokenizer`, by this name unless it has one; any other value unchanged."""
        if is_backend(value) and not value._name:
            value._set(_name=name)
        return cls(value, name=name) if type(value) is Original else value

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    # -- the state of the original -------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Invalidate what was built, because the original has changed."""
        original = self._original
        self._set(
            _version=object(),
            _handed_out=[(component, _state_of(component)) for component, _ in self._handed_out],
            _truncation=original.truncation,
            _padding=original.padding,
            _encode_special_tokens=original.encode_special_tokens,
        )

    def _state(self) -> BatchEncoder:
        """Return tokenweir's tokenizer of the original as it is now.

        Threads that come at once may build it twice. What a thread builds counts only for the version that it began with, so
        there is no lock, which a fork could leave locked.

        Raises:
            Fallback: tokenweir does not reproduce this tokenizer, or this setting of it.

        """
        if self._handed_out and self._changed_in_place():
            self._forget()
        if self._encode_special_tokens:
            raise Fallback("encode_special_tokens")
        version, built = self._made
        if version is not self._version:
            version = self._version
            built = self._build()
            self._set(_made=(version, built))
        if isinstance(built, str):
            raise Fallback(built)
        return built

    def _build(self) -> BatchEncoder | str:
        """Build tokenweir's tokenizer of the original; return the reason if it is not reproduced exactly."""
        try:
            tokenizer = Tokenizer.from_bytes(self._original.to_str().encode(), "huggingface")
        except (UnsupportedTokenizerError, TokenizerFileError) as error:
            return str(error)
        # The original may have ids that its JSON does not lead to.
        live = {token.content: i for i, token in self._original.get_added_tokens_decoder().items()}
        if live != {token.content: token.id for token in tokenizer.added_tokens}:
            return "added tokens with ids that its JSON does not give"
        return BatchEncoder(tokenizer, *sequence_encoder_of(tokenizer))

    def _changed_in_place(self) -> bool:
        """Whether a component that a caller holds, or held until now, has changed."""
        if any(_state_of(component) != before for component, before in self._handed_out):
            return True
        held = [pair for pair in self._handed_out if sys.getrefcount(pair[0]) > 2]  # besides the pair and the argument
        self._set(_handed_out=held)
        return False

    def __getattr__(self, name: str) -> Any:
        original = object.__getattribute__(self, "_original")
        found = getattr(original, name)
        if name in COMPONENTS:
            if found is not None:
                self._handed_out.append((found, _state_of(found)))
            return found
        if name in READ_ONLY or not callable(found):
            return found

        def changing(*args: Any, **kwargs: Any) -> Any:
            try:
                return found(*args, **kwargs)
            finally:
                self._forget()

        return changing

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, value)
        if name == "encode_special_tokens":
            self._set(_encode_special_tokens=bool(value))
        else:
            self._forget()

    @property
    def truncation(self) -> dict[str, Any] | None:
        """The parameters of truncation."""
        return self._truncation and dict(self._truncation)

    @property
    def padding(self) -> dict[str, Any] | None:
        """The parameters of padding."""
        return self._padding and dict(self._padding)

    @property
    def encode_special_tokens(self) -> bool:
        """Whether special tokens in text are text."""
        return self._encode_special_tokens

    def enable_truncation(self, *args: Any, **kwargs: Any) -> None:
        """Truncate all later encodings; arguments as in `tokenizers`."""
        self._original.enable_truncation(*args, **kwargs)
        self._set(_truncation=self._original.truncation)

    def no_truncation(self) -> None:
        """Truncate no more."""
        self._original.no_truncation()
        self._set(_truncation=None)

    def enable_padding(self, *args: Any, **kwargs: Any) -> None:
        """Pad all later encodings; arguments as in `tokenizers`."""
        self._original.enable_padding(*args, **kwargs)
        self._set(_padding=self._original.padding)

    def no_padding(self) -> None:
        """Pad no more."""
        self._original.no_padding()
        self._set(_padding=None)

    # -- encoding ------------------------------------------------------------------------------------------------------

    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Any:
        """Encode a text, or a pair of texts."""

        def run(built: BatchEncoder) -> Encoding:
            given = [sequence_of(each, is_pretokenized) for each in ((sequence,) if pair is None else (sequence, pair))]
            return self._encoded(built, [given], add_special_tokens)[0]

        return self._run_or_fall_back("encode", run, sequence, pair, is_pretokenized, add_special_tokens)

    def encode_batch(self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True) -> Any:
        """Encode texts, and pairs of texts."""

        def run(built: BatchEncoder) -> list[Encoding]:
            given = [sequences_of(each, is_pretokenized) for each in listed(input)]
            return self._encoded(built, given, add_special_tokens)

        return self._run_or_fall_back("encode_batch", run, input, is_pretokenized, add_special_tokens)

    def encode_batch_fast(self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True) -> Any:
        """Encode texts, and pairs of texts; no token has a place, a word or a name."""

        def run(built: BatchEncoder) -> list[Encoding]:
            given = [sequences_of(each, is_pretokenized) for each in listed(input)]
            return self._encoded(built, given, add_special_tokens, offsets=False)

        return self._run_or_fall_back("encode_batch_fast", run, input, is_pretokenized, add_special_tokens)

    def _encoded(
        self, built: BatchEncoder, inputs: Sequence[Sequences], add_special_tokens: bool, *, offsets: bool = True
    ) -> list[Encoding]:
        found = built.encode(inputs, bool(add_special_tokens), self._truncation, offsets=offsets)
        pad(found, self._padding)
        return found

    def post_process(self, encoding: Any, pair: Any = None, add_special_tokens: bool = True) -> Any:
        """Truncate encodings, add special tokens, and pad."""

        def run(built: BatchEncoder) -> Encoding:
            parts = [each.columns.copy() for each in (encoding, pair) if each is not None]
            found = built.post_process(parts, bool(add_special_tokens), self._truncation)
            pad([found], self._padding)
            return found

        if type(encoding) is Encoding:
            return run(self._state())
        return self._original.post_process(encoding, pair, add_special_tokens)

    # -- decoding ------------------------------------------------------------------------------------------------------

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str:
        """Decode ids; those outside the vocabulary are skipped."""
        return self._run_or_fall_back(
            "decode", lambda built: _decoded(built.tokenizer, ids, skip_special_tokens), ids, skip_special_tokens
        )

    def decode_batch(self, sequences: Any, skip_special_tokens: bool = True) -> list[str]:
        """Decode rows of ids."""
        return self._run_or_fall_back(
            "decode_batch",
            lambda built: [_decoded(built.tokenizer, ids, skip_special_tokens) for ids in sequences],
            sequences,
            skip_special_tokens,
        )

    @property
    def tokenizer(self) -> Tokenizer | None:
        """tokenweir's tokenizer of the original as it is now; None if it is not reproduced exactly."""
        try:
            return self._state().tokenizer
        except Fallback:
            return None

    def _run_or_fall_back(self, call: str, run: Callable[[BatchEncoder], _T], *args: Any) -> _T:
        try:
            found = run(self._state())
        except (Fallback, TextError, TokenIdError, UnsupportedTokenizerError, TypeError, ValueError) as error:
            reason = str(error) or type(error).__name__
        else:
            count(self._label, call)
            return found
        count(self._label, call, reason)
        there: _T = getattr(self._original, call)(*args)
        return there

    @property
    def _label(self) -> str:
        if not self._name:
            self._set(_name=f"{type(self._original.model).__name__} of {self._original.get_vocab_size()} tokens")
        return self._name

    # -- asynchronous calls --------------------------------------------------------------------------------------------

    def async_encode(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run `encode` in a thread."""
        return asyncio.to_thread(self.encode, *args, **kwargs)

    def async_encode_batch(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run `encode_batch` in a thread."""
        return asyncio.to_thread(self.encode_batch, *args, **kwargs)

    def async_encode_batch_fast(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run `encode_batch_fast` in a thread."""
        return asyncio.to_thread(self.encode_batch_fast, *args, **kwargs)

    def async_decode_batch(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run `decode_batch` in a thread."""
        return asyncio.to_thread(self.decode_batch, *args, **kwargs)

    # -- the object itself ---------------------------------------------------------------------------------------------

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The original's class, so that `isinstance` takes this object for one."""
        return Original

    def __dir__(self) -> Iterable[str]:
        return sorted({*dir(type(self)), *dir(self._original)})

    def __copy__(self) -> Backend:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Backend:
        copied: Backend = type.__call__(type(self), copy.deepcopy(self._original, memo), name=self._name)
        copied._original.encode_special_tokens = self._encode_special_tokens
        copied._set(_encode_special_tokens=self._encode_special_tokens)
        if not self._handed_out:
            version, built = self._made
            if version is self._version:
                copied._set(_made=(copied._version, built))
        return copied

    def __reduce__(self) -> tuple[Callable[..., Backend], tuple[Any, ...]]:
        return _restored, (type(self), self._original.__getstate__(), self._name)

    def __repr__(self) -> str:
        return repr(self._original)

    def __str__(self) -> str:
        return str(self._original)


def is_backend(value: Any) -> bool:
    """Whether a value is a backend, whose `__class__` is the original's."""
    return issubclass(type(value), Backend)


def original_of(state: bytes) -> Any:
    """Return the `tokenizers.Tokenizer` of a pickled state."""
    original = Original(tokenizers.models.BPE())
    original.__setstate__(state)
    return original


def _restored(kind: type[Backend], state: bytes, name: str) -> Backend:
    made: Backend = type.__call__(kind, original_of(state), name=name)
    return made


def _state_of(component: Any) -> object:
    """Return what callers can change in a component in place; of a model only its options, since the rest is large."""
    if isinstance(component, tokenizers.models.Model):
        return [getattr(component, name, None) for name in _MODEL_OPTIONS]
    return component.__getstate__()


def _decoded(tokenizer: Tokenizer, ids: Any, skip_special_tokens: bool) -> str:
    skip = bool(skip_special_tokens)
    try:
        return tokenizer.decode(ids, skip_special_tokens=skip, byte_fallback="huggingface")
    except TokenIdError:
        if any(i < 0 for i in ids):
            raise
        known = [i for i in ids if i < tokenizer.vocab_size]
        return tokenizer.decode(known, skip_special_tokens=skip, byte_fallback="huggingface")
