"""A socket is not read while some of its input waits for its turn."""

import asyncio

import pytest

from tokenweir.stream.serve.limits.turns import SHARE, InputTurns
from tokenweir.stream.serve.transport.paced_input import PIECE_BYTES, HeldFlow, PacedInput

pytestmark = pytest.mark.anyio


class Socket:
    """A transport of which is read, or not."""

    reads = True

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True


def made(seconds=SHARE / 2):
    """Input whose pieces take so long, its socket and flow control, and the pieces that were parsed."""
    now, pieces, socket = [0.0], [], Socket()

    def parse(data):
        now[0] += seconds
        pieces.append(data)

    flow = HeldFlow(socket)
    flow.input = PacedInput(InputTurns(clock=lambda: now[0]), socket, flow, parse)
    return flow.input, socket, flow, pieces


async def drained(pieces, size):
    async with asyncio.timeout(10):
        while sum(map(len, pieces)) < size:  # noqa: ASYNC110 - counts turns
            await asyncio.sleep(0)


async def test_short_input_is_parsed_at_once():
    paced, socket, _, pieces = made()
    paced.put("client", b"x" * PIECE_BYTES)
    assert pieces == [b"x" * PIECE_BYTES] and socket.reads and not paced.held


async def test_long_input_is_parsed_in_pieces_and_in_order():
    paced, socket, _, pieces = made()
    data = bytes(range(256)) * 64
    paced.put("client", data)
    assert len(pieces) == 2 and not socket.reads
    paced.put("client", b"what the transport had read before")
    await drained(pieces, len(data) + 34)
    assert b"".join(pieces) == data + b"what the transport had read before"
    assert max(map(len, pieces)) == PIECE_BYTES
    assert socket.reads and not paced.held


async def test_what_is_cheap_is_parsed_whole():
    paced, socket, _, pieces = made(0.0)
    paced.put("client", b"x" * (1 << 20))
    assert sum(map(len, pieces)) == 1 << 20 and socket.reads


async def test_uvicorn_cannot_resume_reading_meanwhile():
    paced, socket, flow, pieces = made()
    flow.pause_reading()
    paced.put("client", b"x" * 5 * PIECE_BYTES)
    flow.resume_reading()
    assert not socket.reads
    await drained(pieces, 5 * PIECE_BYTES)
    assert socket.reads


async def test_uvicorns_own_pause_outlives_the_wait():
    paced, socket, flow, pieces = made()
    paced.put("client", b"x" * 5 * PIECE_BYTES)
    flow.pause_reading()
    await drained(pieces, 5 * PIECE_BYTES)
    await asyncio.sleep(0)
    assert not socket.reads
    flow.resume_reading()
    assert socket.reads


async def test_what_waits_can_be_dropped():
    paced, socket, _, pieces = made()
    paced.put("client", b"x" * 5 * PIECE_BYTES)
    paced.clear()
    assert socket.reads
    await asyncio.sleep(0)
    paced.put("client", b"y")
    assert b"".join(pieces).endswith(b"xy") and len(pieces) == 3
    paced.close()
    paced.put("client", b"z")
    assert len(pieces) == 3


async def test_a_piece_ends_behind_the_end_and_the_rest_can_wait():
    pieces, socket, waits = [], Socket(), [False, True, False, False]

    def parse(data):
        pieces.append(data)
        return waits[len(pieces) - 1]

    flow = HeldFlow(socket)
    paced = flow.input = PacedInput(InputTurns(), socket, flow, parse, end=b"||")
    paced.put("client", b"a||b||c||d")
    assert pieces == [b"a||", b"b||"] and not socket.reads
    paced.put("client", b"e")
    await asyncio.sleep(0)
    assert len(pieces) == 2
    paced.go_on("client")
    assert pieces[2:] == [b"c||", b"de"] and socket.reads
    paced.go_on("client")
    assert len(pieces) == 4
