"""An inference server that answers with gzip bombs, redirects, lines without end, and millions of ids at once.

And with events of very many numbers, empty lines, and interim responses."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter

from target import MEGABYTE, Target, post, send

BOMB = 1536 * MEGABYTE
"""Bytes that the error's body becomes."""


class HostileServer:
    """An inference server of the attackers that misbehaves.

    Attributes:
        port: Its port.

    """

    def __init__(self) -> None:
        self.port = 0
        self.counts: Counter[str] = Counter()
        bomb = _bomb()
        head = (
            b"HTTP/1.1 500 No\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
        )
        plain = b'{"error": "' + b"x" * (64 * MEGABYTE)
        floats = b'{"content": "", "x": [' + b",".join([b"2.2250738585072011e-308"] * 120_000) + b"]}"
        ids = b'{"content": "", "tokens": [' + b",".join([b"5"] * (15 * MEGABYTE // 2)) + b"]}"
        self._answers = [
            head % len(bomb) + bomb,
            b"HTTP/1.1 500 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(plain) + plain,
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + b"x" * (64 * MEGABYTE),
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + ids + b"\n\n",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + floats + b"\n\n",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"\n" * (30 * MEGABYTE),
            b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000,
            b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {"content": "\xff"}\n\n',
        ]

    async def start(self) -> None:
        """Listen on a port that the system chooses, and set `port`."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            answer = self._answers[self.counts["asked"] % len(self._answers)]
            self.counts["asked"] += 1
            writer.write(answer)
            await writer.drain()
            writer.write_eof()
            await reader.read()
        except (OSError, EOFError):
            self.counts["cut off by the server"] += 1
        except asyncio.CancelledError:
            pass  # the program ends; asyncio would report it
        finally:
            writer.transport.abort()


async def hostile_engine(target: Target) -> None:
    """Ask for answers of the model behind the hostile server."""
    asked = {"model": "hostile", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    request = post("/v1/chat/completions", asked)
    await send(target, [request], 1, 0.5)


def _bomb() -> bytes:
    """Return a small gzip member that decompresses to very many zeros.

    It repeats one compressed block, which after a full flush depends on nothing before it.
    """
    zeros, times = bytes(16 * MEGABYTE), BOMB // (16 * MEGABYTE)
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    head = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    check = 0
    for _ in range(times):
        check = zlib.crc32(zeros, check)
    last = b"\x03\x00"  # an empty final block
    return head + block * (times - 1) + last + check.to_bytes(4, "little") + (BOMB & 0xFFFFFFFF).to_bytes(4, "little")
