"""`Backend`: an object with the interface of `tokenizers.Tokenizer` that encodes and decodes by tokenweir.

It keeps the original object, which remains authoritative and serves all other attributes. After a change of the
original, the next call builds tokenweir's tokenizer again from its JSON. A call that tokenweir does not reproduce
exactly goes to the original and is counted.
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
from tokenweir.integrations.counts import count
from tokenweir.integrations.transformers.batches import BackendEncoder, pad
from tokenweir.integrations.transformers.encoding import Encoding
from tokenweir.integrations.transformers.inputs import Fallback, listed, sequence_of, sequences_of

Original = tokenizers.Tokenizer

COMPONENTS = frozenset(["model", "normalizer", "pre_tokenizer", "post_processor", "decoder"])
"""Attributes of the original that have parts of their own, which callers may change in place."""

READ_ONLY = frozenset(
    [
        *("get_added_tokens_decoder", "get_vocab", "get_vocab_size", "id_to_token", "num_special_tokens_to_add"),
        *("save", "to_str", "token_to_id"),
    ]
)
"""Methods of the original that change nothing that encoding depends on."""

_MODEL_OPTIONS = (
    *("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback"),
    *("ignore_merges", "max_input_chars_per_word", "unk_id"),
)
_T = TypeVar("_T")


class Backend:
    """Drop-in replacement of a `tokenizers.Tokenizer` that encodes and decodes by tokenweir.

    A call that tokenweir does not reproduce exactly goes to the original object. All other attributes are the original's.
    """

    _original: Any
    _name: str
    _version: object
    _made: tuple[object, BackendEncoder | str]
    _handed_out: list[tuple[Any, object]]
    _truncation: dict[str, Any] | None
    _padding: dict[str, Any] | None
    _encode_special_tokens: bool

    def __init__(self, original: Any, *, name: str = "") -> None:
        """Wrap a tokenizer.

        Args:
            original: A `tokenizers.Tokenizer`, another backend, or a `tokenizers` model, of which a tokenizer is made.
            name: The name in `report()`; empty for one made of the model's type and the size of the vocabulary.

        """
        if is_backend(original):
            original = original._original
        if type(original) is not Original:
            original = Original(original)
        self._set(_original=original, _name=name, _handed_out=[], _made=(None, ""))
        self._forget()

    @classmethod
    def of(cls, value: Any, name: str = "") -> Any:
        """Return a backend for a `tokenizers.Tokenizer`; any other value is returned unchanged.

        A backend without a name in `report()` gets `name`.
        """
        if is_backend(value) and not value._name:
            value._set(_name=name)
        return cls(value, name=name) if type(value) is Original else value

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    # -- the state of the original -------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Invalidate the tokenizer that was built and the cached settings, because the original has changed."""
        original = self._original
        self._set(
            _version=object(),
            _handed_out=[(component, _state_of(component)) for component, _ in self._handed_out],
            _truncation=original.truncation,
            _padding=original.padding,
            _encode_special_tokens=original.encode_special_tokens,
        )

    def _state(self) -> BackendEncoder:
        """Return the encoder of batches for the original in its current state; build it if the original has changed.

        Threads that call it at the same time may build it twice. There is no lock, which a fork could leave locked:
        each result is stored with the version of the original that it was built from.

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

    def _build(self) -> BackendEncoder | str:
        """Build the encoder from the original's JSON.

        Return the reason as a str if tokenweir does not reproduce it exactly.
        """
        try:
            tokenizer = Tokenizer.from_bytes(self._original.to_str().encode(), "huggingface")
        except (UnsupportedTokenizerError, TokenizerFileError) as error:
            return str(error)
        # The original may have ids that its JSON does not lead to.
        live = {token.content: i for i, token in self._original.get_added_tokens_decoder().items()}
        if live != {token.content: token.id for token in tokenizer.added_tokens}:
            return "added tokens with ids that its JSON does not give"
        return BackendEncoder(tokenizer, *sequence_encoder_of(tokenizer))

    def _changed_in_place(self) -> bool:
        """Whether a component that was handed out to a caller, such as the normalizer, was changed in place since then.

        If not, the components that no caller refers to any longer are forgotten.
        """
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
        """The parameters of `enable_truncation`, as in `tokenizers`; None while truncation is off."""
        return self._truncation and dict(self._truncation)

    @property
    def padding(self) -> dict[str, Any] | None:
        """The parameters of `enable_padding`, as in `tokenizers`; None while padding is off."""
        return self._padding and dict(self._padding)

    @property
    def encode_special_tokens(self) -> bool:
        """Whether names of special tokens in input text are encoded as plain text instead of as special tokens."""
        return self._encode_special_tokens

    def enable_truncation(self, *args: Any, **kwargs: Any) -> None:
        """Switch truncation of later encodings on; arguments as in `tokenizers`."""
        self._original.enable_truncation(*args, **kwargs)
        self._set(_truncation=self._original.truncation)

    def no_truncation(self) -> None:
        """Switch truncation off."""
        self._original.no_truncation()
        self._set(_truncation=None)

    def enable_padding(self, *args: Any, **kwargs: Any) -> None:
        """Switch padding of later encodings on; arguments as in `tokenizers`."""
        self._original.enable_padding(*args, **kwargs)
        self._set(_padding=self._original.padding)

    def no_padding(self) -> None:
        """Switch padding off."""
        self._original.no_padding()
        self._set(_padding=None)

    # -- encoding ------------------------------------------------------------------------------------------------------

    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Any:
        """Encode a text or a pair of texts, or lists of words if `is_pretokenized`; return an `Encoding`.

        Truncation and padding are applied if they are on.
        """

        def run(built: BackendEncoder) -> Encoding:
            given = [sequence_of(each, is_pretokenized) for each in ((sequence,) if pair is None else (sequence, pair))]
            return self._encoded(built, [given], add_special_tokens)[0]

        return self._run_or_fall_back("encode", run, sequence, pair, is_pretokenized, add_special_tokens)

    def encode_batch(self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True) -> Any:
        """Encode a list of texts and pairs of texts, as `encode` does; return a list of `Encoding` objects."""
        return self._encode_batch("encode_batch", input, is_pretokenized, add_special_tokens)

    def encode_batch_fast(self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True) -> Any:
        """Encode as `encode_batch`, but without offsets, word ids and token texts: they are (0, 0), None and empty."""
        return self._encode_batch("encode_batch_fast", input, is_pretokenized, add_special_tokens)

    def _encode_batch(self, call: str, input: Any, is_pretokenized: bool, add_special_tokens: bool) -> Any:
        def run(built: BackendEncoder) -> list[Encoding]:
            given = [sequences_of(each, is_pretokenized) for each in listed(input)]
            return self._encoded(built, given, add_special_tokens, offsets=call == "encode_batch")

        return self._run_or_fall_back(call, run, input, is_pretokenized, add_special_tokens)

    def _encoded(
        self, built: BackendEncoder, inputs: Sequence[Sequences], add_special_tokens: bool, *, offsets: bool = True
    ) -> list[Encoding]:
        found = built.encode(inputs, bool(add_special_tokens), self._truncation, offsets=offsets)
        pad(found, self._padding)
        return found

    def post_process(self, encoding: Any, pair: Any = None, add_special_tokens: bool = True) -> Any:
        """Truncate one encoding or a pair, join them, add special tokens, and pad; return the new encoding."""

        def run(built: BackendEncoder) -> Encoding:
            parts = [each.columns.copy() for each in (encoding, pair) if each is not None]
            found = built.post_process(parts, bool(add_special_tokens), self._truncation)
            pad([found], self._padding)
            return found

        if type(encoding) is Encoding:
            return run(self._state())
        return self._original.post_process(encoding, pair, add_special_tokens)

    # -- decoding ------------------------------------------------------------------------------------------------------

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str:
        """Decode ids to text. Ids beyond the vocabulary are skipped."""
        return self._run_or_fall_back(
            "decode", lambda built: _decoded(built.tokenizer, ids, skip_special_tokens), ids, skip_special_tokens
        )

    def decode_batch(self, sequences: Any, skip_special_tokens: bool = True) -> list[str]:
        """Decode each sequence of ids to a text, as `decode` does."""
        return self._run_or_fall_back(
            "decode_batch",
            lambda built: [_decoded(built.tokenizer, ids, skip_special_tokens) for ids in sequences],
            sequences,
            skip_special_tokens,
        )

    @property
    def tokenizer(self) -> Tokenizer | None:
        """tokenweir's tokenizer for the original in its current state; None if it does not reproduce the original exactly."""
        try:
            return self._state().tokenizer
        except Fallback:
            return None

    def _run_or_fall_back(self, call: str, run: Callable[[BackendEncoder], _T], *args: Any) -> _T:
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
        """Run `encode` in a worker thread; await the result."""
        return asyncio.to_thread(self.encode, *args, **kwargs)

    def async_encode_batch(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run `encode_batch` in a worker thread; await the result."""
        return asyncio.to_thread(self.encode_batch, *args, **kwargs)

    def async_encode_batch_fast(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run `encode_batch_fast` in a worker thread; await the result."""
        return asyncio.to_thread(self.encode_batch_fast, *args, **kwargs)

    def async_decode_batch(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run `decode_batch` in a worker thread; await the result."""
        return asyncio.to_thread(self.decode_batch, *args, **kwargs)

    # -- the object itself ---------------------------------------------------------------------------------------------

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class `tokenizers.Tokenizer`, so that `isinstance` accepts this object as one."""
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
    """Whether a value is a `Backend`; `isinstance` cannot tell, because a backend pretends to be a `tokenizers.Tokenizer`."""
    return issubclass(type(value), Backend)


def original_of(state: bytes) -> Any:
    """Restore a `tokenizers.Tokenizer` from the bytes of its `__getstate__`."""
    original = Original(tokenizers.models.BPE())
    original.__setstate__(state)
    return original


def _restored(kind: type[Backend], state: bytes, name: str) -> Backend:
    made: Backend = type.__call__(kind, original_of(state), name=name)
    return made


def _state_of(component: Any) -> object:
    """Return the state of a `tokenizers` component, to detect in-place changes.

    Of a model only its options, as the rest is large.
    """
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
