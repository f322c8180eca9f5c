"""What an engine is asked for, whatever interface it was asked through."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from anyio import to_thread
from msgspec import Struct, to_builtins
from msgspec.structs import replace
from tokenweir.stream.events.sampling import Sampling

from tokenweir.encode.errors import EngineError, TemplateError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.cancellable import Deltas
from tokenweir.stream.chat.chat import (
    CALL_LIST_OPTIONS,
    answer,
    fit_context,
    forces_json,
    held_to,
    prompt_of,
    refuse_open_thinking,
)
from tokenweir.stream.engines.protocol import Engine, refuse_unsupported
from tokenweir.stream.prompts.prompt_encoding import Encoder
from tokenweir.stream.serve.answers.render_cost import render_cost
from tokenweir.stream.serve.limits.fair_queue import FairQueue
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.monitoring.metrics import Meter
from tokenweir.stream.serve.wire.chat import ChatRequest
from tokenweir.stream.serve.wire.compaction import MOST_TOKENS, question
from tokenweir.stream.serve.wire.completions import CompletionRequest
from tokenweir.stream.serve.wire.errors import RequestError
from tokenweir.stream.serve.wire.messages import ChatMessage
from tokenweir.stream.serve.wire.requests import InputFields, ResponseCompact, ResponseCreate
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.styles.shown import style_of_answer
from tokenweir.templates.tool_choice import ToolChoice, honour_tool_choice

T = TypeVar("T")

MANY = 1000
"""Ids that are worked on in a thread."""
ID_COST = 8
"""The cost of working on an id, in bytes of text; see `render_cost`."""


class Job(Struct, frozen=True, kw_only=True):
    """What an engine is asked for.

    Attributes:
        model: The engine's name.
        sampling: How to generate; without `max_tokens`, as much as the server and the engine's context allow.
        most_tokens: The most ids of an answer whose sampling has no `max_tokens`.
        messages: A conversation to answer; None if there is a prompt.
        prompt: A text or its ids to go on with; thinking and calls stay in the answer's text.
        template_kwargs: Variables for the template.
        tools: Functions that the model may call.
        tool_choice: Which of them it is to call, as `honour_tool_choice` takes it.
        parallel_tool_calls: Whether it may make several calls.
        forced: The engine is held to a list of calls; see `Engines.heard`.
        alignment: Whether deltas say how their ids go with their text.
        decoding: More options of `ChatDecoder`.
        names: What the request calls fields of `Sampling` that it has by other names.
        generate: False ends the answer before it begins: the prompt is made, and no engine is asked.

    """

    model: str
    sampling: Sampling
    most_tokens: int | None = None
    messages: list[ChatMessage] | None = None
    prompt: str | list[int] | None = None
    template_kwargs: dict[str, Any] = {}
    tools: list[dict[str, Any]] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    forced: bool = False
    alignment: bool = False
    decoding: dict[str, Any] = {}
    names: dict[str, str] = {}
    generate: bool = True


def chat_job(asked: ChatRequest, model: str) -> Job:
    """The job of a chat completion; raises as `ChatRequest.conversation` and `sampling`."""
    return Job(
        model=model,
        messages=asked.conversation(),
        sampling=asked.sampling(),
        template_kwargs=asked.template_kwargs(),
        tools=asked.definitions(),
        tool_choice=to_builtins(asked.tool_choice),
        parallel_tool_calls=asked.parallel_tool_calls,
        alignment=asked.logprobs,
        decoding=asked.decoding(),
        names={"json_schema": "response_format"},
    )


def completion_job(asked: CompletionRequest, model: str, prompt: str | list[int]) -> Job:
    """The job of one prompt of a completion; raises as `CompletionRequest.sampling`."""
    return Job(
        model=model,
        prompt=prompt,
        sampling=asked.sampling(),
        alignment=asked.logprobs is not None,
        decoding=asked.decoding(),
    )


def response_job(asked: ResponseCreate, model: str, conversation: list[ChatMessage]) -> Job:
    """The job of a response that continues a conversation."""
    return Job(
        model=model,
        messages=_system(asked) + conversation,
        sampling=asked.sampling(max_tokens=asked.max_output_tokens),
        template_kwargs=asked.template_kwargs(),
        tools=asked.definitions(),
        tool_choice=to_builtins(asked.tool_choice),
        parallel_tool_calls=asked.parallel_tool_calls,
        alignment=asked.logprobs or bool(asked.return_token_ids),
        names={"json_schema": "text.format"},
        generate=asked.generate is not False,
    )


def compact_job(asked: ResponseCompact, model: str, conversation: list[ChatMessage]) -> Job:
    """The job of a conversation's summary."""
    messages = _system(asked) + question(conversation)
    return Job(model=model, messages=messages, sampling=Sampling(), most_tokens=MOST_TOKENS)


