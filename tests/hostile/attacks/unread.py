"""Answers that are asked for and not read."""

from __future__ import annotations

import asyncio
import json
import socket
from itertools import cycle

from serving.clients import handshake, masked
from target import Target, hold, post

ESTABLISHED = 1
"""The state of a connection (`tcpi_state` of Linux) that neither side has ended."""
IDS = 340_000
"""Ids of a request of a megabyte: two digits and a comma each."""


async def large_answers(target: Target) -> None:
    """Ask for the tokens of a megabyte of ids, and read nothing of the answers."""
    request = post("/detokenize", b'{"return_tokens": true, "tokens": [' + b",".join([b"99"] * IDS) + b"]}")

    async def one() -> None:
        async with target.connection(small=True) as (_, writer):
            writer.transport.pause_reading()
            writer.write(request)
            target.counts["asked"] += 1
            await target.until_ended(_closed(writer), "an unread answer")

    await hold(12, one, 0.2)


async def streams(target: Target) -> None:
    """Ask for answers without end over websockets and server-sent events, and read nothing."""
    over_websocket = cycle((False, True))
    asked = {"model": "endless", "input": "Go on.", "max_output_tokens": 8000, "stream": True}

    async def one() -> None:
        async with target.connection(small=True) as (reader, writer):
            if next(over_websocket):
                writer.write(handshake())
                await reader.readuntil(b"\r\n\r\n")
                writer.write(masked(json.dumps({"type": "response.create"} | asked)))
            else:
                writer.write(post("/v1/responses", asked))
            writer.transport.pause_reading()
            target.counts["asked"] += 1
            await asyncio.sleep(60)  # what is not read fits into the kernel's buffers, so the server need not end it

    await hold(20, one, 0.1)


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Wait until the server has closed a connection, without reading from it."""
    raw = writer.get_extra_info("socket")
    while raw.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 and _state(raw) == ESTABLISHED:  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0.2)


def _state(raw: socket.socket) -> int:
    return raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
