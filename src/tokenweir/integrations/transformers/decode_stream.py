"""`DecodeStream`: the interface of `tokenizers.decoders.DecodeStream` over tokenweir's stream."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from tokenizers.decoders import DecodeStream as Original

from tokenweir.encode.decode import DecodeStream as Stream
from tokenweir.integrations.counts import count
from tokenweir.integrations.transformers.backend import is_backend


class DecodeStream:
    """Incremental decoder of ids with the interface of `tokenizers.decoders.DecodeStream`.

    The text of all steps is that of the original library, with two exceptions, where it would be damaged: a character that the
    prompt's last ids leave unfinished comes once and whole, and characters of a run of byte tokens come as they are finished.
    Ids outside the vocabulary have no text.
    """

    def __init__(self, ids: Sequence[int] | None = None, skip_special_tokens: bool = False) -> None:
        """Create a stream.

        Args:
            ids: Ids that come before those of the steps, such as a prompt's; their text is not returned.
            skip_special_tokens: Leave out the text of special tokens.

        """
        self._ids = [] if ids is None else list(ids)
        self._skip_special_tokens = skip_special_tokens
        self._stream: Any = None
        self._size: int | None = None  # of the vocabulary; None for a stream of the original library

    def step(self, tokenizer: Any, id: int | Sequence[int]) -> str | None:
        """Decode the next id or ids; return the text that is complete by them, or None if there is no such text.

        The tokenizer has to be the same at each step.
        """
        if self._stream is None:
            self._begin(tokenizer)
        if self._size is None:
            there: str | None = self._stream.step(getattr(tokenizer, "_original", tokenizer), id)
            return there
        given = [id] if isinstance(id, int) else id
        if any(i < 0 for i in given):
            raise OverflowError("can't convert negative int to unsigned")
        text: str = self._stream.feed([i for i in given if i < self._size])
        return text or None

    def _begin(self, tokenizer: Any) -> None:
        found = tokenizer.tokenizer if is_backend(tokenizer) else None
        if found is None:
            count("", "DecodeStream", "not a tokenizer of tokenweir")
            self._stream = Original(self._ids, self._skip_special_tokens)
            return
        count("", "DecodeStream")
        self._size = found.vocab_size
        prompt = [i for i in self._ids if 0 <= i < found.vocab_size]
        skip = bool(self._skip_special_tokens)
        self._stream = Stream(found, prompt_ids=prompt, skip_special_tokens=skip)

    def __copy__(self) -> DecodeStream:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> DecodeStream:
        copied = DecodeStream(self._ids, self._skip_special_tokens)
        copied._stream = self._stream.copy() if isinstance(self._stream, Stream) else copy.deepcopy(self._stream, memo)
        copied._size = self._size
        return copied
