"""What an engine is asked for, whatever interface it was asked through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Protocol

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines.protocol import Engine, Sampling, refuse_unsupported
from tokenweir.stream.pipeline.cancellable import Deltas
from tokenweir.stream.pipeline.chat import answer, prompt_of
from tokenweir.stream.prompts.prompt_encoding import Encoder
from tokenweir.stream.server.limits import Limits
from tokenweir.stream.server.metrics import Meter
from tokenweir.stream.server.wire.errors import RequestError
from tokenweir.stream.server.wire.messages import ChatMessage
from tokenweir.templates.chat_template import ChatTemplate


class Job(Struct, frozen=True, kw_only=True):
    """What an engine is asked for.

    Attributes:
        model: The engine's name.
        sampling: How to generate; without `max_tokens`, as much as the server and the engine's context allow.
        messages: A conversation to answer; or
        prompt: a text or its ids to go on with, where thinking and calls stay in the text.
        template_kwargs: Variables for the template.
        tools: Functions that the model may call.
        alignment: Whether deltas say how their ids go with their text.
        decoding: More options of `ChatDecoder`.

    """

    model: str
    sampling: Sampling
    messages: list[ChatMessage] | None = None
    prompt: str | list[int] | None = None
    template_kwargs: dict[str, Any] = {}
    tools: list[dict[str, Any]] | None = None
    alignment: bool = False
    decoding: dict[str, Any] = {}


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
        limits: `max_output_tokens`, `max_renders` and `max_waiting`.

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
        self._renders = anyio.Semaphore(limits.max_renders)
        self._waiting = 0

    @asynccontextmanager
    async def answer(self, job: Job, meter: Meter) -> AsyncIterator[Deltas]:
        """Render, encode, generate and decode, as a context in which the deltas arrive; see `Answer`."""
        engine = self._engines[job.model]
        if (supports := getattr(engine, "supports", None)) is not None:
            refuse_unsupported(job.model, job.sampling, supports)
        prompt_ids = await self.prompt_ids(job)
        sampling = job.sampling
        if sampling.max_tokens is None:
            limit = self._limits.max_output_tokens
            size = getattr(engine, "context_size", None)
            left = limit if size is None else min(limit, size - len(prompt_ids))
            sampling = replace(sampling, max_tokens=max(1, left))
        meter.start()
        decoding: dict[str, Any] = {"reasoning": None}
        if job.messages is not None:
            style = self.template.tool_style or "auto" if job.tools else None
            decoding = {
                "reasoning_style": self.template.reasoning,
                "tool_style": style,
                "tool_schemas": job.tools,
            }
        async with answer(
            prompt_ids,
            engine=engine,
            tokenizer=self.tokenizer,
            sampling=sampling,
            alignment=job.alignment,
            **decoding,
            **job.decoding,
        ) as deltas:
            yield deltas

    async def prompt_ids(self, job: Job, *, add_special_tokens: bool = True) -> list[int]:
        """The ids of a job's prompt; a few at a time, since rendering a megabyte takes a thread for a while.

        Raises:
            RequestError: Too many wait already.

        """
        if isinstance(job.prompt, list):
            size = self.tokenizer.vocab_size
            if (bad := next((token_id for token_id in job.prompt if token_id >= size), None)) is not None:
                raise RequestError(
                    f"prompt: token id {bad} is outside the vocabulary (0 to {size - 1})", param="prompt"
                )
            return job.prompt
        if self._waiting >= self._limits.max_waiting:
            raise RequestError(
                f"{self._waiting} requests wait for their prompt to be encoded, which is the limit",
                code="server_overloaded",
                status=503,
                retry_after=1,
            )
        self._waiting += 1
        try:
            async with self._renders:
                if isinstance(job.prompt, str):
                    encode = partial(self.tokenizer.encode, job.prompt, add_special_tokens=add_special_tokens)
                    return await to_thread.run_sync(encode)
                ids = await prompt_of(
                    job.messages or [],
                    tokenizer=self.tokenizer,
                    template=self.template,
                    encoder=self._encoder,
                    tools=job.tools,
                    template_kwargs=job.template_kwargs,
                )
                return list(ids)
        finally:
            self._waiting -= 1

    def context_size(self, model: str) -> int | None:
        """The most ids that prompt and answer may have together, if the engine tells."""
        size: int | None = getattr(self._engines[model], "context_size", None)
        return size

    def ready(self, model: str) -> bool:
        """Whether the engine is ready; one that does not tell is."""
        ready = getattr(self._engines[model], "ready", True)
        return bool(ready() if callable(ready) else ready)
