"""Endpoints without generation: models, tokens, health, metrics, the page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tokenweir.encode.errors import TokenIdError, TokenweirError
from tokenweir.stream.serve.answers.engines import Engines
from tokenweir.stream.serve.answers.job import Job
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.http.exchange import read_object
from tokenweir.stream.serve.http.replies import JSON, check_described, check_text, encoded, reply
from tokenweir.stream.serve.monitoring.metrics import CONTENT_TYPE
from tokenweir.stream.serve.page import PAGE, PAGE_POLICY
from tokenweir.stream.serve.wire.openai.chat_messages import chat_messages
from tokenweir.stream.serve.wire.shared.checking import convert, count_items
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.prompt_end import Continued, prompt_end_kwargs


class Tokenize(Struct, frozen=True, kw_only=True):
    """The body of `POST /tokenize` in vLLM's form; it has either `prompt`, a text, or `messages`, a conversation."""

    model: str | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] = {}
    add_generation_prompt: bool | None = None
    continue_final_message: Continued = False
    add_special_tokens: bool | None = None
    return_token_strs: bool = False


class DetokenizeRequest(Struct, frozen=True, kw_only=True):
    """The body of `POST /detokenize`.

    `return_tokens` is an extension: describe each token by itself, with its id and bytes.
    """

    tokens: list[int]
    model: str | None = None
    return_tokens: bool = False


