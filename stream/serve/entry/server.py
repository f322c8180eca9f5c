"""`serve()`: the application behind sockets of its own, on uvicorn.

Compression is off: it costs half as much CPU again per message and 40 KiB a connection, for messages of 100 bytes. TLS
belongs in a proxy in front.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Unpack

import uvicorn

from tokenweir.encode.options import check_integers, check_options, check_texts
from tokenweir.stream.serve.entry.application import Application
from tokenweir.stream.serve.entry.options import ServerOptions, resolve_options
from tokenweir.stream.serve.entry.protocols import HttpProtocol, protocols
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.sockets.websocket import CLOSE_TIMEOUT
from tokenweir.stream.serve.workers.peers import Peers, Place

logger = logging.getLogger("tokenweir.serve")

BACKLOG = 1024
POLL = 0.01
CUT_OFF = 1.0
"""Seconds that connections get to take their last words, once the time to drain is over."""


@asynccontextmanager
async def serve(
    *, host: str = "127.0.0.1", port: int = 8000, place: Place | None = None, **options: Unpack[ServerOptions]
) -> AsyncIterator[Server]:
    """Serve engines over HTTP and websockets while the context lasts; leaving it closes the server.

        async with serve(engine=engine, tokenizer=tokenizer, port=8000) as server:
            await server.serve_forever()

    Args:
        host: The address to listen on, and one of `hosts`. The default is reachable from this machine only.
        port: The TCP port; 0 lets the system choose one, see `Server.port`.
        place: This process's place among the workers of a server, as `tokenweir serve --workers` makes it. Its socket is
            used instead of `host` and `port`.
        options: See `ServerOptions`.

    Raises:
        TemplateError: No template is given and none came with the tokenizer.
        TypeError: An argument has the wrong type, or `origins` or `hosts` is a single str.
        ValueError: There is no engine, an API key is empty or not ASCII, or the port is outside 0 to 65535.
        OSError: Listening on the port failed.

    """
    check_address(host, port)
    check_options(options, ServerOptions.__required_keys__ | ServerOptions.__optional_keys__, "serve()")
    settings = resolve_options(options, own_name=host)
    server = Server(Application(settings), settings.limits)
    if place is not None:
        listener = place.listener
    else:  # in a thread: resolving a name may take seconds
        listener = await asyncio.get_running_loop().run_in_executor(None, listener_at, host, port)
    await server._listen(listener)
    try:
        if place is not None:
            await server._join(place)
        yield server
    finally:
        server.close()
        await server.wait_closed()


def listener_at(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket that listens.

    Args:
        host: The address, or a name of it.
        port: The TCP port; 0 lets the system choose one.
        shared: Whether other sockets may listen there too; the system spreads the connections over them.

    Raises:
        OSError: The port cannot be had.
        TypeError: The host is no str, or the port no int.
        ValueError: There is no such port.

    """
    check_address(host, port)
    listener = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except UnicodeError as error:  # a name that IDNA has no form of
        raise OSError(errno.EINVAL, f"cannot listen on {host}:{port}: {error}") from error
    except OSError as error:
        if listener is not None:
            listener.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


def check_address(host: str, port: int) -> None:
    """Refuse where nobody can listen.

    Raises:
        TypeError: The host is no str, or the port no int.
        ValueError: There is no such port.

    """
    check_texts(host=host)
    check_integers(port=port)
    if not 0 <= port < 1 << 16:  # of which the system would take the last 16 bits
        raise ValueError(f"port={port} is not between 0 and 65535")


def url_of(host: str, port: int) -> str:
    """Write the URL of a server; an IPv6 address stands in brackets there."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server:
    """A server that is running; `serve` makes it.

    Attributes:
        port: The TCP port it listens on.

    """

    def __init__(self, app: Application, limits: Limits) -> None:
        self.port = 0
        self._app = app
        self._limits = limits
        http, websocket = protocols(app.service)
        config = uvicorn.Config(
            app,
            http=http,
            ws=websocket,
            ws_max_size=limits.max_message_bytes,
            ws_per_message_deflate=False,
            # Ping timeouts are off: a slow reader delays its pongs. The stall timeout closes stuck connections, and TCP
            # notices a dead peer by its unacknowledged pings.
            ws_ping_timeout=None,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # clients write them too, and would be whom they like
        )
        config.load()
        self._uvicorn = uvicorn.Server(config)
        self._uvicorn.lifespan = config.lifespan_class(config)
        self._ticking: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()
        self._peers: Peers | None = None
        self._retired = False

    async def serve_forever(self) -> None:
        """Wait until the server has been closed."""
        await self._closed.wait()

    def close(self) -> None:
        """Stop: no more connections and requests; answers in flight may end; sockets close with code 1001.

        Returns at once; `wait_closed` waits for the end. What is not done after `Limits.drain_timeout` is cut off.
        """
        self._retired = False
        self._begin_to_close()

    def _begin_to_close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())

    async def wait_closed(self) -> None:
        """Wait until every connection is closed and every engine has stopped, or was abandoned."""
        await self._closed.wait()

    async def _listen(self, listener: socket.socket) -> None:
        host, self.port = listener.getsockname()[:2]
        await self._uvicorn.startup(sockets=[listener])
        self._ticking = asyncio.get_running_loop().create_task(self._uvicorn.main_loop())  # the Date header
        logger.info("listening on %s", url_of(host, self.port))

    async def _join(self, place: Place) -> None:
        self._peers = Peers(place, self._app.responses, self._retire)
        await self._peers.listen()

    def _retire(self) -> None:
        """Another worker listens in this one's place."""
        self._retired = True
        self._begin_to_close()

    async def _close(self) -> None:
        state = self._uvicorn.server_state
        for listener in self._uvicorn.servers:
            listener.close()
        self._app.drain()
        for connection in list(state.connections):
            if isinstance(connection, HttpProtocol):
                connection.shutdown()  # at once if it is idle, else after its answer
        await self._drained()
        await self._app.close()
        await self._emptied(CUT_OFF)
        for connection in list(state.connections):
            connection.transport.abort()
        if self._peers is not None:
            await self._peers.close()
        if state.tasks:
            for task in state.tasks:
                task.cancel()
            await asyncio.wait(state.tasks, timeout=CLOSE_TIMEOUT)
        self._uvicorn.should_exit = True
        if self._ticking is not None:
            await self._ticking
        self._closed.set()

    async def _drained(self) -> None:
        """Wait until nobody is connected, or for as long as the limits say.

        A worker that was replaced waits as well for those who may resume a response by way of its successor.
        """
        limits, begun = self._limits, monotonic()
        while self._connected or (self._retired and self._app.responses.resumable):
            await asyncio.sleep(POLL)
            if monotonic() - begun > (limits.handover_timeout if self._retired else limits.drain_timeout):
                break

    async def _emptied(self, seconds: float) -> None:
        begun = monotonic()
        while self._connected and monotonic() - begun < seconds:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(POLL)

    @property
    def _connected(self) -> bool:
        state = self._uvicorn.server_state
        return bool(state.connections or state.tasks)