def _system(asked: InputFields) -> list[ChatMessage]:
    return [] if asked.instructions is None else [{"role": "system", "content": asked.instructions}]


class Answer(Protocol):
    """What answers jobs: `Engines.answer`."""

    def __call__(self, job: Job, meter: Meter) -> AbstractAsyncContextManager[Deltas]:
        """A context in which the deltas arrive, a `Finish` last; leaving it stops the engine. Says so to the meter."""
        ...


class Engines:
    """Engines by their names, all of which take the ids of one tokenizer.

    Args:
        engines: The engines.
        tokenizer: Prompts to ids, and ids to text.
        template: Messages to prompt.
        encoder: What turns prompts into ids in place of the tokenizer.
        limits: `max_output_tokens`, `max_renders`, `max_waiting`, `max_waiting_bytes` and `queue_timeout`.

    """

    def __init__(
        self,
        engines: Mapping[str, Engine],
        *,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        encoder: Encoder | None,
        limits: Limits,
    ) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self._engines = engines
        self._encoder = encoder
        self._limits = limits
        self._queue = FairQueue(
            limits.max_renders,
            max_waiting=limits.max_waiting,
            max_waiting_cost=limits.max_waiting_bytes,
            timeout=limits.queue_timeout,
        )

    @asynccontextmanager
    async def answer(self, job: Job, meter: Meter) -> AsyncIterator[Deltas]:
        """Render, encode, generate and decode, as a context in which the deltas arrive; see `Answer`."""
        engine, job = self._engines[job.model], self.heard(job)
        if (supports := getattr(engine, "supports", None)) is not None:
            try:
                refuse_unsupported(job.model, job.sampling, supports)
            except EngineError as error:
                field = job.names.get(error.option or "", error.option)
                raise RequestError(str(error), code="unsupported_parameter", param=field) from error
        prompt_ids = await self.prompt_ids(job)
        sampling = self.limited(job, len(prompt_ids))
        self._check(prompt_ids, sampling)
        meter.start(len(prompt_ids))
        engine = engine if job.generate else _Silent()
        options = {"alignment": job.alignment, **self.decoding(job)}
        del job  # its messages may be a megabyte, and are the prompt now
        async with answer(prompt_ids, engine=engine, tokenizer=self.tokenizer, sampling=sampling, **options) as deltas:
            yield deltas

    def heard(self, job: Job) -> Job:
        """A job whose choice of tools is honoured, by its engine or the template.

        Raises:
            RequestError: Neither hears it, or it cannot be.

        """
        choice = job.tool_choice, job.parallel_tool_calls
        try:
            heard = honour_tool_choice(self.template, job.tools, *choice, forces=forces_json(self._engines[job.model]))
            sampling = held_to(heard, job.sampling)
        except TemplateError as error:
            raise _unheard(error) from error
        return replace(
            job,
            sampling=sampling,
            template_kwargs=heard.variables | job.template_kwargs,
            tools=None if heard.tools is None else list(heard.tools),
            tool_choice=None,
            forced=heard.json_schema is not None,
        )

    def limited(self, job: Job, prompt_tokens: int) -> Sampling:
        """A job's sampling, with as many tokens as server and engine allow where it does not say how many."""
        sampling = job.sampling
        if sampling.max_tokens is not None:
            return sampling
        limit, size = self._limits.max_output_tokens, self.context_size(job.model)
        limit = limit if job.most_tokens is None else min(limit, job.most_tokens)
        left = limit if size is None else min(limit, size - prompt_tokens)
        return replace(sampling, max_tokens=max(1, left))

    def _check(self, prompt_ids: Sequence[int], sampling: Sampling) -> None:
        """Refuse what an engine or the decoder would stumble over, as the client's fault that it is."""
        if not prompt_ids:
            raise RequestError("the prompt has no tokens", code="invalid_prompt")
        least, most = sampling.min_tokens, sampling.max_tokens
        if most is not None and least > most:
            raise RequestError(f"min_tokens is {least}, and max_tokens {most}", param="min_tokens")
        size = self.tokenizer.vocab_size
        for field, ids in (("stop_token_ids", sampling.stop_token_ids), ("logit_bias", sampling.logit_bias)):
            if (bad := next((each for each in ids if not 0 <= each < size), None)) is not None:
                raise RequestError(f"{field}: token id {bad} is outside the vocabulary (0 to {size - 1})", param=field)

    def fitted(self, job: Job, prompt_tokens: int) -> Sampling:
        """As `limited`; refuses what is longer than the engine's context, as `fit_context`."""
        return fit_context(self._engines[job.model], prompt_tokens, self.limited(job, prompt_tokens))

    def decoding(self, job: Job) -> dict[str, Any]:
        """Options of the decoder that a job's answer wants; a prompt's answer keeps thinking and calls in its text."""
        if job.messages is None:
            return {"reasoning": None, **job.decoding}
        calls = {"tool_schemas": job.tools, "parallel_tool_calls": job.parallel_tool_calls is not False}
        if job.forced:
            return {**CALL_LIST_OPTIONS, **calls, **job.decoding}
        return {
            "reasoning_style": self.template.reasoning,
            "tool_style": style_of_answer(self.template.tool_style, job.tools),
            **calls,
            **job.decoding,
        }

    async def prompt_ids(self, job: Job, *, add_special_tokens: bool = True) -> list[int]:
        """The ids of a job's prompt; a few at a time, by their cost and fairly between clients: see `FairQueue`.

        Raises:
            RequestError: Too many wait already, it waited for too long, or the prompt opens thinking where the answer
                is held to calls.

        """
        if isinstance(job.prompt, list):
            size = self.tokenizer.vocab_size
            if (bad := max(job.prompt, default=0)) >= size:
                raise RequestError(
                    f"prompt: token id {bad} is outside the vocabulary (0 to {size - 1})", param="prompt"
                )
            return job.prompt
        if isinstance(job.prompt, str):
            encode = partial(self.tokenizer.encode, job.prompt, add_special_tokens=add_special_tokens)
            async with self._queue.place(len(job.prompt)):
                return await to_thread.run_sync(encode)
        messages = job.messages or []
        async with self._queue.place(render_cost(messages, job.tools, job.template_kwargs)):
            ids = await prompt_of(
                messages,
                tokenizer=self.tokenizer,
                template=self.template,
                encoder=self._encoder,
                tools=job.tools,
                template_kwargs=job.template_kwargs,
            )
            if job.forced:
                try:
                    refuse_open_thinking(self.tokenizer, ids, self.template)
                except TemplateError as error:
                    raise _unheard(error) from error
            return list(ids)

    async def work(self, work: Callable[[], T], ids: int) -> T:
        """Do something with so many ids, in a thread if they would keep the event loop for too long; raises as `prompt_ids`."""
        if ids <= MANY:
            return work()
        async with self._queue.place(ids * ID_COST):
            return await to_thread.run_sync(work)

    def context_size(self, model: str) -> int | None:
        """The most ids that prompt and answer may have together, if the engine tells."""
        size: int | None = getattr(self._engines[model], "context_size", None)
        return size

    def ready(self, model: str) -> bool:
        """Whether the engine is ready; one that does not tell is."""
        ready = getattr(self._engines[model], "ready", True)
        return bool(ready() if callable(ready) else ready)


def _unheard(error: TemplateError) -> RequestError:
    return RequestError(str(error), code="unsupported_parameter", param="tool_choice")


class _Silent:
    """Stands for an engine where nothing is to be generated."""

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> AsyncGenerator[Sequence[int], None]:
        return
        yield []
