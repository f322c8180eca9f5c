"""Serialised decoder states: a version, a digest of tokenizer and options, a checksum, and the state."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from tokenweir.encode.errors import StateError
from tokenweir.stream.decode.parsers.base import Count

VERSION = 2
"""Raised with every change to the shape of a state. 1 is that of tokenweir 0.2.0's first builds."""
MAGIC = b"twd"  # before the version
DIGEST = 16  # bytes of it


class DecoderState(Struct, frozen=True, array_like=True):
    """State of a `ChatDecoder` as plain data.

    Attributes:
        styles: The names of the detected styles of thinking and of tool calls.
        prompt_tokens: Number of ids of the prompt.
        finished: Whether the answer has ended.
        ignored: Number of ids after the end.

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
    """Serialise a state; `belongs` is the digest of the decoder's tokenizer and options."""
    data = MAGIC + bytes([VERSION]) + belongs + msgspec.msgpack.encode(state)
    return data + _check(data)


def read_state(data: bytes, belongs: bytes) -> DecoderState:
    """Deserialise a state from `write_state`.

    Raises:
        StateError: The state is damaged, or has another version, tokenizer or other options.

    """
    if not isinstance(data, bytes) or data[: len(MAGIC)] != MAGIC or len(data) < len(MAGIC) + 1 + 2 * DIGEST:
        raise StateError("this is no state of a decoder, or it is cut off")
    if (version := data[len(MAGIC)]) != VERSION:
        raise StateError(
            f"the state is of version {version}, which another release of tokenweir wrote; this is version {VERSION}"
        )
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
