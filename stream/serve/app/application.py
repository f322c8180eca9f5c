"""`asgi_app()`: engines behind HTTP and websockets, as one ASGI application.

POST /v1/chat/completions    OpenAI's Chat Completions, whole or as a stream of server-sent events
POST /v1/completions         texts or ids to continue
POST /v1/responses           OpenAI's and Open Responses' responses, likewise
POST /v1/messages            Anthropic's Messages, likewise; /v1/messages/count_tokens counts their prompt
DELETE /v1/responses/ID       a stored response, and what is cached of its conversation
POST /v1/responses/compact   a conversation made shorter, for the input of a response
WS   /v1/responses           the same over a socket: one `Session` a connection
GET  /v1/models              the models
POST /tokenize, /detokenize  as vLLM has them
POST .../render, .../derender  below the first four and the first two: requests to ids and ids to answers, as vLLM has them
GET  /health, /ready         whether the server lives; whether it can answer
GET  /metrics                for Prometheus
GET  /                       the chat page
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Unpack

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from tokenweir.encode.base.options import check_options
from tokenweir.stream.prompts.cache.ledger import Ledger
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.stream.serve.answers.engines import Engines
from tokenweir.stream.serve.answers.job_runner import JobRunner
from tokenweir.stream.serve.answers.response_task import Responses
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.app.auth import KEY_SUBPROTOCOL
from tokenweir.stream.serve.app.guard import Guard, path_of, refuse
from tokenweir.stream.serve.app.options import ServerSettings, resolve_options
from tokenweir.stream.serve.http.api import Api
from tokenweir.stream.serve.http.endpoints import Endpoints
from tokenweir.stream.serve.http.exchange import may_cache
from tokenweir.stream.serve.http.messages import Messages
from tokenweir.stream.serve.http.replies import JSON
from tokenweir.stream.serve.limits.connections import Disconnected
from tokenweir.stream.serve.monitoring.access_log import AccessLog
from tokenweir.stream.serve.monitoring.failures import server_failed
from tokenweir.stream.serve.options import ServerOptions
from tokenweir.stream.serve.sockets.session import Session
from tokenweir.stream.serve.sockets.websocket import SocketTransport
from tokenweir.stream.serve.tokens.routes import TokenRoutes
from tokenweir.stream.serve.wire.shared.errors import RequestError, error_body

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[Any]]

logger = logging.getLogger("tokenweir.serve")

CHECK_EVERY = 1000
"""Cached prompts until one is encoded again as a check."""


def asgi_app(
    *, middleware: Sequence[Middleware] = (), lifespan: Lifespan | None = None, **options: Unpack[ServerOptions]
) -> Application:
    """Return an ASGI application that serves engines, to be mounted in FastAPI or Starlette, or served as it is.

        llm = tokenweir.asgi_app(engine=engine, tokenizer=tokenizer, hosts=["*"])
        app = FastAPI(lifespan=llm.lifespan)
        app.mount("/llm", llm)

    FastAPI and Starlette run the lifespan of the outermost application alone; so it must enter `lifespan` of the mounted one.
    Without it answers are not given time to end when the server closes. It runs under asyncio.

    Args:
        middleware: ASGI middleware around all routes, inside the checks of keys, hosts and origins, as Starlette takes
            it: `[Middleware(Class, option=...)]`. The first one is the outermost.
        lifespan: A function of the outermost application that returns an async context manager, entered at start-up and
            left when the server closes, after its answers have ended. Requests raise `RuntimeError` if it was not entered.
        options: See `ServerOptions`.

    Raises:
        TemplateError: No template is given and none came with the tokenizer.
        TypeError: An argument has the wrong type, or `origins` or `hosts` is a single str.
        ValueError: There is no engine, or an API key is empty or not ASCII.

    """
    check_options(options, ServerOptions.__required_keys__ | ServerOptions.__optional_keys__, "asgi_app()")
    return Application(resolve_options(options), middleware=middleware, lifespan=lifespan)


class Application:
    """The ASGI application of a server; `asgi_app` makes it.

    Attributes:
        service: The state that all connections share.
        responses: Registry of the stored and running responses.
        routes: The HTTP routes.

    """

    def __init__(
        self, settings: ServerSettings, *, middleware: Sequence[Middleware] = (), lifespan: Lifespan | None = None
    ) -> None:
        limits, options = settings.limits, settings.options
        ledger = Ledger(limits.max_stored_bytes)
        prompts = PromptCache(ledger=ledger, check_every=CHECK_EVERY) if options["prompt_cache"] else None
        engines = Engines(
            settings.engines,
            options,
            template=settings.template,
            limits=limits,
            prompts=prompts,
            secret=settings.secret,
        )
        self.service = Service(
            JobRunner(engines, limits.max_held_media_bytes).answer,
            list(settings.engines),
            limits,
            reasoning_events=options["reasoning_events"],
            ledger=ledger,
            prompts=prompts,
            default_max_tokens={name: engines.default_max_tokens(name) for name in settings.engines},
        )
        self.responses = Responses(self.service)
        self._sessions: set[Session] = set()
        self._own_lifespan = lifespan
        self._entered = False
        api = Api(self.responses)
        routes = [
            *api.routes,
            *Messages(self.service, engines, api).routes,
            *Endpoints(self.service, engines).routes,
            *TokenRoutes(self.service, engines, options["render_schema"]).routes,
            WebSocketRoute("/v1/responses", _Sockets(self.responses, self._sessions)),
        ]
        handlers: dict[Any, Any] = {
            RequestError: self._refuse,
            HTTPException: self._not_found,
            Disconnected: _nobody,
            Exception: self._fail,
        }
        self.routes = [route for route in routes if isinstance(route, Route)]
        methods = frozenset[str]().union(*(route.methods or () for route in self.routes))
        starlette = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=self.lifespan)
        self._app = AccessLog(Guard(starlette, settings.gate, self.service, methods))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one ASGI connection: an HTTP request, a websocket or the lifespan."""
        if self._own_lifespan is not None and not self._entered and scope["type"] != "lifespan":
            raise RuntimeError(
                "the lifespan= given to asgi_app() was not entered; where the application is mounted, the outer one must "
                "enter it: llm = asgi_app(...), FastAPI(lifespan=llm.lifespan)"
            )
        await self._app(scope, receive, send)

    def drain(self) -> None:
        """Refuse new requests; running ones finish, and each websocket closes after its running response."""
        self.service.draining = True
        for session in list(self._sessions):
            session.drain()

    async def close(self) -> None:
        """Refuse new requests and stop all answers; return once every engine has stopped or been abandoned."""
        self.drain()
        await self.service.close([session.close() for session in self._sessions])

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Accept requests while the context lasts, inside that of `asgi_app(lifespan=...)`; leaving it calls `close`.

        ASGI servers enter it. An application that mounts this one enters it in its own lifespan.

        Args:
            app: The outermost application.

        """
        async with nullcontext() if self._own_lifespan is None else self._own_lifespan(app):
            self.service.draining = False  # it may have been closed before, in another event loop
            self._entered = True
            try:
                yield
            finally:
                self._entered = False
                await self.close()

    async def _refuse(self, request: Request, error: RequestError) -> Response:
        self.service.metrics.refuse(error.code)
        headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
        return Response(error_body(error, path_of(request.scope)), error.status, headers, JSON)

    async def _not_found(self, request: Request, error: HTTPException) -> Response:
        path = request.url.path[:80]
        if error.status_code == 404:
            near = self._near(path_of(request.scope))
            told = RequestError(
                f"nothing is served at {path}{'; it is at ' if near else ''}{near}", code="not_found", status=404
            )
        else:
            told = RequestError(
                f"{request.method[:20]} is not served at {path}", code="method_not_allowed", status=error.status_code
            )
        return Response(error_body(told, path_of(request.scope)), told.status, error.headers, JSON)

    def _near(self, path: str) -> str:
        """Return the served path that differs from `path` by one `/v1` in front, or "".

        OpenAI's clients want the server's address with `/v1`, and Anthropic's without it.
        """
        paths = {route.path for route in self.routes}
        return next((near for near in (f"/v1{path}", path.removeprefix("/v1")) if near in paths), "")

    async def _fail(self, request: Request, error: Exception) -> Response:
        told = server_failed()
        return Response(error_body(told, path_of(request.scope)), told.status, media_type=JSON)


async def _nobody(request: Request, error: Disconnected) -> Response:
    return Response(status_code=499)


class _Sockets:  # Starlette's own object would add a call per event
    """ASGI endpoint of the Responses websocket: accepts the connection and runs a `Session` on it."""

    def __init__(self, responses: Responses, sessions: set[Session]) -> None:
        self._responses = responses
        self._sessions = sessions

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()  # websocket.connect
        service = self._responses.service
        if service.draining:
            try:
                service.check_open()
            except RequestError as error:
                await refuse(scope, send, error)
                return
        # A browser drops a connection unless the answer selects an offered name; the key must not be repeated.
        offered = [name for name in scope.get("subprotocols", ()) if not name.startswith(KEY_SUBPROTOCOL)]
        await send({"type": "websocket.accept", "subprotocol": offered[0] if offered else None})
        session = Session(
            SocketTransport(scope, receive, send),
            self._responses,
            client=scope["tokenweir.client"],
            heartbeat=any(name == b"origin" for name, _ in scope["headers"]),
            caches=may_cache(Headers(scope=scope)),
        )
        self._sessions.add(session)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)
