"""Connections that cost a place and send little or nothing."""

from __future__ import annotations

import asyncio
import socket
import struct
from itertools import cycle

from serving.clients import handshake
from target import Target, head, hold, post

SILENT = 1100
UNREAD = 1100
TRICKLED = 200
PIPELINES, PIPELINED = 240, 640
ASKED = {"model": "endless", "messages": [{"role": "user", "content": "Go on."}], "stream": True}


async def silent(target: Target) -> None:
    """Hold sockets that never send a byte, more than the server takes altogether."""

    async def one() -> None:
        async with target.connection() as (reader, _):
            target.counts["opened"] += 1
            await target.until_ended(reader.read(), "a silent socket")

    await hold(SILENT, one, 0.004)


async def unread_bodies(target: Target) -> None:
    """Announce a large body to a path that reads none, and send one byte of it after the answer."""

    async def one() -> None:
        async with target.connection() as (reader, writer):
            target.counts["opened"] += 1
            writer.write(head("/nothing", 100_000_000).replace(b"Connection: close\r\n", b""))
            answer = await reader.readuntil(b"\r\n\r\n")
            target.counts[answer[9:12].decode()] += 1
            await asyncio.sleep(0.1)
            writer.write(b"x")
            await target.until_ended(_end(reader), "a socket with an unread body")

    await hold(UNREAD, one, 0.004)


async def trickled(target: Target) -> None:
    """Send heads and bodies a byte a second."""
    sizes = cycle((None, 60))

    async def one() -> None:
        whole = (head("/tokenize", 5000) + b'{"prompt": "' + b"a" * 4000)[: next(sizes)]
        start = whole.find(b"\r\n\r\n") + 4 if len(whole) > 60 else 4
        async with target.connection() as (reader, writer):
            target.counts["opened"] += 1
            writer.write(whole[:start])
            trickle = asyncio.create_task(_trickle(writer, whole[start:]))
            try:
                await target.until_ended(_end(reader), "a trickled request")
            finally:
                trickle.cancel()

    await hold(TRICKLED, one)


async def resets(target: Target) -> None:
    """Connect, send a part of a request, and reset."""

    async def one() -> None:
        async with target.connection() as (_, writer):
            target.counts["opened"] += 1
            writer.write(head("/tokenize", 10)[:50])
            await asyncio.sleep(0)
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    await hold(10, one, 0.02)


async def pipelines(target: Target) -> None:
    """Send hundreds of requests on each socket, behind one that takes long, and read no answer."""
    first = post("/v1/chat/completions", ASKED).replace(b"Connection: close\r\n", b"")
    requests = b"GET / HTTP/1.1\r\nHost:a\r\n\r\n" * PIPELINED
    begins = cycle((b"", first))

    async def one() -> None:
        async with target.connection(small=True) as (_, writer):
            writer.transport.pause_reading()
            writer.write(next(begins) + requests)
            target.counts["requests"] += PIPELINED
            await asyncio.sleep(20)

    await hold(PIPELINES, one, 0.02)


async def pings(target: Target) -> None:
    """Send pings over websockets and read no pong."""
    frame = bytes([0x89, 0x80 | 125, 0, 0, 0, 0]) + b"x" * 125

    async def one() -> None:
        async with target.connection(small=True) as (reader, writer):
            writer.write(handshake())
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.pause_reading()
            for _ in range(200):
                writer.write(frame * 100)
                target.counts["pings"] += 100
                async with asyncio.timeout(10):
                    await writer.drain()
                await asyncio.sleep(0.05)

    await hold(4, one, 0.1)


async def _end(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


async def _trickle(writer: asyncio.StreamWriter, data: bytes) -> None:
    for place in range(len(data)):
        writer.write(data[place : place + 1])
        await asyncio.sleep(1)
