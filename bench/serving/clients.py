"""The clients of `bench/serving/serve.py`: they read as cheaply as they can, over a websocket or server-sent events."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import struct
import time
from dataclasses import dataclass, field
from typing import Any

from serving.servers import RATE, TOKEN

DELTA = re.compile(rb'"delta":"([^"]*)"')


@dataclass
class Load:
    """The observations of all clients of a run.

    Attributes:
        late: Of every frame in the measured time, how late its oldest token was, in seconds.
        tokens: Tokens that arrived in the measured time.
        begun: Streams whose first token has come.
        ended: Streams that are whole.
        measuring: Whether it is the measured time, which ends with the first stream that does.
        turnover: Whether the measured time continues after that, since new streams replace those that end.

    """

    late: list[float] = field(default_factory=list)
    tokens: int = 0
    begun: int = 0
    ended: int = 0
    measuring: bool = False
    turnover: bool = False


class Client(asyncio.Protocol):
    """One stream: asks, reads as cheaply as it can, and compares the arrival with the schedule."""

    def __init__(self, load: Load, sse: bool, tokens: int) -> None:
        self._load = load
        self._sse = sse
        self._tokens = tokens
        self._rest = b""
        self._head = b""
        self._first = 0.0
        self._seen = 0
        self._asked = False
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._answer = json.dumps({"type": "response.create", "input": "Count the streams.", "max_output_tokens": 8000})
        if self._sse:
            body = json.dumps({"input": "Count the streams.", "stream": True})
            transport.write(post(body))
            self._asked = True
        else:
            transport.write(handshake())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        if not self._asked:
            self._rest += data
            if b"\r\n\r\n" not in self._rest:
                return
            if b" 101 " not in self._rest:
                self._fail(f"no websocket: {self._rest[:200]!r}")
                return
            data, self._rest, self._asked = self._rest.partition(b"\r\n\r\n")[2], b"", True
            self._transport.write(masked(self._answer))
        data = self._rest + data
        end = 0
        for found in DELTA.finditer(data):
            end = found.end()
            self._take(found[1], now)
        self._rest = data[end:][-4096:]

    def _take(self, text: bytes, now: float) -> None:
        if not self._first:
            self._head += text
            if b"|" not in self._head:
                return
            head, _, text = self._head.partition(b"|")
            self._first = float(head)
            self._load.begun += 1
            if not text:
                return
        count, wrong = divmod(len(text), len(TOKEN))
        if wrong or text[: len(TOKEN)] != TOKEN.encode():
            self._fail(f"the text is wrong: {text!r}")
            return
        if self._load.measuring:
            self._load.late.append(now - (self._first + self._seen / RATE))
            self._load.tokens += count
        self._seen += count
        if self._seen >= self._tokens:
            self._load.ended += 1
            self._load.measuring = self._load.measuring and self._load.turnover
            self._transport.abort()

    def _fail(self, message: str) -> None:
        """End the program; a client that counts failures does so instead."""
        raise SystemExit(message)

    def leave(self) -> None:
        """Go before the end."""
        self._tokens = 0
        self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._seen < self._tokens:
            print(f"a stream ended after {self._seen} of {self._tokens} tokens: {error} {self._rest[-300:]!r}")
        self.done.set_result(None)


async def idle_connection(port: int, sse: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection without a request: HTTP for the server of SSE, otherwise a websocket."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if not sse:
        writer.write(handshake())
        if b" 101 " not in await reader.readuntil(b"\r\n\r\n"):
            raise SystemExit("no websocket")
    return reader, writer


async def one_token_requests(port: int, sse: bool, seconds: float) -> list[float]:
    """Ask for one token again and again; how long each request took."""
    reader, writer = await idle_connection(port, sse)
    asked = json.dumps({"type": "response.create", "input": "Count.", "stream": True, "max_output_tokens": 1})
    request, end = (post(asked), b"0\r\n\r\n") if sse else (masked(asked), b"")
    took = []
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        start = time.monotonic()
        writer.write(request)
        answer = b""
        while not (end and answer.endswith(end)) and not (not end and is_whole(answer)):
            answer += await reader.read(1 << 16)
        took.append(time.monotonic() - start)
    writer.close()
    return took


def is_whole(answer: bytes) -> bool:
    """Whether a websocket has sent all of an answer of one token: tokenweir's last event, or the one of a peer."""
    if b"response.created" in answer:
        return b'"type":"response.incomplete"' in answer and answer.endswith(b"}")
    return answer.endswith(b"}")


def handshake() -> bytes:
    """A request for a websocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    return (
        f"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


def masked(text: str) -> bytes:
    """A text frame of a client, masked by zeros."""
    size = len(text)
    head = (
        struct.pack("!BBH", 0x81, 0x80 | 126, size) if size < 1 << 16 else struct.pack("!BBQ", 0x81, 0x80 | 127, size)
    )
    return head + bytes(4) + text.encode()


def post(body: str, path: str = "/v1/responses") -> bytes:
    """A request with a body of JSON, in ASCII."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()
