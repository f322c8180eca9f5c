"""`serve()`: engines behind a websocket that speaks OpenAI Responses, and a chat page to try them.

    GET /               the chat page
    GET /health         {"status": "ok"} while the server takes connections
    GET /v1/models      the models, as the `openai` client lists them; needs the API key if there is one
    WS  /v1/responses   one `Session` a connection; needs the API key if there is one

Everything comes from the `websockets` package, so requests with a body (POST) are not served. Compression is off: it
costs half as much CPU again per message and 40 KiB a connection, for messages of 100 bytes. TLS belongs in a proxy in
front.

Runs under asyncio, since listening, and cutting off a client that stalls, are `websockets.asyncio`'s. The rest does not:
under trio a `Session` serves whatever connection a `Transport` is written for, such as one of `websockets.trio`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import Server as WebsocketServer
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as websocket_serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.typing import Subprotocol

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines.protocol import Engine, Sampling
from tokenweir.stream.pipeline.cancellable import Deltas
from tokenweir.stream.pipeline.chat import chat
from tokenweir.stream.prompts.prompt_encoding import Encoder
from tokenweir.stream.server.auth import KEY_SUBPROTOCOL, key_accepted, key_offered, origin_allowed
from tokenweir.stream.server.limits import Limits
from tokenweir.stream.server.page import PAGE, PAGE_POLICY
from tokenweir.stream.server.plain_http import header, model_list, refuse, respond, subprotocols
from tokenweir.stream.server.response_task import LiveResponses, live_responses
from tokenweir.stream.server.session import GOING_AWAY, Session
from tokenweir.stream.server.wire.messages import ChatMessage
from tokenweir.templates.chat_template import ChatTemplate

logger = logging.getLogger("tokenweir.serve")

CLOSE_TIMEOUT = 5.0
"""Seconds that a client gets to go along with the closing handshake."""
UNSENT_BYTES = 1 << 14
"""Bytes that the kernel takes before a write waits. Its own default holds megabytes, so that a reader would look awake
long after it stalled."""


@asynccontextmanager
async def serve(
    *,
    engine: Engine | Mapping[str, Engine],
    tokenizer: Tokenizer,
    template: ChatTemplate | None = None,
    encoder: Encoder | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    api_key: str | None = None,
    origins: Collection[str] = (),
    limits: Limits | None = None,
) -> AsyncIterator[Server]:
    """Serve engines over websockets while the context lasts; leaving it closes the server.

        async with serve(engine=engine, tokenizer=tokenizer, port=8000) as server:
            await server.serve_forever()

    Args:
        engine: One engine, served as the model `default`; or several by their model names, of which the first answers
            requests that name none. All take the ids of `tokenizer`.
        tokenizer: Prompts to ids, and ids to text.
        template: Messages to prompt; None means the template that came with the tokenizer.
        encoder: What turns prompts into ids in place of the tokenizer, such as a `PromptBatcher`.
        host: Where to listen. The default is reachable from this machine only.
        port: The TCP port; 0 lets the system choose one, see `Server.port`.
        api_key: What clients must give, as `Authorization: Bearer KEY`, or in a browser as the websocket subprotocol
            `openai-insecure-api-key.KEY` beside another one. ASCII.
        origins: Origins of web pages that may connect besides the server's own page, such as
            `https://chat.example.org`.
        limits: What a client may cost.

    Raises:
        TemplateError: No template is given and none came with the tokenizer.
        ValueError: No engine, or an API key that is empty or not ASCII.
        OSError: The port cannot be had.

    """
    engines = engine if isinstance(engine, Mapping) else {"default": engine}
    if not engines:
        raise ValueError("there is no model to serve")
    if api_key is not None and not (api_key and api_key.isascii()):
        raise ValueError("api_key must be ASCII and not empty; leave it out for a server without one")
    template = template or ChatTemplate.from_tokenizer(tokenizer)

    def answer(
        model: str,
        messages: list[ChatMessage],
        sampling: Sampling,
        template_kwargs: dict[str, Any],
        tools: list[dict[str, Any]] | None,
        alignment: bool,
    ) -> AbstractAsyncContextManager[Deltas]:
        return chat(
            messages,
            engine=engines[model],
            tokenizer=tokenizer,
            template=template,
            encoder=encoder,
            sampling=sampling,
            tools=tools,
            template_kwargs=template_kwargs,
            alignment=alignment,
        )

    limits = limits or Limits()
    async with live_responses(answer, limits) as responses:
        server = Server(responses, list(engines), host=host, api_key=api_key, origins=origins, limits=limits)
        await server._listen(port)
        try:
            yield server
        finally:
            server.close()
            await server.wait_closed()


class Server:
    """A server that is running; `serve` makes it.

    Attributes:
        port: The TCP port it listens on.

    """

    def __init__(
        self,
        responses: LiveResponses,
        models: Sequence[str],
        *,
        host: str,
        api_key: str | None,
        origins: Collection[str],
        limits: Limits,
    ) -> None:
        self.port = 0
        self._responses = responses
        self._models = models
        self._host = host
        self._api_key = api_key
        self._origins = origins
        self._limits = limits
        self._model_list = model_list(models)
        self._admitted: set[ServerConnection] = set()
        self._sessions: set[Session] = set()
        self._listener: WebsocketServer
        self._closing: asyncio.Task[None] | None = None

    async def serve_forever(self) -> None:
        """Wait until the server has been closed."""
        await self._listener.wait_closed()

    def close(self) -> None:
        """Stop: no more connections and requests; responses in flight may end; connections close with code 1001.

        Returns at once; `wait_closed` waits for the end. What is not done after `Limits.drain_timeout` is cut off.
        """
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())

    async def wait_closed(self) -> None:
        """Wait until every connection is closed and every engine is stopped."""
        await self._listener.wait_closed()

    async def _listen(self, port: int) -> None:
        self._listener = await websocket_serve(
            self._serve_client,
            self._host,
            port,
            process_request=self._process_request,
            select_subprotocol=_select_subprotocol,
            compression=None,
            max_size=self._limits.max_message_bytes,
            close_timeout=CLOSE_TIMEOUT,
            max_queue=4,  # messages that may wait to be read, each of max_size
            # A pong waits behind the data of a slow reader, so pings judge nobody: the stall timeout does, and TCP
            # finds a dead peer by the pings that nobody acknowledges.
            ping_timeout=None,
            server_header=None,
        )
        self.port = self._listener.sockets[0].getsockname()[1]
        logger.info("listening on http://%s:%d", self._host, self.port)

    async def _close(self) -> None:
        self._listener.close(close_connections=False)
        for session in self._sessions:
            session.drain()
        drained = asyncio.ensure_future(self._listener.wait_closed())
        await asyncio.wait({drained}, timeout=self._limits.drain_timeout)
        late = [_WebsocketTransport(connection) for connection in self._listener.connections]
        if late:
            await asyncio.wait([asyncio.ensure_future(transport.close(*GOING_AWAY)) for transport in late])
        await drained

    async def _serve_client(self, connection: ServerConnection) -> None:
        raw_socket = connection.transport.get_extra_info("socket")
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # Linux and macOS
            raw_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        session = Session(
            _WebsocketTransport(connection),
            self._responses,
            models=self._models,
            limits=self._limits,
            heartbeat=connection.request is not None and "Origin" in connection.request.headers,
        )
        self._sessions.add(session)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)

    def _process_request(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a plain request, refuse a handshake, or return None to let it through."""
        if request.method not in ("GET", "HEAD"):
            return refuse(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method} is not served", {"Allow": "GET, HEAD"})
        path = request.path.partition("?")[0]
        if path == "/v1/responses":
            return self._admit(connection, request.headers)
        response = self._get(path, request.headers)
        if request.method == "HEAD":
            response.body = b""
        return response

    def _get(self, path: str, headers: Headers) -> Response:
        match path:
            case "/":
                return respond(
                    HTTPStatus.OK, "text/html; charset=utf-8", PAGE, {"Content-Security-Policy": PAGE_POLICY}
                )
            case "/health":
                return respond(HTTPStatus.OK, "application/json", b'{"status":"ok"}')
            case "/v1/models":
                return self._key_refusal(headers) or respond(HTTPStatus.OK, "application/json", self._model_list)
            case _:
                return refuse(HTTPStatus.NOT_FOUND, f"nothing is served at {path[:80]}")

    def _admit(self, connection: ServerConnection, headers: Headers) -> Response | None:
        origin = header(headers, "Origin")
        if not origin_allowed(origin, header(headers, "Host"), origins=self._origins, own_name=self._host):
            return refuse(HTTPStatus.FORBIDDEN, f"origin {origin} is not allowed")
        if refusal := self._key_refusal(headers):
            return refusal
        self._admitted = {known for known in self._admitted if known.state is not State.CLOSED}
        limit = self._limits.max_connections
        if len(self._admitted) >= limit:
            return refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"{limit} connections are open, which is the limit")
        self._admitted.add(connection)
        return None

    def _key_refusal(self, headers: Headers) -> Response | None:
        offered = key_offered(header(headers, "Authorization"), subprotocols(headers))
        if key_accepted(offered, self._api_key):
            return None
        problem = "no API key was given" if offered is None else "the API key is wrong"
        return refuse(HTTPStatus.UNAUTHORIZED, problem, {"WWW-Authenticate": "Bearer"})


class _WebsocketTransport:
    """A `websockets` connection as the session's `Transport`."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def receive(self) -> str | bytes | None:
        try:
            return await self._connection.recv()
        except ConnectionClosed:
            return None

    async def send(self, data: bytes) -> None:
        try:
            await self._connection.send(data, text=True)
        except ConnectionClosed:
            pass  # receive() tells the session

    async def close(self, code: int, reason: str) -> None:
        closing = asyncio.ensure_future(self._connection.close(code, reason))
        # close() waits for room in the write buffer without a limit, which a stalled reader never makes.
        done, _ = await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT)
        if not done:
            self._connection.transport.abort()
            await closing


def _select_subprotocol(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Any offered name but the key's, since a browser drops a connection that answers none of them."""
    return next((name for name in offered if not name.startswith(KEY_SUBPROTOCOL)), None)
