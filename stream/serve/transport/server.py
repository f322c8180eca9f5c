"""`serve()`: the application on its own sockets, by uvicorn.

Compression is off, because it costs CPU and memory per connection and messages are small. TLS belongs in a proxy.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator
from time import monotonic
from typing import Unpack, cast

import uvicorn

from tokenweir.encode.base.options import check_integers, check_options, check_texts
from tokenweir.encode.base.platform import claim_port
from tokenweir.stream.chat.context import entered_as
from tokenweir.stream.serve.app.application import Application
from tokenweir.stream.serve.app.options import resolve_options
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.options import ServerOptions
from tokenweir.stream.serve.sockets.websocket import CLOSE_TIMEOUT
from tokenweir.stream.serve.transport.http_protocol import HttpProtocol
from tokenweir.stream.serve.transport.listener import Listener
from tokenweir.stream.serve.transport.socket_protocol import protocols
from tokenweir.stream.serve.workers.peers import Peers, Place

logger = logging.getLogger("tokenweir.serve")

BACKLOG = 1024
"""Connections that wait in the kernel to be accepted."""
ACCEPTS = 16
"""Most connections that are accepted in one turn of the event loop."""
POLL_INTERVAL = 0.01
"""Seconds between two looks at connections that end."""
FLUSH_TIMEOUT = 1.0
"""Seconds that connections get to flush, once the drain timeout is over."""


@entered_as("async with serve(...) as server: await server.serve_forever()")
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
    settings = resolve_options(options, own_name=host, secret=None if place is None else place.secret)
    server = Server(Application(settings), settings.limits)
    if place is not None:
        listener = place.listener
    else:  # in a thread, because name resolution may block
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
    """Return a listening TCP socket.

    Args:
        host: The address or host name to listen on.
        port: The TCP port; 0 lets the system choose one.
        shared: Whether other sockets may listen there too; the system spreads the connections over them.

    Raises:
        OSError: The address is not available.
        TypeError: The host is not a str, or the port is not an int.
        ValueError: The port or the host is invalid.

    """
    check_address(host, port)
    listener = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        claim_port(listener, shared=shared)
        listener.bind(address)
        listener.listen(BACKLOG)
    except UnicodeError as error:  # a name that IDNA cannot encode
        raise OSError(errno.EINVAL, f"cannot listen on {host}:{port}: {error}") from error
    except OSError as error:
        if listener is not None:
            listener.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


def check_address(host: str, port: int) -> None:
    """Raise `TypeError` if host or port has the wrong type, and `ValueError` if one has an invalid value."""
    check_texts(host=host)
    check_integers(port=port)
    if not 0 <= port < 1 << 16:  # the system would take the port modulo 65536
        raise ValueError(f"port={port} is not between 0 and 65535")


def url_of(host: str, port: int) -> str:
    """Return `http://HOST:PORT`, with an IPv6 address in brackets."""
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
            timeout_keep_alive=cast("int", limits.keep_alive_timeout),  # a number of seconds for the event loop's timer
            backlog=ACCEPTS,  # asyncio accepts so many at once
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # clients can forge X-Forwarded-For
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
        """Wait until the server has been closed by `close` or by leaving the context of `serve`."""
        await self._closed.wait()

    def close(self) -> None:
        """Begin to close the server: refuse new connections and requests, and let running answers finish.

        Each websocket is closed with code 1001 after its running response. Returns at once; `wait_closed` waits for the
        end. What still runs after `Limits.drain_timeout` is cut off.
        """
        self._retired = False
        self._begin_to_close()

    def _begin_to_close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())

    async def wait_closed(self) -> None:
        """Wait until `close` has ended: every connection is closed, and every engine has stopped or was abandoned."""
        await self._closed.wait()

    async def _listen(self, listener: socket.socket) -> None:
        host, self.port = listener.getsockname()[:2]
        listener = Listener(listener, self._app.service.sockets.make_room)
        await self._uvicorn.startup(sockets=[listener])
        listener.listen(BACKLOG)  # asyncio has set it to `ACCEPTS`
        self._ticking = asyncio.get_running_loop().create_task(self._uvicorn.main_loop())  # updates the Date header
        logger.info("listening on %s", url_of(host, self.port))

    async def _join(self, place: Place) -> None:
        self._peers = Peers(place, self._app.responses, self._retire)
        await self._peers.listen()

    def _retire(self) -> None:
        """Begin to close because another worker has replaced this one: answers may run for `Limits.handover_timeout`."""
        self._retired = True
        self._begin_to_close()

    async def _close(self) -> None:
        state = self._uvicorn.server_state
        for listener in self._uvicorn.servers:
            listener.close()
        self._app.drain()
        for connection in list(state.connections):
            if isinstance(connection, HttpProtocol):
                connection.shutdown()  # closes now if idle, else after its answer
        await self._drained()
        await self._app.close()
        await self._emptied(FLUSH_TIMEOUT)
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
        """Wait until all connections are closed, for the drain timeout at most.

        A replaced worker waits for the handover timeout at most, also for responses that clients may still resume.
        """
        limits, begun = self._limits, monotonic()
        while self._connected or (self._retired and self._app.responses.resumable):
            await asyncio.sleep(POLL_INTERVAL)
            if monotonic() - begun > (limits.handover_timeout if self._retired else limits.drain_timeout):
                break

    async def _emptied(self, seconds: float) -> None:
        begun = monotonic()
        while self._connected and monotonic() - begun < seconds:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(POLL_INTERVAL)

    @property
    def _connected(self) -> bool:
        state = self._uvicorn.server_state
        return bool(state.connections or state.tasks)
