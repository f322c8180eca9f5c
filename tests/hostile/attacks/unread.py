"""Answers that are asked for and not read."""

from __future__ import annotations

import asyncio
import json

from serving.clients import handshake, masked
from target import Target, hold, post

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
            async with asyncio.timeout(120):
                while not writer.transport.is_closing():
                    await asyncio.sleep(1)
                    writer.write(b"\r")  # tells whether the server still holds the connection

    await hold(12, one, 0.2)


async def streams(target: Target) -> None:
    """Ask for answers without end over websockets and server-sent events, and read nothing."""
    turn = iter(range(1 << 62))
    asked = {"model": "endless", "input": "Go on.", "max_output_tokens": 8000, "stream": True}

    async def one() -> None:
        async with target.connection(small=True) as (reader, writer):
            if next(turn) % 2:
                writer.write(handshake())
                await reader.readuntil(b"\r\n\r\n")
                writer.write(masked(json.dumps({"type": "response.create"} | asked)))
            else:
                writer.write(post("/v1/responses", asked))
            writer.transport.pause_reading()
            target.counts["asked"] += 1
            await asyncio.sleep(60)

    await hold(20, one, 0.1)
