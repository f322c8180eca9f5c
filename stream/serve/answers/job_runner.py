"""Answers of engines to jobs: the way from a job to its deltas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial

from msgspec.structs import replace

from tokenweir.encode.errors import EngineError
from tokenweir.stream.chat.cancellable import Deltas
from tokenweir.stream.chat.chat import answer
from tokenweir.stream.chat.thinking_budget import enforce_budget
from tokenweir.stream.engines.protocol import ScoringEngine, refuse_unsupported
from tokenweir.stream.events.deltas import Alignment, TokenLogprob
from tokenweir.stream.events.media import MediaPrompt
from tokenweir.stream.events.prompt_scores import EchoedPrompt
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.answers.engines import Engines
from tokenweir.stream.serve.answers.job import Job
from tokenweir.stream.serve.monitoring.metrics import Meter
from tokenweir.stream.serve.wire.shared.errors import RequestError, unsupported_parameter

RunJob = Callable[[Job, Meter], AbstractAsyncContextManager[Deltas]]
"""Function that generates the answer to a job, such as `JobRunner.answer`: an async context manager that yields the answer's
deltas, with `Finish` as the last one. Leaving it stops the engine. Tokens are counted in the meter."""


class JobRunner:
    """Runs jobs, once `Engines` has planned and encoded them.

    Args:
        engines: The engines, their tokenizer and their template.
        max_held_media_bytes: Most bytes of the media of all answers in progress.

    """

    def __init__(self, engines: Engines, max_held_media_bytes: int) -> None:
        self._engines = engines
        self._max_held_media_bytes = max_held_media_bytes
        self._media_bytes = 0  # of all answers in progress

    @asynccontextmanager
    async def answer(self, job: Job, meter: Meter) -> AsyncIterator[Deltas]:
        """Render and encode a job's prompt, generate, and yield the answer's deltas; see `RunJob`.

        Raises `RequestError` if the job asks for an option that its engine does not support, and as the methods of `Engines`.
        """
        engines, engine = self._engines, self._engines.engine(job.model)
        plan = await engines.plan(job)
        if (supports := getattr(engine, "supports", None)) is not None:
            try:
                refuse_unsupported(job.model, plan.sampling, supports)
            except EngineError as error:
                field = job.names.get(error.option or "", error.option)
                raise unsupported_parameter(str(error), field) from error
        encoded = await engines.encoded(plan, job.tenant if job.caches else None)
        prompt_ids, cached = encoded.ids, encoded.cached
        sampling = engines.fit(job, plan, len(prompt_ids))
        if job.alignment and supports is not None and "logprobs" in supports:
            sampling = replace(sampling, logprobs=True)
        sampling = engines.salted(sampling, job.model, job.tenant)
        echo = await self._echo(job, prompt_ids) if job.echo else None
        meter.start(len(prompt_ids))
        options = plan.decoder_options | {"alignment": job.alignment}
        media = await engines.prompt_media(plan, encoded) if job.generate else None
        engine, sampling = enforce_budget(engine, sampling, options, engines.tokenizer, engines.template)
        engine = engine if job.generate else _Silent()
        keep = encoded.keep_in(engines.keeps_in) if job.generate and engines.keeps_in is not None else None
        conversation = None if cached is None else cached.source.digests[-1]
        del job, plan, cached, encoded  # frees the messages, which may be large
        with self._held(media):
            async with answer(
                prompt_ids,
                options,
                engine=engine,
                tokenizer=engines.tokenizer,
                sampling=sampling,
                media=media,
                keep=keep,
            ) as deltas:
                deltas.conversation = conversation
                deltas.echo = echo
                yield deltas

    async def _echo(self, job: Job, prompt_ids: Sequence[int]) -> EchoedPrompt:
        """Return the prompt as the answer repeats it, with its logprobs if the job asks for them.

        Raise `RequestError` if the engine gives no logprobs of a prompt.
        """
        text = (
            job.prompt
            if isinstance(job.prompt, str)
            else await self._engines.work(partial(self._text, job, prompt_ids), len(prompt_ids))
        )
        if job.scores is None:
            return EchoedPrompt(text)
        engine = self._engines.engine(job.model)
        if not isinstance(engine, ScoringEngine):
            raise unsupported_parameter(
                "echo is true and logprobs are asked for, and this model's engine gives no logprobs of a prompt", "echo"
            )
        sampling = self._engines.salted(Sampling(top_logprobs=job.scores), job.model, job.tenant)
        scores = await engine.score(prompt_ids, sampling)
        token_bytes = self._engines.tokenizer.token_bytes
        tops = [
            [TokenLogprob(each, logprob, token_bytes(each)) for each, logprob in row] for row in scores.top_logprobs
        ]
        return EchoedPrompt(text, Alignment([*scores.logprobs], [token_bytes(each) for each in prompt_ids], 0, 0, tops))

    def _text(self, job: Job, prompt_ids: Sequence[int]) -> str:
        return self._engines.tokenizer.decode(
            prompt_ids, skip_special_tokens=job.output.get("skip_special_tokens", True)
        )

    @contextmanager
    def _held(self, media: MediaPrompt | None) -> Iterator[None]:
        """Count the bytes of an answer's media while the context is open.

        Raise `RequestError` if the media of all answers in progress would have more than `max_held_media_bytes`.
        """
        size = 0 if media is None else sum(len(each.url) for each in media.media)
        if size and self._media_bytes + size > (most := self._max_held_media_bytes):
            raise RequestError(
                f"the media of all requests would have {self._media_bytes + size} bytes; max_held_media_bytes is {most}",
                code="too_much_media",
                status=503,
                retry_after=1,
            )
        self._media_bytes += size
        try:
            yield
        finally:
            self._media_bytes -= size


class _Silent:
    """Engine that generates nothing, for jobs with `generate=False`."""

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> AsyncGenerator[Sequence[int], None]:
        return
        yield []