class Endpoints:
    """HTTP endpoints without generation: models, tokenization, health checks, metrics and the chat page."""

    def __init__(self, service: Service, engines: Engines) -> None:
        self._service = service
        self._engines = engines
        self._created = int(time.time())

    @property
    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        return [
            Route("/", self.page),
            Route("/page/{name:path}", self.page_file),
            Route("/health", self.health),
            Route("/ready", self.ready),
            Route("/metrics", self.metrics),
            Route("/v1/models", self.models),
            Route("/v1/models/{model:path}", self.model),
            Route("/tokenize", self.tokenize, methods=["POST"]),
            Route("/detokenize", self.detokenize, methods=["POST"]),
        ]

    async def page(self, request: Request) -> Response:
        """Handle `GET /`: return the chat page."""
        return _file("index.html")

    async def page_file(self, request: Request) -> Response:
        """Return a script, a style or another file of the chat page; status 404 for an unknown name."""
        if (name := request.path_params["name"]) not in PAGE:
            raise HTTPException(404)
        return _file(name)

    async def health(self, request: Request) -> Response:
        """Handle `GET /health`: always answer with status 200."""
        return reply({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Handle `GET /ready`: answer with status 200 if the server can generate, else with status 503 and the reason.

        It is not ready while it is closing, has no room for another answer, or an engine is not ready.
        """
        service = self._service
        unready = [name for name in service.models if not self._engines.ready(name)]
        full = service.admission.generations >= service.limits.max_generations
        problem = "draining" if service.draining else "full" if full else "engine not ready" if unready else None
        if problem is None:
            return reply({"status": "ready", "models": service.models})
        return reply({"status": problem, "models": unready}, 503)

    async def metrics(self, request: Request) -> Response:
        """Handle `GET /metrics`: return the metrics of all workers for Prometheus."""
        peers = self._service.peers
        others = [] if peers is None else await peers.counts()
        self._service.counts()
        return Response(self._service.metrics.text(others), headers={"content-type": CONTENT_TYPE})

    async def models(self, request: Request) -> Response:
        """Handle `GET /v1/models`: return the list of models, with the fields of OpenAI's and of Anthropic's API."""
        names = self._service.models
        page = {"has_more": False, "first_id": names[0], "last_id": names[-1]}  # Anthropic's
        return reply({"object": "list", "data": [self._model(name) for name in names], **page})

    async def model(self, request: Request) -> Response:
        """Handle `GET /v1/models/{model}`: return the description of one model."""
        return reply(self._model(self._service.model(request.path_params["model"])))

    def _model(self, name: str) -> dict[str, Any]:
        size = self._engines.context_size(name)
        more: dict[str, Any] = {} if size is None else {"max_model_len": size}
        more |= {"media": self._engines.media(name), "max_message_bytes": self._service.limits.max_message_bytes}
        created_at = datetime.fromtimestamp(self._created, UTC).isoformat().replace("+00:00", "Z")
        anthropic = {"type": "model", "display_name": name, "created_at": created_at}
        return {"id": name, "object": "model", "created": self._created, "owned_by": "tokenweir", **more, **anthropic}

    async def tokenize(self, request: Request) -> Response:
        """Handle `POST /tokenize`: return the ids of a text, or of the prompt for a conversation."""
        limits = self._service.limits
        body = await read_object(request, self._service)
        count_items(body, ("messages", "tools"), limits.max_items)
        asked = convert(body, Tokenize)
        model = self._service.model(asked.model)
        if (asked.prompt is None) == (asked.messages is None):
            raise RequestError("give either prompt or messages", code="missing_required_parameter", param="prompt")
        try:
            if asked.messages is not None:
                job = Job(
                    model=model,
                    messages=chat_messages(asked.messages),
                    tools=asked.tools,
                    template_kwargs=prompt_end_kwargs(asked.add_generation_prompt, asked.continue_final_message)
                    | asked.chat_template_kwargs,
                )
            else:
                job = Job(model=model, prompt=asked.prompt)
            ids = await self._engines.prompt_ids(
                await self._engines.plan(job), add_special_tokens=asked.add_special_tokens is not False
            )
        except RequestError:
            raise
        except TokenweirError as error:
            raise RequestError(str(error), code="invalid_prompt") from error
        size = self._engines.context_size(model)
        if asked.return_token_strs:
            check_described(len(ids), limits, "return_token_strs")
        work = partial(self._tokenized, ids, size, strings=asked.return_token_strs)
        return Response(await self._engines.work(work, len(ids)), media_type=JSON)

    async def detokenize(self, request: Request) -> Response:
        """Handle `POST /detokenize`: return the text of ids."""
        asked = convert(await read_object(request, self._service), DetokenizeRequest)
        self._service.model(asked.model)
        if asked.return_tokens:
            check_described(len(asked.tokens), self._service.limits, "return_tokens")
        try:
            data = await self._engines.work(partial(self._detokenized, asked), len(asked.tokens))
            return Response(data, media_type=JSON)
        except TokenIdError as error:
            raise RequestError(str(error), param="tokens") from error

    def _tokenized(self, ids: Sequence[int], size: int | None, *, strings: bool) -> bytes:
        told: dict[str, Any] = {"count": len(ids), "max_model_len": size, "tokens": ids}
        if strings:
            token_bytes = self._engines.tokenizer.token_bytes
            told["token_strs"] = [token_bytes(token_id).decode("utf-8", "replace") for token_id in ids]
        return encoded(told, self._service.limits)

    def _detokenized(self, asked: DetokenizeRequest) -> bytes:
        tokenizer, limits = self._engines.tokenizer, self._service.limits
        check_text(tokenizer, [asked.tokens], limits)
        told: dict[str, Any] = {"prompt": tokenizer.decode(asked.tokens, skip_special_tokens=False)}
        if asked.return_tokens:
            control = frozenset(tokenizer.special_tokens.values())
            described = {
                token_id: msgspec.Raw(
                    msgspec.json.encode(
                        {"id": token_id, "bytes": list(tokenizer.token_bytes(token_id)), "special": token_id in control}
                    )
                )
                for token_id in set(asked.tokens)
            }
            told["tokens"] = [described[token_id] for token_id in asked.tokens]
        return encoded(told, limits)


def _file(name: str) -> Response:
    content, media_type = PAGE[name]
    return Response(content, media_type=media_type, headers={"content-security-policy": PAGE_POLICY})
