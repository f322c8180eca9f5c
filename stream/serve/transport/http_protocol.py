"""uvicorn's HTTP connections with additional bounds.

uvicorn has no timeout for receiving a request or flushing an answer. This is visible at the transport only.

Input is parsed in pieces, each when its client has its turn (`PacedInput`), and requests begin likewise. A piece has one
head at most, and none is parsed while `MOST_QUEUED` requests wait for answers to earlier ones.

Each phase of a connection has a timer: the head of a request, the idle time between two requests, the rest of an unread
body, and the flushing of an answer (`Connection`). The body itself is timed by `read_body`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tokenweir.encode.base.platform import limit_unsent
from tokenweir.stream.serve.app.guard import network_of
from tokenweir.stream.serve.limits.connections import Connection, Connections
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.limits.turns import REQUEST, InputTurns
from tokenweir.stream.serve.sockets.websocket import CLOSE_TIMEOUT
from tokenweir.stream.serve.transport.paced_input import HeldFlow, PacedInput
from tokenweir.stream.serve.wire.shared.errors import RequestError, error_body

UNSENT_BYTES = 1 << 14
"""Bytes of the kernel's send buffer. Its default of megabytes would hide a stalled reader for long."""
MOST_HEAD = 1 << 16
"""Most bytes of a request before its body, which the parser would buffer without bound."""
READ_BYTES = 1 << 14
"""Most bytes per read, so most bytes of a connection that wait to be parsed. asyncio's default is 256 KB."""
MOST_QUEUED = 4
"""Most requests of a connection that are parsed and wait for the answer to an earlier one. uvicorn bounds their bytes only."""
HEAD_END = b"\r\n\r\n"
TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
CLOSE = (b"connection", b"close")


def drop_bound_methods(transport: asyncio.BaseTransport) -> None:
    """Delete a closed transport's references to itself, so that it is freed without the garbage collector.

    asyncio's transports keep their own bound methods as attributes.
    """
    kept = getattr(transport, "__dict__", {})  # other event loops have transports without one
    for name in [name for name, value in kept.items() if getattr(value, "__self__", None) is transport]:
        del kept[name]


def _nothing() -> None:
    """Do nothing; replaces uvicorn's callback after an answer, whose bound method would form a reference cycle."""


class TrailerError(Exception):
    """Raised for trailer fields in a chunked body, which are unused and unbounded."""


