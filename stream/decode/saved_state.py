"""Serialised decoder states: a version, a digest of tokenizer and options, a checksum, and the state; and its checks."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from tokenweir.encode._core import AnswerText
from tokenweir.encode.errors import StateError
from tokenweir.stream.decode.alignment import Aligner
from tokenweir.stream.decode.parsers.saved import Count, check_restored
from tokenweir.stream.decode.parsers.splitter import Splitter
from tokenweir.stream.decode.router import Router
from tokenweir.stream.events.deltas import Finish

VERSION = 5
"""Raised with every change to the shape of a state. 1 is that of tokenweir 0.2.0's first builds."""
MAGIC = b"twd"  # before the version
DIGEST = 16  # bytes of it


class DecoderState(Struct, frozen=True, array_like=True):
    """State of a `ChatDecoder` as plain data.

    Attributes:
        styles: The names of the detected styles of thinking and of tool calls.
        core: The state of the core's detokenizer.
        splitter: The state of the splitter, as its `state` returns it.
        router: The state of the router.
        limits: The state of the token limits.
        aligner: The state of the aligner; None without alignment.
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
    """Serialise a state with a checksum.

    Args:
        state: The state.
        belongs: The digest of the decoder's tokenizer and options, which `read_state` compares.

    """
    data = MAGIC + bytes([VERSION]) + belongs + msgspec.msgpack.encode(state)
    return data + _check(data)


def read_state(data: bytes, belongs: bytes) -> DecoderState:
    """Deserialise a state that `write_state` returned.

    Args:
        data: The serialised state.
        belongs: The digest of the tokenizer and options of the decoder that is to continue.

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


def check_consistent(
    answer: AnswerText,
    router: Router,
    splitter: Splitter | None,
    aligner: Aligner | None,
    *,
    finished: bool,
    vocab_size: int,
) -> None:
    """Raise `ValueError` if the restored parts of a decoder do not fit each other, as no real answer leaves them."""
    if not finished:
        held = "" if splitter is None else splitter.held
        check_restored(len(held.encode()) == answer.awaited, "other text is held than what was given")
        skippable = None if splitter is None else splitter.skippable
        check_restored(skippable is None or skippable.held or not held, "text passes before what is held")
        check_restored(not router.stopped and answer.matched is None, "the answer goes on behind its end")
    ids = [token_id for delta in router.out for token_id in delta.token_ids]
    check_restored(all(0 <= token_id < vocab_size for token_id in ids), "a delta has an id outside of the vocabulary")
    check_restored(not any(isinstance(delta, Finish) for delta in router.out), "the end of an answer waits")
    kept = answer.kept + len(ids)
    check_restored(aligner is None or aligner.waiting == kept, "other logprobs wait than ids")
    check_restored(aligner is None or answer.recorded == len(ids), "other ids are marked than those of the deltas")


def _check(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST, person=b"tokenweir state").digest()
