"""The paths of render and derender."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tokenweir.encode.errors import TokenweirError
from tokenweir.stream.serve.answers.engines import Engines
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.http.exchange import read_json
from tokenweir.stream.serve.http.replies import JSON, reply_with
from tokenweir.stream.serve.monitoring.failures import explain
from tokenweir.stream.serve.options import RenderSchemaName
from tokenweir.stream.serve.tokens.derender import Derenderer
from tokenweir.stream.serve.tokens.render import Renderer
from tokenweir.stream.serve.tokens.schemas import RenderedRequest
from tokenweir.stream.serve.tokens.stream import StreamDerenderer
from tokenweir.stream.serve.wire.openai.chat import read_chat_json
from tokenweir.stream.serve.wire.shared.checking import parse_object
from tokenweir.stream.serve.wire.shared.errors import MESSAGES_PATH, RequestError

Work = Callable[[dict[str, Any]], Awaitable[bytes]]
Read = Callable[[bytes], tuple[Any, ...]]
Rendering = Callable[..., Awaitable[RenderedRequest | list[RenderedRequest]]]


class TokenRoutes:
    """HTTP endpoints of render and derender, for clients that send the requests in ids to an engine themselves."""

    def __init__(self, service: Service, engines: Engines, schema: RenderSchemaName = "vllm") -> None:
        self._service = service
        self._render = Renderer(service, engines, schema)
        self._derender = Derenderer(service, engines, Renderer(service, engines))
        self._stream = StreamDerenderer(self._derender)

    @property
    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        chat, completions = "/v1/chat/completions", "/v1/completions"
        read_chat = partial(read_chat_json, max_items=self._service.limits.max_items)
        return [
            self._render_route(f"{chat}/render", self._render.chat, read_chat),
            self._render_route(f"{completions}/render", self._render.completions),
            self._render_route("/v1/responses/render", self._render.responses),
            self._render_route(f"{MESSAGES_PATH}/render", self._render.messages),
            self._derender_route(f"{chat}/derender", self._derender.chat, self._stream.chat),
            self._derender_route(f"{completions}/derender", self._derender.completions, self._stream.completions),
        ]

    def _render_route(self, path: str, work: Rendering, read: Read | None = None) -> Route:
        async def answer(client: str, *asked: Any) -> Response:
            made = await work(*asked, client=client)
            tokens = sum(len(one.token_ids) for one in (made if isinstance(made, list) else [made]))
            return await reply_with(partial(msgspec.json.encode, made), tokens, self._service.limits)

        return self._route(path, answer, read)

    def _derender_route(self, path: str, whole: Work, chunk: Work) -> Route:
        async def answer(_: str, body: dict[str, Any]) -> Response:
            work = chunk if body.get("stream") is True else whole
            return Response(await work(body), media_type=JSON)

        return self._route(path, answer)

    def _route(self, path: str, answer: Callable[..., Awaitable[Response]], read: Read | None = None) -> Route:
        async def answered(request: Request) -> Response:
            data = await read_json(request, self._service)
            asked = (parse_object(data),) if read is None else read(data)
            del data
            try:
                return await answer(request.scope["tokenweir.client"], *asked)
            except RequestError:
                raise
            except TokenweirError as error:
                raise explain(error, path) from error

        return Route(path, answered, methods=["POST"])
