"""Bytes that are almost HTTP, or almost websocket frames."""

from __future__ import annotations

import asyncio

from serving.clients import handshake
from target import WRONG, Target, hold, post

BODY = b'{"prompt": "a"}'
CL = b"Content-Length: %d\r\n" % len(BODY)
JSON = b"Content-Type: application/json\r\n"
POST = b"POST /tokenize HTTP/1.1\r\nHost: 127.0.0.1\r\n" + JSON
CHUNKED = b"Transfer-Encoding: chunked\r\n"
GET = b"GET /health HTTP/1.1\r\n"
HOST = b"Host: 127.0.0.1\r\n"

REFUSED = [
    POST + CL + CHUNKED + b"\r\n0\r\n\r\n",
    POST + CL + b"Content-Length: 3\r\n\r\n" + BODY,
    POST + b"Content-Length: -1\r\n\r\n",
    POST + b"Content-Length: +5\r\n\r\nabcde",
    POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    POST + CHUNKED + b"\r\n-1\r\n\r\n",
    POST + CHUNKED + b"\r\nfffffffffffffffff\r\nx\r\n",
    POST + b"X: a\r\n b\r\n" + CL + b"\r\n" + BODY,
    POST + b"Content-Encoding: gzip\r\n" + CL + b"\r\n" + BODY,
    GET + HOST + HOST + b"\r\n",
    GET + b"\r\n",
    GET + b"Host: evil.example\r\n\r\n",
    b"GET http://evil.example/health HTTP/1.1\r\n" + HOST + b"\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
    b"GET /../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /page/..%2f..%2fserve.py HTTP/1.1\r\n" + HOST + b"\r\n",
    GET + HOST + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
    handshake().replace(b"Upgrade: websocket", b"Upgrade: h2c"),
    handshake().replace(b"\r\n\r\n", b"\r\nOrigin: http://evil.example\r\n\r\n"),
    handshake().replace(b"Version: 13", b"Version: 12"),
]
"""Requests that must not succeed: no status 200, no switch of protocols, and no 500."""
FRAMES = [
    bytes([0x81, 0xFF]) + b"\x7f" + b"\xff" * 7 + bytes(4),
    bytes([0x80, 0x80]) + bytes(4),
    bytes([0xC1, 0x80]) + bytes(4),
    bytes([0x81, 0x05]) + b"hello",
    bytes([0x01, 0x80, 0, 0, 0, 0]) + bytes([0x00, 0x80, 0, 0, 0, 0]) * 5000,
    bytes([0x88, 0x81]) + bytes(4) + b"x",
    bytes([0x81, 0x82]) + bytes(4) + b"\xff\xfe",
]
"""Frames that break the standard, or a bound."""


async def http(target: Target) -> None:
    """Send each malformed request, which must not succeed, also in pipelines."""
    turn = iter(range(1 << 62))
    pipeline = (GET + HOST + b"\r\n") * 300

    async def one() -> None:
        place = next(turn) % (len(REFUSED) + 1)
        if place == len(REFUSED):
            await target.ask(pipeline + post("/tokenize", BODY))
            return
        async with target.connection() as (reader, writer):
            writer.write(REFUSED[place])
            answer = b""
            async with asyncio.timeout(30):
                try:
                    answer = await reader.read(1 << 16)
                except ConnectionError:
                    target.counts["cut off"] += 1
            status = answer[9:12].decode("latin-1") if answer[:7] == b"HTTP/1." else "no answer"
            target.counts[status] += 1
            if status in ("101", "200", "500"):
                target.counts[f"{WRONG}: request {place} got {status}"] += 1

    await hold(3, one, 0.05)


async def frames(target: Target) -> None:
    """Send each bad frame over a websocket of its own; the server must close it."""
    turn = iter(range(1 << 62))

    async def one() -> None:
        frame = FRAMES[next(turn) % len(FRAMES)]
        async with target.connection() as (reader, writer):
            writer.write(handshake())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(frame)
            async with asyncio.timeout(30):
                while await reader.read(1 << 16):
                    pass
            target.counts["closed"] += 1

    await hold(2, one, 0.1)