class TimedInput:
    """Mixin with a timer that runs while input is incomplete."""

    _timer: asyncio.TimerHandle | None = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class HttpProtocol(HttpToolsProtocol, TimedInput):
    """HTTP connection with limits on its input and output, until it is upgraded to a websocket.

    `_timer` runs while the head of a request is awaited.
    """

    limits: Limits
    sockets: Connections
    turns: InputTurns

    _input: PacedInput
    _connection: Connection | None = None
    _lingering: asyncio.TimerHandle | None = None
    """Timer while remaining input is read and dropped."""
    _closes = _upgraded = _upgrade_waits = False
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        raw_socket = transport.get_extra_info("socket")
        # asyncio sets TCP_NODELAY only if the listener names its protocol, which `socket.socket()` omits. Without it,
        # the second of two frames would wait for the client's delayed ACK of the first.
        raw_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        limit_unsent(raw_socket, UNSENT_BYTES)
        if hasattr(transport, "max_size"):  # asyncio's own; other event loops have bounds of their own
            transport.max_size = READ_BYTES
        address = "unknown" if self.client is None else network_of(self.client[0])
        flow = self.flow = HeldFlow(transport)
        self._input = flow.input = PacedInput(self.turns, transport, flow, self._parse, end=HEAD_END)
        self._connection = self.sockets.accept(transport, f"address {address}")
        if self._connection is not None:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._lingering is not None:
            self._lingering.cancel()
        if self._connection is not None:
            self._connection.close()
        self._input.close()
        super().connection_lost(exc)
        for cycle, _ in self.pipeline:
            cycle.on_response = _nothing
        drop_bound_methods(self.transport)

    def data_received(self, data: bytes) -> None:
        if self._lingering is None and self._connection is not None:
            self._input.put(self._connection.client, data)

    def _parse(self, data: bytes) -> bool:
        """Parse a piece of input; return whether the rest must wait for answers."""
        self._unset_keepalive_if_required()
        try:  # as uvicorn does, which would log what clients get wrong
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("the request is not valid HTTP")
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self._upgrade_waits = not (self.cycle is None or self.cycle.response_complete)
                if not self._upgrade_waits:
                    self.handle_websocket_upgrade()
        if self._upgraded or self._lingering is not None:
            return False
        if self._timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD:
                self._refuse(TOO_LONG)
            return False
        self._head_bytes = 0
        if self._idle and self.timeout_keep_alive_task is None:  # empty lines, which do not begin a message
            self._expect_request()
        return self._upgrade_waits or len(self.pipeline) >= MOST_QUEUED

    @property
    def _idle(self) -> bool:
        """Whether a request was received, all requests are answered, and the connection is not closing."""
        return self.cycle is not None and self.cycle.response_complete and self._lingering is None

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._connection is not None:
            self._connection.pause()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._connection is not None:
            self._connection.resume()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._timer is None:  # behind a body
            raise TrailerError
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        if self._timer is None and self.cycle is not None and self.cycle.more_body:
            msg = "the chunked body is malformed, or has trailer fields, which are not read"
        body = error_body(RequestError(msg, code="invalid_http"))
        head = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: application/json\r\n"
        self._refuse(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))

    def _refuse(self, answer: bytes) -> None:
        """Send an error answer and close; reset the connection instead if that would interrupt an earlier answer."""
        cycle = self.cycle
        if self.pipeline or (cycle is not None and cycle.response_started and not cycle.response_complete):
            self.transport.abort()
            return
        if cycle is not None and not cycle.response_complete:  # readers of the body see a disconnect
            cycle.disconnected = True
            cycle.message_event.set()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self._linger()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)["extensions"] = {
            "tokenweir.abort": self.transport.abort,
            "tokenweir.connection": self._connection,
        }
        if self._timer is None:
            self._expect_request()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        if not self.url.startswith(b"/"):
            self._take_host()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        assert self._connection is not None
        begin = partial(self._begin, super()._start_asgi_task, cycle, partial(self._answer, cycle, app))
        self.turns.run(self._connection.client, begin, REQUEST)

    def _begin(self, begin: Callable[[Any, Any], None], cycle: Any, app: Any) -> None:
        """Start the task of a request by `begin(cycle, app)`, unless its client has disconnected."""
        if cycle.disconnected:
            cycle.on_response = _nothing
        else:
            begin(cycle, app)

    async def _answer(self, cycle: Any, app: Any, scope: Any, receive: Any, send: Any) -> None:
        """Run the application for a request, and close the connection if the body was not read to its end."""

        async def closing(message: Any) -> None:
            if message["type"] == "http.response.start" and cycle.more_body:
                headers = [*message["headers"], CLOSE]
                await send(message | {"headers": headers})
                self._closes = cycle.keep_alive = True  # closed here instead of by uvicorn
            else:
                await send(message)

        try:
            await app(scope, receive, closing if cycle.more_body else send)
        finally:
            if self._connection is not None:
                self._connection.flush()

    def on_response_complete(self) -> None:
        if self._connection is not None:
            self._connection.flush()
        if self._closes:
            self._linger()
            return
        super().on_response_complete()
        if self._upgrade_waits:
            if self._idle:
                self.loop.call_soon(self._upgrade)
        elif self._connection is not None and len(self.pipeline) < MOST_QUEUED:
            self._input.go_on(self._connection.client)

    def _upgrade(self) -> None:
        """Switch to a websocket, now that the earlier requests are answered."""
        self._unset_keepalive_if_required()
        if not self.transport.is_closing():
            self.handle_websocket_upgrade()

    def _linger(self) -> None:
        """Close the connection in the sending direction, and reset it after reading remaining input for a while.

        A connection that is closed over unread bytes is reset, and the client may lose the answer.
        """
        if self._lingering is not None or self.transport.is_closing():
            return
        self._stop_timer()
        self._lingering = self.loop.call_later(min(CLOSE_TIMEOUT, self.limits.request_timeout), self.transport.abort)
        self._input.clear()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self._connection is not None:
            self._connection.flush()

    def _take_host(self) -> None:
        """If the request's target is an absolute URI, replace the Host header by the URI's host (RFC 9112, 3.2.2)."""
        uri = urlsplit(self.url)
        if uri.netloc:
            self.headers[:] = [(name, uri.netloc if name == b"host" else value) for name, value in self.headers]
            self.url = (uri.path or b"/") + (b"?" + uri.query if uri.query else b"")

    def handle_websocket_upgrade(self) -> None:
        self._upgraded = True
        made: Any = self.ws_protocol_class
        self.ws_protocol_class = cast("Any", partial(made, connection=self._connection))
        super().handle_websocket_upgrade()
        self.ws_protocol_class = made
        del self.parser  # breaks a reference cycle
        self._input.clear()  # a client waits for the answer to its handshake
        self._input.close()

    def _expect_request(self) -> None:
        assert self._connection is not None
        self._timer = self.loop.call_later(self.limits.request_timeout, self._connection.abort, "request_timeout")
