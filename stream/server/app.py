"""`asgi_app()`: engines behind HTTP and websockets, as one ASGI application.

POST /v1/chat/completions    OpenAI's Chat Completions, whole or as a stream of server-sent events
POST /v1/completions         texts or ids to go on with
POST /v1/responses           OpenAI's and Open Responses' responses, likewise
POST /v1/responses/compact   a conversation made shorter, for the input of a response
WS   /v1/responses           the same over a socket: one `Session` a connection
GET  /v1/models              the models
POST /tokenize, /detokenize  as vLLM has them
POST .../render, .../derender  below the first three and the first two: requests to ids and ids to answers, as vLLM has them
GET  /health, /ready         whether the server lives; whether it can answer
GET  /metrics                for Prometheus
GET  /                       the chat page
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import WebSocketRoute

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines.protocol import Engine, check_engine
from tokenweir.stream.pipeline.chat import check_template, own_template
from tokenweir.stream.prompts.prompt_encoding import Encoder, check_encoder
from tokenweir.stream.server.answers.job import Engines
from tokenweir.stream.server.answers.response_task import Responses
from tokenweir.stream.server.entry.auth import KEY_SUBPROTOCOL, Gate
from tokenweir.stream.server.entry.guard import Guard, refuse
from tokenweir.stream.server.http.api import Api
from tokenweir.stream.server.http.endpoints import Endpoints
from tokenweir.stream.server.http.exchange import Disconnected
from tokenweir.stream.server.http.replies import JSON
from tokenweir.stream.server.limits import Limits
from tokenweir.stream.server.monitoring.access_log import AccessLog
from tokenweir.stream.server.service import DEFAULT, Service
from tokenweir.stream.server.session import Session
from tokenweir.stream.server.tokens.routes import TokenRoutes
from tokenweir.stream.server.websocket import SocketTransport
from tokenweir.stream.server.wire.errors import RequestError, error_body
from tokenweir.templates.chat_template import ChatTemplate

logger = logging.getLogger("tokenweir.serve")

ReasoningEvents = Literal["reasoning_text", "reasoning"]


def asgi_app(
    *,
    engine: Engine | Mapping[str, Engine],
    tokenizer: Tokenizer,
    template: ChatTemplate | None = None,
    encoder: Encoder | None = None,
    api_key: str | Sequence[str] | None = None,
    origins: Collection[str] = (),
    hosts: Collection[str] = (),
    limits: Limits | None = None,
    reasoning_events: ReasoningEvents = "reasoning_text",
) -> Application:
    """Make an ASGI application of engines, to be mounted in FastAPI or Starlette, or served as it is.

        app = FastAPI()
        app.mount("/llm", tokenweir.asgi_app(engine=engine, tokenizer=tokenizer, hosts=["*"]))

    It runs under asyncio.

    Args:
        engine: One engine, served as the model `default`; or several by their model names, of which the first answers
            requests that name none, or `default`. All take the ids of `tokenizer`.
        tokenizer: Prompts to ids, and ids to text.
        template: Messages to prompt; None means the template that came with the tokenizer.
        encoder: What turns prompts into ids in place of the tokenizer, such as a `PromptBatcher`.
        api_key: What clients must give, or several of them: as `Authorization: Bearer KEY`, or in a browser's websocket
            as the subprotocol `openai-insecure-api-key.KEY` beside another one. ASCII.
        origins: Origins of web pages that may connect besides the server's own page, such as
            `https://chat.example.org`.
        hosts: Names under which the server answers, besides addresses and `localhost`; "*" is for any. With keys and
            without `hosts` it answers under any.
        limits: What clients may cost.
        reasoning_events: What the events of thinking are called in responses: `reasoning_text` as OpenAI does, which its
            clients understand, or `reasoning` as Open Responses does.

    Raises:
        TemplateError: No template is given and none came with the tokenizer.
        TypeError: An argument is of the wrong type, or `origins` or `hosts` is one text in place of several.
        ValueError: No engine, or an API key that is empty or not ASCII.

    """
    return Application(
        engine, tokenizer, template, encoder, api_key, origins, hosts, limits or Limits(), reasoning_events
    )


class Application:
    """What `asgi_app` gives: an ASGI application.

    Attributes:
        service: What its connections share.
        responses: The responses in flight.

    """

    def __init__(
        self,
        engine: Engine | Mapping[str, Engine],
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        encoder: Encoder | None,
        api_key: str | Sequence[str] | None,
        origins: Collection[str],
        hosts: Collection[str],
        limits: Limits,
        reasoning_events: ReasoningEvents,
        *,
        own_name: str = "localhost",
    ) -> None:
        engines = engine if isinstance(engine, Mapping) else {DEFAULT: engine}
        if not engines:
            raise ValueError("there is no model to serve")
        for name, one in engines.items():
            check_engine(one, "engine" if one is engine else f"engine[{name!r}]")
        check_template(template)
        if not isinstance(limits, Limits):
            raise TypeError(f"limits is a {type(limits).__name__}, not a Limits")
        check_encoder(encoder)
        if api_key is None or (isinstance(api_key, Iterable) and not isinstance(api_key, str | bytes)):
            keys = list(api_key or ())
        else:
            keys = [api_key]
        gate = Gate(keys=keys, origins=origins, hosts=hosts, own_name=own_name)
        answering = Engines(
            engines,
            tokenizer=tokenizer,
            template=template or own_template(tokenizer),
            encoder=encoder,
            limits=limits,
        )
        self.service = Service(answering.answer, list(engines), limits, reasoning_events=reasoning_events)
        self.responses = Responses(self.service)
        self._sessions: set[Session] = set()
        routes = [
            *Api(self.responses).routes,
            *Endpoints(self.service, answering).routes,
            *TokenRoutes(self.service, answering).routes,
            WebSocketRoute("/v1/responses", _Sockets(self.responses, self._sessions)),
        ]
        handlers: dict[Any, Any] = {
            RequestError: self._refuse,
            HTTPException: self._not_found,
            Disconnected: _nobody,
            Exception: self._fail,
        }
        starlette = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        self._app = AccessLog(Guard(starlette, gate, self.service))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a connection, as ASGI has it."""
        await self._app(scope, receive, send)

    def drain(self) -> None:
        """Take no more requests; those in flight go on, and sockets close after theirs."""
        self.service.draining = True
        for session in list(self._sessions):
            session.drain()

    async def close(self) -> None:
        """Stop what is in flight; returns once every engine has stopped or was abandoned."""
        self.drain()
        await self.service.close([session.close() for session in self._sessions])

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        await self.close()

    async def _refuse(self, request: Request, error: RequestError) -> Response:
        self.service.metrics.refuse(error.code)
        headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
        return Response(error_body(error), error.status, headers, JSON)

    async def _not_found(self, request: Request, error: HTTPException) -> Response:
        path = request.url.path[:80]
        if error.status_code == 404:
            told = RequestError(f"nothing is served at {path}", code="not_found", status=404)
        else:
            told = RequestError(
                f"{request.method[:20]} is not served at {path}", code="method_not_allowed", status=error.status_code
            )
        return Response(error_body(told), told.status, error.headers, JSON)

    async def _fail(self, request: Request, error: Exception) -> Response:
        told = RequestError("the server failed; its log says why", code="server_error", status=500)
        return Response(error_body(told), 500, media_type=JSON)


async def _nobody(request: Request, error: Disconnected) -> Response:
    return Response(status_code=499)


class _Sockets:
    """The websocket of responses, as an ASGI application; Starlette's own object would cost a call an event."""

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
        # A browser drops a connection that answers none of the names it offers; the key is not to be repeated.
        offered = [name for name in scope.get("subprotocols", ()) if not name.startswith(KEY_SUBPROTOCOL)]
        await send({"type": "websocket.accept", "subprotocol": offered[0] if offered else None})
        session = Session(
            SocketTransport(scope, receive, send),
            self._responses,
            client=scope["tokenweir.client"],
            heartbeat=any(name == b"origin" for name, _ in scope["headers"]),
        )
        self._sessions.add(session)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)
