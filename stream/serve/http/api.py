"""Endpoints that generate: chat completions, completions and responses, as one answer or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.chat.broadcast import Subscription
from tokenweir.stream.chat.replay_buffer import ReplayBuffer
from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.events.merge import merge, size_of
from tokenweir.stream.serve.answers.generation import Generation
from tokenweir.stream.serve.answers.job import Job, chat_job, compact_job, completion_job
from tokenweir.stream.serve.answers.response_task import Responses, ResponseTask
from tokenweir.stream.serve.http.exchange import EventStream, may_cache, read_json, read_object, while_connected
from tokenweir.stream.serve.http.replies import check_copies, reply, reply_with
from tokenweir.stream.serve.limits.admission import undone_by
from tokenweir.stream.serve.wire.openai.chat import parse_chat_json
from tokenweir.stream.serve.wire.openai.chat_answers import ChatAnswer
from tokenweir.stream.serve.wire.openai.completions import CompletionAnswer, parse_completion
from tokenweir.stream.serve.wire.responses.compaction import compacted
from tokenweir.stream.serve.wire.responses.events import LAST_EVENTS, ResponseEvent
from tokenweir.stream.serve.wire.responses.requests import parse_compact, parse_create
from tokenweir.stream.serve.wire.shared.answer_format import AnsweredPrompt, AnswerFormat
from tokenweir.stream.serve.wire.shared.errors import ErrorBody, RequestError, error_detail
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.shared.sse import DONE, named_sse, sse

T = TypeVar("T")


class Api:
    """HTTP endpoints of OpenAI's interfaces that generate: Chat Completions, Completions and Responses."""

    def __init__(self, responses: Responses) -> None:
        self._responses = responses
        self._service = responses.service
        self._limits = responses.service.limits

    @property
    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        return [
            Route("/v1/chat/completions", self.chat_completions, methods=["POST"]),
            Route("/v1/completions", self.completions, methods=["POST"]),
            Route("/v1/responses", self.responses, methods=["POST"]),
            Route("/v1/responses/compact", self.compact, methods=["POST"]),
            Route("/v1/responses/{response_id}", self.delete, methods=["DELETE"]),
        ]

    async def chat_completions(self, request: Request) -> Response:
        """Handle `POST /v1/chat/completions`: return a chat completion, whole or as a stream of events."""
        service = self._service
        asked = parse_chat_json(await read_json(request, self._service), max_items=self._limits.max_items)
        model = service.model(asked.model)
        field, limit = asked.limit
        service.check_max_tokens(limit, field)
        service.check_choices(asked.n)
        answer = ChatAnswer(
            model,
            choices=asked.n,
            logprobs=asked.logprobs,
            top_logprobs=bool(asked.top_logprobs),
            token_ids=asked.return_token_ids,
            usage=asked.stream_options.include_usage,
        )
        generation = self.generate(answer.id, chat_job(asked, model), request)
        return await self.answer(request, model, [generation], answer, stream=asked.stream)

    async def completions(self, request: Request) -> Response:
        """Handle `POST /v1/completions`: return a completion of each prompt, whole or as a stream of events."""
        service = self._service
        asked = parse_completion(await read_object(request, self._service), max_items=self._limits.max_items)
        model = service.model(asked.model)
        service.check_max_tokens(asked.max_tokens, "max_tokens")
        prompts = asked.prompts()
        service.check_choices(asked.n, len(prompts))
        answer = CompletionAnswer(asked, model, asked.n * len(prompts))
        jobs = [completion_job(asked, model, prompt) for prompt in prompts]
        generations: list[Generation[Delta]] = []
        with undone_by(partial(_drop, generations)):
            for job in jobs:
                generations.append(self.generate(answer.id, job, request))
        copies = asked.n if asked.return_token_ids or asked.echo else 0
        return await self.answer(request, model, generations, answer, stream=asked.stream, copies=copies)

    def generate(self, answer_id: str, job: Job, request: Request) -> Generation[Delta]:
        """Start the answer to a job for the client of an HTTP request, and return it.

        Raises `RequestError` as `Service.generate`.
        """
        return self._service.generate(
            answer_id,
            replace(job, caches=may_cache(request.headers)),
            request.scope["tokenweir.client"],
            replay=ReplayBuffer(0, merge, size_of),
            make=merge,
        )

    async def answer(
        self,
        request: Request,
        model: str,
        generations: Sequence[Generation[Delta]],
        answer: AnswerFormat,
        *,
        stream: bool,
        copies: int = 1,
    ) -> Response:
        """Return the HTTP response for answers that are being generated, whole or as a stream of events.

        A disconnect of the client stops them. Errors of a prompt are raised, and so get an HTTP status of their own.

        Args:
            request: The HTTP request.
            model: The model's name, for metrics.
            generations: The answers, one generation for each prompt. A stream sends them one after the other.
            answer: Converts deltas to the form of the interface.
            stream: Whether to send events as they come.
            copies: Number of times that the response repeats the ids of each prompt, for the limit on its size; 0 for
                none.

        """
        leave = partial(_drop, generations)
        tokens = 0
        prompts: list[AnsweredPrompt] = []

        async def collect(prompt: AnsweredPrompt, generation: Generation[Delta]) -> None:
            nonlocal tokens
            async for deltas in self._batches(generation):
                tokens += sum(len(delta.token_ids) for delta in deltas)
                answer.add(deltas, prompt)

        async def events() -> AsyncIterator[bytes]:
            try:
                if data := b"".join(answer.start(prompts[0])):
                    yield data
                for prompt, generation in zip(prompts, generations, strict=True):
                    async for deltas in self._batches(generation):
                        if data := b"".join(answer.chunks(deltas, prompt)):
                            yield data
                if data := answer.last():
                    yield data
            except (RequestError, DeliveryError) as error:
                yield answer.error(_to_request_error(error))
            yield answer.END

        with undone_by(leave):
            for place, generation in enumerate(generations):  # errors of the prompt get their own HTTP status
                await while_connected(request, asyncio.shield(generation.started))
                prompts.append(AnsweredPrompt(generation.prompt_ids, place, generation.echo))
            prompt_tokens = sum(len(prompt.ids) for prompt in prompts)
            check_copies(prompt_tokens, copies, self._limits)
            if stream:
                stalled = self._cut_off(model)
                return EventStream(
                    events(), leave=leave, limits=self._limits, stalled=stalled, heartbeat=answer.HEARTBEAT
                )
            await while_connected(request, asyncio.gather(*map(collect, prompts, generations)))
            return await reply_with(answer.whole, tokens + prompt_tokens, self._limits)

    async def responses(self, request: Request) -> Response:
        """Handle `POST /v1/responses`: return a response, whole or as a stream of events."""
        asked = parse_create(await read_object(request, self._service), max_items=self._limits.max_items)
        client = request.scope["tokenweir.client"]
        task = await self._responses.create(asked, client, caches=may_cache(request.headers))
        subscription = task.subscribe()
        leave = partial(_leave, task, subscription)
        with undone_by(leave):
            await while_connected(request, asyncio.shield(task.generation.started))
            if asked.stream:
                events = self._response_events(subscription)
                return EventStream(events, leave=leave, limits=self._limits, stalled=self._cut_off(task.model))
            last = await while_connected(request, _last_event(subscription))
        subscription.close()
        if (failure := last.response.error) is not None:
            raise RequestError(failure.message, code=failure.code, status=500)
        usage = last.response.usage
        tokens = 0 if usage is None else usage.total_tokens
        return await reply_with(partial(msgspec.json.encode, last.response), tokens, self._limits)

    async def delete(self, request: Request) -> Response:
        """Handle `DELETE /v1/responses/{response_id}`: delete a stored response and its cached prompts."""
        response_id = request.path_params["response_id"]
        await self._responses.delete(response_id, request.scope["tokenweir.client"])
        return reply({"id": response_id, "object": "response", "deleted": True})

    async def compact(self, request: Request) -> Response:
        """Handle `POST /v1/responses/compact`: return a shorter form of a conversation, as input for the next response."""
        asked = parse_compact(await read_object(request, self._service), max_items=self._limits.max_items)
        model = self._service.model(asked.model)
        conversation = await self._responses.conversation(asked, request.scope["tokenweir.client"])
        generation = self.generate(new_id("cmp"), compact_job(asked, model, conversation), request)
        with undone_by(generation.drop):
            await while_connected(request, asyncio.shield(generation.started))
            deltas = await while_connected(request, self._all(generation))
            tokens = len(generation.prompt_ids)  # the prompt's messages are most of the answer
            return await reply_with(
                lambda: msgspec.json.encode(compacted(conversation, deltas, asked.left_out)), tokens, self._limits
            )

    async def _response_events(self, subscription: Subscription[ResponseEvent]) -> AsyncIterator[bytes]:
        try:
            while events := await subscription.take():
                yield b"".join(map(named_sse, events))
        except (RequestError, DeliveryError) as error:
            yield sse(ErrorBody(error_detail(_to_request_error(error))))
        yield DONE

    async def _batches(self, generation: Generation[T]) -> AsyncIterator[list[T]]:
        with generation.subscribe() as subscription:
            while items := await subscription.take():
                yield items

    async def _all(self, generation: Generation[T]) -> list[T]:
        return [item async for items in self._batches(generation) for item in items]

    def _cut_off(self, model: str) -> Callable[[], None]:
        return partial(self._service.metrics.cut_off, model)


async def _last_event(subscription: Subscription[ResponseEvent]) -> Any:
    last: Any = None
    while events := await subscription.take():
        last = events[-1]
    assert isinstance(last, LAST_EVENTS)
    return last


def _drop(generations: Iterable[Generation[Any]]) -> None:
    for generation in generations:
        generation.drop()


def _leave(task: ResponseTask, subscription: Subscription[ResponseEvent]) -> None:
    subscription.close()
    if not task.background:
        task.generation.drop()


def _to_request_error(error: RequestError | DeliveryError) -> RequestError:
    if isinstance(error, DeliveryError):
        return RequestError(str(error), code=error.outcome, status=500)
    return error
