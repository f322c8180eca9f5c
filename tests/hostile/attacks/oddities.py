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
KEY = b"Sec-WebSocket-Key: "
HANDSHAKES = [
    handshake().replace(b"Version: 13", b"Version: 12"),
    handshake().replace(b"Sec-WebSocket-Version: 13\r\n", b""),
    handshake().replace(KEY, b"X: "),
    handshake().replace(KEY, KEY + b"a"),
    handshake().replace(KEY, KEY + b"AAAA\r\n" + KEY),
    handshake().replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Protocol: \r\n\r\n"),
    handshake().replace(b"\r\n\r\n", b'\r\nSec-WebSocket-Protocol: "a"\r\n\r\n'),
    handshake().replace(b"GET", b"POST", 1),
    handshake().replace(b"GET", b"HEAD", 1),
]
"""Handshakes of which each must be refused."""
ENDPOINTS = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/tokenize",
    "/detokenize",
    "/v1/chat/completions/render",
    "/v1/chat/completions/derender",
    "/v1/messages/render",
]
LONG_TEXT = b"a" * 40_000
BODIES = [
    b'{"model": "\xff"}',
    b'{"\xff": 1}',
    b'{"messages": [{"role": "user", "content": "%b\xf0\x9f"}], "prompt": "\xff", "input": "\xff"}' % LONG_TEXT,
]
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


async def handshakes(target: Target) -> None:
    """Send each malformed handshake, which must be refused, and not by an internal error."""
    turn = iter(range(1 << 62))

    async def one() -> None:
        place = next(turn) % len(HANDSHAKES)
        status, _ = await target.ask(HANDSHAKES[place], 10)
        if status in (101, 200, 500):
            target.counts[f"{WRONG}: handshake {place} got {status}"] += 1

    await hold(3, one, 0.02)


async def not_utf8(target: Target) -> None:
    """Send bodies that are not UTF-8 to every endpoint."""
    turn = iter(range(1 << 62))

    async def one() -> None:
        place = next(turn)
        path, body = ENDPOINTS[place % len(ENDPOINTS)], BODIES[place // len(ENDPOINTS) % len(BODIES)]
        status, _ = await target.post(path, body)
        if status not in (0, 400, 408, 429, 503):
            target.counts[f"{WRONG}: {path} answered {status}"] += 1

    await hold(3, one, 0.02)


async def upgrades(target: Target) -> None:
    """Send a handshake right behind a request; its answer must not come first."""
    asked = {"model": "quick", "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
    request = post("/v1/chat/completions", asked).replace(b"Connection: close\r\n", b"")

    async def one() -> None:
        async with target.connection() as (reader, writer):
            writer.write(request + handshake())
            async with asyncio.timeout(30):
                answer = await reader.readuntil(b"\r\n\r\n")
            target.counts[status := answer[9:12].decode("latin-1")] += 1
            target.counts[f"{WRONG}: the upgrade came first"] += status == "101"

    await hold(3, one, 0.02)


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
