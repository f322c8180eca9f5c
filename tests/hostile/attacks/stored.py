"""Attacks on the memory of conversations, stored and live, and of responses in the background."""

from __future__ import annotations

import asyncio
import json

from serving.clients import handshake, masked
from target import Target, hold, post, send

LARGE = 1_000_000
SOCKETS = 200


async def idle_sockets(target: Target) -> None:
    """Have a conversation of a megabyte over each of many websockets, and leave them open."""
    text = "\U0001f600" + "a" * LARGE
    asked = {"type": "response.create", "model": "quick", "input": text, "store": False, "max_output_tokens": 1}
    frame = masked(json.dumps(asked))

    async def one() -> None:
        async with target.connection() as (reader, writer):
            writer.write(handshake())
            if b" 101 " not in await reader.readuntil(b"\r\n\r\n"):
                target.counts["refused"] += 1
                await asyncio.sleep(1)
                return
            writer.write(frame)
            target.counts["conversations"] += 1
            while await reader.read(1 << 16):
                pass
            target.counts["ended by the server"] += 1

    await hold(SOCKETS, one, 0.05)


async def greedy(target: Target) -> None:
    """Store one conversation of a megabyte after the other."""
    request = post("/v1/responses", {"model": "quick", "input": "a" * LARGE, "store": True, "max_output_tokens": 1})
    await send(target, [request], 2, 0.05)


async def background(target: Target) -> None:
    """Begin responses in the background and leave them."""
    asked = {"model": "endless", "input": "Go on.", "background": True, "stream": True, "max_output_tokens": 8000}

    async def one() -> None:
        async with target.connection() as (reader, writer):
            writer.write(post("/v1/responses", asked))
            answer = await reader.readuntil(b"\r\n\r\n")
            target.counts[answer[9:12].decode()] += 1
            await reader.read(200)

    await hold(4, one, 0.1)
