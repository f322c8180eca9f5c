"""A websocket of an ASGI server as a session's `Transport`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

CLOSE_TIMEOUT = 5.0
"""Timeout in seconds for flushing and the close handshake."""


class SocketTransport:
    """`Transport` on an accepted websocket of an ASGI server.

    If the scope has the extensions `tokenweir.send`, which sends a text frame at once, and `tokenweir.abort`, which
    resets the socket, they are used.
    """

    def __init__(self, scope: Any, receive: Any, send: Any) -> None:
        self._receive = receive
        self._send = send
        extensions = scope.get("extensions", {})
        self._abort: Callable[[], None] | None = extensions.get("tokenweir.abort")
        self.send: Callable[[bytes], Awaitable[None] | None] = extensions.get("tokenweir.send", self._send_text)
        self._gone = False

    async def receive(self) -> str | bytes | None:
        while not self._gone:
            message = await self._receive()
            if message["type"] == "websocket.receive":
                text: str | bytes | None = message.get("text")
                return text if text is not None else message.get("bytes", b"")
            self._gone = message["type"] == "websocket.disconnect"
        return None

    async def _send_text(self, data: bytes) -> None:
        if not self._gone:
            try:
                await self._send({"type": "websocket.send", "text": data.decode()})
            except (OSError, RuntimeError):  # a disconnect, which receive() reports to the session
                self._gone = True

    async def close(self, code: int, reason: str) -> None:
        if self._gone:
            return
        closing = asyncio.ensure_future(self._close(code, reason))
        # Sending waits for room in the write buffer without a timeout, so a stalled reader would block it.
        done, _ = await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT)
        if not done:
            if self._abort is not None:
                self._abort()
            closing.cancel()

    async def _close(self, code: int, reason: str) -> None:
        try:
            await self._send({"type": "websocket.close", "code": code, "reason": reason})
        except (OSError, RuntimeError):
            self._gone = True
