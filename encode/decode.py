"""Incremental decoding: ids in, whole characters out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokenweir.encode import _core

if TYPE_CHECKING:
    from tokenweir.encode.tokenizer import Tokenizer

BYTE_FALLBACK_MODES = ("eager", "huggingface")


def check_byte_fallback(mode: str) -> None:
    """Refuse an unknown `byte_fallback` mode.

    Both modes give the same text for a byte-level vocabulary, which has no `<0xE4>` tokens.
    """
    if mode not in BYTE_FALLBACK_MODES:
        raise ValueError(f"byte_fallback must be one of {BYTE_FALLBACK_MODES}, not {mode!r}")


class DecodeStream(_core.DecodeStream):
    """Decode ids one by one; every returned piece is final.

    For any ids, `"".join(step(i) for i in ids) + flush()` equals `tok.decode(ids)` with the same options: the bytes of
    all tokens, read as UTF-8 with Python's `errors="replace"` rule. At most 3 bytes are held back, and a step costs the
    same after ten ids or a million.

    Args:
        tok: The tokenizer whose ids these are.
        prompt_ids: What comes before, of which the last few are looked at. The output then is the decode of everything,
            less the characters that were complete in the prompt; so a character cut at the prompt's end comes out whole.
        skip_special_tokens: Control tokens decode to nothing.
        byte_fallback: How byte-fallback tokens decode; see `Tokenizer.decode`.

    Raises:
        TokenIdError: For an id outside the vocabulary; the stream stays as it was.

    """

    def __init__(
        self,
        tok: Tokenizer,
        *,
        prompt_ids: Sequence[int] = (),
        skip_special_tokens: bool = True,
        byte_fallback: str = "eager",
    ) -> None:
        check_byte_fallback(byte_fallback)
        super().__init__(tok.token_table, prompt_ids, skip_special_tokens)

    def copy(self) -> DecodeStream:
        """Return an independent stream in the same state."""
        other = DecodeStream.__new__(DecodeStream)
        _core.DecodeStream.__init__(other, self)
        return other
