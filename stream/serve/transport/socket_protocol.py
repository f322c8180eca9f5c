"""uvicorn's websocket connections with additional bounds.

`websockets` and uvicorn buffer pongs without bound, and have no timeout for receiving a message. A message and the flushing
of output have timers, and messages are parsed in pieces, each when its client has its turn (`PacedInput`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from struct import pack
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode

from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.limits.connections import Connection
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.limits.turns import REQUEST, InputTurns
from tokenweir.stream.serve.sockets.websocket import CLOSE_TIMEOUT
from tokenweir.stream.serve.transport.http_protocol import HttpProtocol, TimedInput, drop_bound_methods
from tokenweir.stream.serve.transport.paced_input import PacedInput

TEXT_FRAME = 0x81
"""First byte of a complete, uncompressed text frame (RFC 6455, 5.2)."""
MOST_FRAMES = 1 << 12
"""Most frames of one message. `ws_max_size` counts bytes, so empty frames would be buffered without bound."""
UNREADABLE = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class SocketProtocol(WebSocketsSansIOProtocol, TimedInput):
    """Websocket connection with limits on its input and output.

    `_timer` runs while a message is incomplete.
    """

    limits: Limits
    turns: InputTurns

    _input: PacedInput

    def __init__(self, *args: Any, connection: Connection, **options: Any) -> None:
        super().__init__(*args, **options)
        self._connection = connection
        self._arrived = 0  # bytes of an incomplete message
        self._extensions: dict[str, Any] = {}  # of the scope; a handshake that is malformed has no scope
        self._application = self.app
        self.app = self._answer
        self.conn.debug = False  # at level DEBUG it would log frames, including their text
        # A close frame was received or sent, or the connection is lost; cheaper than asking the transport.
        self._over = False

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        await self._application(scope, receive, send)
        if self.initial_response is not None:  # a refused handshake, which uvicorn would log as unanswered
            self.handshake_complete = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._input = PacedInput(self.turns, transport, self, self._parse)

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        self.turns.spend(REQUEST)
        if not self.close_sent:
            self._extensions = cast("dict[str, Any]", self.scope["extensions"])
            self._extensions["tokenweir.abort"] = self.transport.abort
            self._extensions["tokenweir.send"] = self.send_now
            self._extensions["tokenweir.connection"] = self._connection

    def data_received(self, data: bytes) -> None:
        self._input.put(self._connection.client, data)

    async def receive(self) -> Any:
        if self._arrived and not self._arriving:  # the message before has been read
            self._forget_bytes()
        message = await super().receive()
        self._input.hold()  # uvicorn may have resumed reading
        return message

    def _parse(self, data: bytes) -> None:
        super().data_received(data)
        self._time_message(len(data))
        if self.conn.handshake_exc is not None and not (self.handshake_initiated or self._over):  # no event reports it
            self._over = True
            self.transport.write(UNREADABLE)
            self.transport.close()

    def _time_message(self, size: int) -> None:
        """Count `size` bytes that were parsed, and start the timeout if a message is incomplete.

        The bytes count as incoming until the application has read the message.
        """
        if self._over:
            self._forget_message()
            return
        self._arrived += size
        if not self._arriving:
            self._stop_timer()
            if not self.read_paused:  # a ping, not a message
                self._forget_bytes()
            return
        self._connection.arrive(self._arrived)
        if self._timer is None:
            self._timer = self.loop.call_later(self.limits.request_timeout, self._late)

    @property
    def _arriving(self) -> bool:
        """Whether the parser is inside a frame, or between two frames of a message."""
        if self.conn.current_size is not None:
            return True
        step: Any = self.conn.parser
        while step.gi_yieldfrom is not None:
            step = step.gi_yieldfrom
        return bool(step.__name__ != "at_eof")  # the state between two frames

    def _forget_message(self) -> None:
        self._stop_timer()
        self._forget_bytes()

    def _forget_bytes(self) -> None:
        self._arrived = 0
        self._connection.arrive(0)

    def _late(self) -> None:
        if self.read_paused:  # backpressure of this server
            self._timer = self.loop.call_later(self.limits.request_timeout, self._late)
        else:
            self._connection.abort("request_timeout")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._connection.pause()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._connection.resume()

    def handle_text(self, event: Any) -> None:
        super().handle_text(event)
        event.data = b""  # the parser holds the frame until the next one arrives

    def send_receive_event_to_app(self) -> None:
        self.frames = [b"".join(self.frames)]
        try:
            if self.curr_msg_data_type == "text":
                self.frames[0].decode()
        except UnicodeDecodeError as error:  # uvicorn would log it with a traceback
            self.frames = []
            self.conn.fail(CloseCode.INVALID_DATA, f"{error.reason} at byte {error.start}")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    def handle_cont(self, event: Any) -> None:
        if self._over:
            return
        if len(self.frames) < MOST_FRAMES:
            super().handle_cont(event)
            event.data = b""
            return
        self.frames.clear()
        self.conn.fail(CloseCode.MESSAGE_TOO_BIG, f"a message of more than {MOST_FRAMES} frames")
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Send a close frame with the error, and read remaining input for `CLOSE_TIMEOUT`.

        A connection that is closed over unread bytes is reset, and a client that is still sending would lose the frame.
        """
        if self.close_sent:
            return
        close = self.conn.close_sent
        assert close is not None
        self._over = self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": close.code, "reason": close.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.transport.can_write_eof():  # not over TLS
            self.transport.write_eof()
        self.close_timer = self.loop.call_later(CLOSE_TIMEOUT, self.transport.abort)

    def handle_close(self, event: Any) -> None:
        self._over = True
        super().handle_close(event)

    def shutdown(self) -> None:
        self._over = True
        super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._forget_message()
        self._connection.close()
        self._input.close()
        super().connection_lost(exc)
        # What would form reference cycles: bound methods, the parser's own frame, and those of errors that it keeps.
        self.app = self._application
        drop_bound_methods(self.transport)
        self.conn.parser.close()
        for error in (self.conn.parser_exc, self.conn.handshake_exc):
            if error is not None:
                error.with_traceback(None)
        self._extensions.clear()

    def send_now(self, data: bytes) -> Awaitable[None] | None:
        """Send a text frame at once, without the cost of an ASGI message.

        Args:
            data: The whole text, in UTF-8.

        Returns:
            None if there is room for another frame or the connection is closing; otherwise an awaitable to await before
            the next frame.

        """
        if self.close_sent or self._over:
            return None
        size = len(data)
        if size < 126:
            head = bytes((TEXT_FRAME, size))
        elif size < 1 << 16:
            head = pack("!BBH", TEXT_FRAME, 126, size)
        else:
            head = pack("!BBQ", TEXT_FRAME, 127, size)
        self.transport.write(head + data)
        return None if self.writable.is_set() else self._writable()

    async def _writable(self) -> None:
        await self.writable.wait()

    def handle_ping(self) -> None:
        output = self.conn.data_to_send()
        if self.writable.is_set():  # else earlier pongs are unread; the standard requires only the last one
            self.transport.write(b"".join(output))

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        # Closing would wait forever for a stalled reader.
        self.loop.call_later(CLOSE_TIMEOUT, self.transport.abort)


def protocols(service: Service) -> tuple[type[HttpProtocol], type[SocketProtocol]]:
    """Return the HTTP and websocket protocol classes for uvicorn, bound to the limits and counters of a server."""
    own: dict[str, Any] = {"limits": service.limits, "turns": service.turns}
    http = type("HttpProtocol", (HttpProtocol,), {"sockets": service.sockets, **own})
    websocket = type("SocketProtocol", (SocketProtocol,), own)
    return http, websocket
