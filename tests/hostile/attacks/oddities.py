"""Bytes that are almost HTTP, or almost websocket frames."""

from __future__ import annotations

import asyncio
from itertools import cycle, product

from serving.clients import handshake
from target import Target, hold, post, send

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
    """Send each malformed request, which must not succeed, and good ones in pipelines."""
    pipeline = (GET + HOST + b"\r\n") * 300 + post("/tokenize", BODY)
    refused = send(target, REFUSED, 3, 0.05, _succeeded, whole=False)
    await asyncio.gather(refused, send(target, [pipeline], 1, 0.5))


async def handshakes(target: Target) -> None:
    """Send each malformed handshake, which must be refused, and not by an internal error."""
    await send(target, HANDSHAKES, 3, 0.02, _succeeded, whole=False)


def _succeeded(place: int, status: int, _body: bytes) -> str:
    return f"request {place} got {status}" if status in (101, 200, 500) else ""


async def not_utf8(target: Target) -> None:
    """Send bodies that are not UTF-8 to every endpoint."""
    cases = list(product(ENDPOINTS, BODIES))

    def taken(place: int, status: int, _body: bytes) -> str:
        return "" if status in (0, 400, 408, 429, 503) else f"{cases[place][0]} answered {status}"

    await send(target, [post(*case) for case in cases], 3, 0.02, taken)


async def upgrades(target: Target) -> None:
    """Send a handshake right behind a request; its answer must not come first."""
    asked = {"model": "quick", "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
    request = post("/v1/chat/completions", asked).replace(b"Connection: close\r\n", b"") + handshake()

    def upgraded(_place: int, status: int, _body: bytes) -> str:
        return "the upgrade came first" if status == 101 else ""

    await send(target, [request], 3, 0.02, upgraded, whole=False)


async def frames(target: Target) -> None:
    """Send each bad frame over a websocket of its own; the server must close it."""
    turn = cycle(FRAMES)

    async def one() -> None:
        frame = next(turn)
        async with target.connection() as (reader, writer):
            writer.write(handshake())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(frame)
            async with asyncio.timeout(30):
                while await reader.read(1 << 16):
                    pass
            target.counts["closed"] += 1

    await hold(2, one, 0.1)
