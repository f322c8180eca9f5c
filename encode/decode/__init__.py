"""Incremental decoding: ids in, whole characters out. One sequence here, many at once in `batch.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokenweir.encode import _core
from tokenweir.encode.base.options import ByteFallback, check_byte_fallback, check_flags
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer, core_of
from tokenweir.encode.values.ids import Ids, as_ids, no_sequence


class DecodeStream(_core.DecodeStream):
    """Incremental decoding, id by id; every returned piece is final.

    For any ids, `"".join(step(i) for i in ids) + flush()` equals `tokenizer.decode(ids)` with the same options. The cost of
    a step does not depend on the number of earlier ids. Only text that later ids can change is held back: at most 3 bytes
    of an incomplete character; the part that depends on whether a token is the last; and with
    `byte_fallback="huggingface"` a run of byte tokens, until it ends or can no longer be UTF-8.

    `flush` returns the held text, as at the end of the text. Later ids are decoded as after a prompt.

    Args:
        tokenizer: The tokenizer of the ids.
        prompt_ids: The ids before the first step. The output is then the decode of prompt and ids, without the characters
            that are complete in the prompt. So a leading space stays, and a character that is cut at the prompt's end is
            returned whole. Cost: reads the prompt's head up to its first visible character, and its tail back to the last
            one or, with `byte_fallback="huggingface"`, to the start of the final run of byte tokens. Decoders that replace
            or strip inside the joined text read all ids.
        skip_special_tokens: Decode control tokens to nothing.
        byte_fallback: The rule for byte-fallback tokens; see `Tokenizer.decode`.

    Raises:
        TokenIdError: An id is outside the vocabulary; the stream is unchanged.
        TypeError: `prompt_ids` are not ids, or a flag is not a bool.

    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        prompt_ids: Sequence[int] = (),
        skip_special_tokens: bool = True,
        byte_fallback: ByteFallback = "eager",
    ) -> None:
        check_tokenizer(tokenizer)
        check_byte_fallback(byte_fallback)
        check_flags(skip_special_tokens=skip_special_tokens)
        super().__init__(
            core_of(tokenizer).tokens,
            as_ids(prompt_ids, "prompt_ids"),
            skip_special_tokens,
            byte_fallback == "huggingface",
        )
        self._given = tokenizer, skip_special_tokens, byte_fallback

    def feed(self, ids: Ids) -> str:
        """Take several ids; return the characters that they complete.

        Raises:
            TokenIdError: An id is outside the vocabulary; the stream is unchanged.
            TypeError: `ids` are not ids.

        """
        if type(ids) is not list:
            ids = as_ids(ids, "ids")
        try:
            return super().feed(ids)
        except TypeError:
            raise no_sequence(ids, "ids") from None

    def reset(self, prompt_ids: Sequence[int] = ()) -> None:
        """Reset to the state of a new object, at the beginning of a text or after `prompt_ids`."""
        super().reset(as_ids(prompt_ids, "prompt_ids"))

    def copy(self) -> DecodeStream:
        """Return an independent stream with the same state."""
        other = DecodeStream.__new__(DecodeStream)
        _core.DecodeStream.__init__(other, self)
        other._given = self._given
        return other

    def __repr__(self) -> str:
        tokenizer, skip_special_tokens, byte_fallback = self._given
        return f"DecodeStream({tokenizer}, {skip_special_tokens=}, {byte_fallback=})"

    def __reduce__(self) -> tuple[Callable[..., DecodeStream], tuple[object, ...]]:
        return _restored, (*self._given, self.state())


def _restored(
    tokenizer: Tokenizer, skip_special_tokens: bool, byte_fallback: ByteFallback, state: bytes
) -> DecodeStream:
    """Build the stream that a pickle describes; `state` is the result of `state()`."""
    stream = DecodeStream(tokenizer, skip_special_tokens=skip_special_tokens, byte_fallback=byte_fallback)
    stream.restore(state)
    return stream
