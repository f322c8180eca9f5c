"""A decoder's state as bytes: with a version, what it belongs to, and a check of its own."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from tokenweir.encode.errors import StateError
from tokenweir.stream.decode.parsers.base import Count

VERSION = 1
MAGIC = b"twd"  # before the version
DIGEST = 16  # bytes of it


class DecoderState(Struct, frozen=True, array_like=True):
    """What a `ChatDecoder` is made of, as plain data.

    Attributes:
        styles: The names of the styles of thinking and of tool calls that were found.
        core: What the core holds.
        splitter: The splitter's state.
        router: The router's.
        limits: The limits'.
        aligner: The aligner's, if there is one.
        prompt_tokens: How many ids the prompt had.
        finished: Whether the answer has ended.
        ignored: How many ids came after that.

    """

    styles: tuple[str | None, str | None]
    core: bytes
    splitter: Any
    router: Any
    limits: Any
    aligner: Any
    prompt_tokens: Count
    finished: bool
    ignored: Count


def write_state(state: DecoderState, belongs: bytes) -> bytes:
    """Write a state of a decoder whose tokenizer and options `belongs` stands for."""
    data = MAGIC + bytes([VERSION]) + belongs + msgspec.msgpack.encode(state)
    return data + _check(data)


def read_state(data: bytes, belongs: bytes) -> DecoderState:
    """Read a state that `write_state` wrote.

    Raises:
        StateError: It is damaged, or of another version, tokenizer or other options.

    """
    if not isinstance(data, bytes) or data[: len(MAGIC)] != MAGIC or len(data) < len(MAGIC) + 1 + 2 * DIGEST:
        raise StateError("this is no state of a decoder, or it is cut off")
    if (version := data[len(MAGIC)]) != VERSION:
        raise StateError(f"the state is of version {version}; this is version {VERSION}")
    data, check = data[:-DIGEST], data[-DIGEST:]
    if check != _check(data):
        raise StateError("the state is damaged: its check does not match")
    start = len(MAGIC) + 1
    if data[start : start + DIGEST] != belongs:
        raise StateError("the state is of a decoder with another tokenizer or other options")
    try:
        return msgspec.msgpack.decode(data[start + DIGEST :], type=DecoderState)
    except msgspec.MsgspecError as error:
        raise StateError(f"the state is damaged: {error}") from error


def _check(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST, person=b"tokenweir state").digest()
