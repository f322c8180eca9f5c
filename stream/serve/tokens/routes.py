"""The paths of render and derender."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tokenweir.encode.errors import TokenweirError
from tokenweir.stream.serve.answers.job import Engines
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.http.endpoints import reply
from tokenweir.stream.serve.http.exchange import read_object
from tokenweir.stream.serve.monitoring.failures import explain
from tokenweir.stream.serve.tokens.derender import Derenderer
from tokenweir.stream.serve.tokens.render import Renderer
from tokenweir.stream.serve.tokens.stream import StreamDerenderer

Work = Callable[[dict[str, Any]], Awaitable[Any]]


class TokenRoutes:
    """Answers requests around an engine that somebody else asks.

    Args:
        service: The models and the limits.
        engines: The tokenizer and the template.

    """

    def __init__(self, service: Service, engines: Engines) -> None:
        self._service = service
        self._render = Renderer(service, engines)
        self._derender = Derenderer(service, engines, self._render)
        self._stream = StreamDerenderer(self._derender)

    @property
    def routes(self) -> list[Route]:
        """The paths."""
        chat, completions = "/v1/chat/completions", "/v1/completions"
        return [
            self._route(f"{chat}/render", self._render.chat),
            self._route(f"{completions}/render", self._render.completions),
            self._route("/v1/responses/render", self._render.responses),
            self._route(f"{chat}/derender", self._derender.chat, self._stream.chat),
            self._route(f"{completions}/derender", self._derender.completions, self._stream.completions),
        ]

    def _route(self, path: str, whole: Work, chunk: Work | None = None) -> Route:
        async def answer(request: Request) -> Response:
            body = await read_object(request, self._service)
            work = chunk if chunk is not None and body.get("stream") is True else whole
            try:
                return reply(await work(body))
            except TokenweirError as error:
                raise explain(error, path) from error

        return Route(path, answer, methods=["POST"])
