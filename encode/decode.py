"""Incremental decoding: ids in, whole characters out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from tokenweir.encode import _core
from tokenweir.encode.ids import Ids, as_ids, no_sequence
from tokenweir.encode.options import check_flags

if TYPE_CHECKING:
    from tokenweir.encode.tokenizer import Tokenizer

ByteFallback = Literal["eager", "huggingface"]
"""How byte-fallback tokens decode; see `Tokenizer.decode`."""

BYTE_FALLBACK_MODES = get_args(ByteFallback)


def check_byte_fallback(mode: str) -> None:
    """Refuse an unknown `byte_fallback` mode."""
    if mode not in BYTE_FALLBACK_MODES:
        raise ValueError(f"byte_fallback must be one of {BYTE_FALLBACK_MODES}, not {mode!r}")


def check_tokenizer(tokenizer: object, name: str = "tokenizer") -> None:
    """Refuse what is no tokenizer; `name` is what it is called where it was given."""
    if not hasattr(tokenizer, "token_table"):
        kind = type(tokenizer).__name__
        raise TypeError(f"{name} is a {kind}, not a Tokenizer such as Tokenizer.from_file() gives")


class DecodeStream(_core.DecodeStream):
    """Decode ids one by one; every returned piece is final.

    For any ids, `"".join(step(i) for i in ids) + flush()` equals `tokenizer.decode(ids)` with the same options, and a step
    costs the same after ten ids or a million. Only that is held back which later ids can change: the at most 3 bytes of
    an unfinished character; what a decoder's last token or the end of its text lacks; and with
    `byte_fallback="huggingface"` a run of byte tokens, until it ends or cannot be UTF-8 any more.

    `flush` ends what is held as the end of the text would. If ids come after it, they go on as after a prompt.

    Args:
        tokenizer: The tokenizer whose ids these are.
        prompt_ids: What comes before. The output then is the decode of everything, less the characters that were
            complete in the prompt; so a leading space stays, and a character cut at the prompt's end comes out whole.
            Only its first ids are looked at, until there is text, and its last ones, back to the last text or, with
            `byte_fallback="huggingface"`, to the beginning of the run of byte tokens that ends it; all of it is looked
            at only for decoders that replace or strip inside the joined text.
        skip_special_tokens: Control tokens decode to nothing.
        byte_fallback: How byte-fallback tokens decode; see `Tokenizer.decode`.

    Raises:
        TokenIdError: For an id outside the vocabulary; the stream stays as it was.
        TypeError: For `prompt_ids` that are no ids, or a flag that is no bool.

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
            tokenizer.token_table, as_ids(prompt_ids, "prompt_ids"), skip_special_tokens, byte_fallback == "huggingface"
        )
        self._given = tokenizer, skip_special_tokens, byte_fallback

    def feed(self, ids: Ids) -> str:
        """Take several ids; return the characters that they complete.

        Raises:
            TokenIdError: One is outside the vocabulary; the stream stays as it was.
            TypeError: They are no ids.

        """
        if type(ids) is not list:
            ids = as_ids(ids, "ids")
        try:
            return super().feed(ids)
        except TypeError:
            raise no_sequence(ids, "ids") from None

    def reset(self, prompt_ids: Sequence[int] = ()) -> None:
        """Begin again, as a new object would."""
        super().reset(as_ids(prompt_ids, "prompt_ids"))

    def copy(self) -> DecodeStream:
        """Return an independent stream in the same state."""
        other = DecodeStream.__new__(DecodeStream)
        _core.DecodeStream.__init__(other, self)
        other._given = self._given
        return other

    def __reduce__(self) -> tuple[Callable[..., DecodeStream], tuple[object, ...]]:
        return _restored, (*self._given, self.state())


def _restored(
    tokenizer: Tokenizer, skip_special_tokens: bool, byte_fallback: ByteFallback, state: bytes
) -> DecodeStream:
    """The stream of a pickle."""
    stream = DecodeStream(tokenizer, skip_special_tokens=skip_special_tokens, byte_fallback=byte_fallback)
    stream.restore(state)
    return stream
