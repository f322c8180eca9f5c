"""Endpoints of Anthropic's Messages API: an answer, and the number of tokens of its prompt."""

from __future__ import annotations

import os
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tokenweir.encode.errors import TokenweirError
from tokenweir.stream.serve.answers.engines import Engines
from tokenweir.stream.serve.answers.job import message_job
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.http.api import Api
from tokenweir.stream.serve.http.exchange import read_object
from tokenweir.stream.serve.http.replies import reply
from tokenweir.stream.serve.monitoring.failures import explain
from tokenweir.stream.serve.wire.anthropic.answers import MessageAnswer
from tokenweir.stream.serve.wire.anthropic.requests import check_version, parse_count, parse_message
from tokenweir.stream.serve.wire.shared.errors import MESSAGES_PATH

SECRET_BYTES = 32


class Messages:
    """HTTP endpoints of Anthropic's Messages API."""

    def __init__(self, service: Service, engines: Engines, api: Api) -> None:
        self._service = service
        self._engines = engines
        self._api = api
        self._secret = os.urandom(SECRET_BYTES)

    @property
    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        return [
            Route(MESSAGES_PATH, self.create, methods=["POST"]),
            Route(f"{MESSAGES_PATH}/count_tokens", self.count_tokens, methods=["POST"]),
        ]

    async def create(self, request: Request) -> Response:
        """Handle `POST /v1/messages`: return a message, whole or as a stream of events."""
        limits = self._service.limits
        asked = parse_message(await self._body(request), max_items=limits.max_items)
        model = self._service.model(asked.model)
        history = self._engines.history(asked)
        answer = MessageAnswer(
            model,
            secret=self._secret,
            max_tokens=min(asked.max_tokens, limits.max_output_tokens),
            omit_thinking=asked.omits_thinking,
            left_out=history.left_out,
            edits=asked.context_management is not None,
        )
        generation = self._api.generate(answer.id, message_job(asked, model, history), request)
        return await self._api.answer(request, model, [generation], answer, stream=asked.stream, copies=0)

    async def count_tokens(self, request: Request) -> Response:
        """Handle `POST /v1/messages/count_tokens`: return the number of tokens of the prompt, without generating."""
        asked = parse_count(await self._body(request), max_items=self._service.limits.max_items)
        history = self._engines.history(asked)
        job = message_job(asked, self._service.model(asked.model), history)
        try:
            tokens = len(await self._engines.prompt_ids(await self._engines.plan(job)))
        except TokenweirError as error:
            raise explain(error, request.url.path) from error
        counted: dict[str, Any] = {"input_tokens": tokens}
        if asked.context_management is not None:
            counted["context_management"] = {"original_input_tokens": tokens}
        return reply(counted | ({"left_out": history.left_out} if history.left_out else {}))

    async def _body(self, request: Request) -> dict[str, Any]:
        check_version(request.headers.get("anthropic-version"))
        return await read_object(request, self._service)
