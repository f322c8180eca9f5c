"""Engines by their names: a job planned, and its prompt encoded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from tokenweir.encode.errors import MediaError, TemplateError
from tokenweir.stream.chat.media import LONG_MEDIA, MediaLimits, media_size
from tokenweir.stream.chat.plan import AnswerPlan, plan_answer
from tokenweir.stream.chat.plan_encoding import EncodedPlan, encode_plan, placed_media
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import DecoderOptions, OutputOptions
from tokenweir.stream.engines.protocol import Engine
from tokenweir.stream.events.media import MediaPrompt
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.prompts.batching.worker_thread import run_in_thread
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.stream.prompts.turns.token_tables import prepare
from tokenweir.stream.serve.answers.cache_salt import rendered_salt, salted
from tokenweir.stream.serve.answers.job import Job
from tokenweir.stream.serve.answers.render_cost import render_cost
from tokenweir.stream.serve.limits.fair_queue import FairQueue
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.options import ServerOptions
from tokenweir.stream.serve.wire.anthropic.history import MessageHistory
from tokenweir.stream.serve.wire.anthropic.requests import MessageFields
from tokenweir.stream.serve.wire.shared.errors import RequestError, unsupported_parameter
from tokenweir.templates.chat_template import ChatTemplate

T = TypeVar("T")

logger = logging.getLogger("tokenweir.serve")

MOST_PATHS = 3
"""Paths that a line of the log has."""
MANY = 1000
"""Number of ids from which work runs in a thread."""
ID_COST = 8
"""Cost of an id, in bytes of text; see `render_cost`."""
MEDIA_SHARE = 4
"""Number of bytes of media, in base64, that cost as much as one of text: they are decoded and hashed only."""


class Engines:
    """The engines of a server by their names, with what makes prompts for them: one template and one tokenizer.

    Args:
        engines: The engines by the names under which they are served.
        options: The options of the server, with their defaults.
        template: The chat template.
        limits: `max_output_tokens`, `max_renders`, `max_waiting`, `max_waiting_bytes`, `queue_timeout`, and those of
            media.
        prompts: Cache of prompts, or None.
        secret: Secret of the salts by which engines keep clients' prompts apart.

    Attributes:
        tokenizer: The tokenizer.
        template: The chat template.
        keeps_in: The cache that keeps the ids of answers, or None if prompts keep none.

    Raises:
        ValueError: Tags are to count as ids, and the model's are no tokens of the vocabulary.

    """

    def __init__(
        self,
        engines: Mapping[str, Engine],
        options: ServerOptions,
        *,
        template: ChatTemplate,
        limits: Limits,
        prompts: PromptCache | None = None,
        secret: bytes,
    ) -> None:
        self.tokenizer = options["tokenizer"]
        self.template = template
        self._options = options
        self._engines = engines
        self._prompts = prompts
        self.keeps_in: PromptCache | None = None
        if prompts is not None and options["history"] != "canonical":
            self.keeps_in = prompts
            prepare(self.tokenizer)  # here, since the first answer would make all others wait
        self._output: OutputOptions = {"markup": options["markup"]}
        if options["markup"] == "ids":  # raise now rather than at each request
            reasoning, tool_style = template.reasoning or "auto", template.tool_style or "auto"
            ChatDecoder(self.tokenizer, reasoning=reasoning, tool_style=tool_style, markup="ids")
        self._secret = secret
        self._limits = limits
        self._media_limits = MediaLimits(
            items=limits.max_media,
            bytes=limits.max_media_bytes,
            image_pixels=limits.max_image_pixels,
            remote=options["remote_media"],
        )
        self._queue = FairQueue(
            limits.max_renders,
            max_waiting=limits.max_waiting,
            max_waiting_cost=limits.max_waiting_bytes,
            timeout=limits.queue_timeout,
        )

    def engine(self, model: str) -> Engine:
        """Return the engine of this name."""
        return self._engines[model]

    async def prompt_media(self, plan: AnswerPlan, encoded: EncodedPlan) -> MediaPrompt | None:
        """Return the images and other media of a plan, and their places in the prompt; None without media.

        Raises:
            RequestError: The prompt has no place for a medium, or the medium is refused; or no thread came free in time, as
                for `work`.

        """
        if encoded.prompt is None or not plan.media:
            return None
        try:
            return await self.work(partial(placed_media, plan, encoded, self.tokenizer), len(encoded.ids))
        except MediaError as error:
            raise _refused_media(error) from error

    def salted(self, sampling: Sampling, model: str, tenant: str) -> Sampling:
        """Return sampling parameters with the salt that keeps a tenant's prompts apart in the engine's cache; see `salted`."""
        return salted(sampling, self._engines[model], tenant, self._secret)

    def cache_salt(self, model: str, client: str, asked: str | None) -> str | None:
        """Return the cache salt for a rendered request to this model, or None; see `rendered_salt`."""
        return rendered_salt(self._engines[model], client, self._secret, asked)

    def thinks_first(self, model: str) -> bool:
        """Return whether the engine of this model applies constraints behind the thinking only."""
        return bool(getattr(self._engines[model], "thinks_first", False))

    def history(self, asked: MessageFields) -> MessageHistory:
        """Return a Messages request's messages in the form that this server's template takes.

        Raises `RequestError` as `MessageFields.history`.
        """
        return asked.history(
            later_system=self.template.takes_later_system,
            keep_billing_header=self._options["keep_billing_header"],
            max_items=self._limits.max_items,
        )

    async def plan(self, job: Job) -> AnswerPlan:
        """Resolve a job against the template and its engine: which tools, options and media they can take.

        It runs in a thread if the job has large media.

        Raises:
            RequestError: The choice of tools is invalid, or neither template nor engine supports it; a media part is
                malformed, too large, or taken by neither; or too many requests already wait for a thread.

        """
        if (size := media_size(job.messages)) <= LONG_MEDIA:
            return self._plan(job)
        async with self._queue.place(size // MEDIA_SHARE):
            return await run_in_thread(partial(self._plan, job))

    def decoder_options(self, job: Job) -> DecoderOptions:
        """Return the options with which the answer to a job is decoded, for a job without media.

        Raises `RequestError` as `plan`.
        """
        return self._plan(job).decoder_options

    def _plan(self, job: Job) -> AnswerPlan:
        try:
            return plan_answer(
                replace(job, output=job.output | self._output),
                self.template,
                engine=self._engines[job.model],
                history_thinking=self._options["history_thinking"],
                media_limits=self._media_limits,
            )
        except MediaError as error:
            raise _refused_media(error) from error
        except TemplateError as error:
            raise _refused_choice(error) from error

    def fit(self, job: Job, plan: AnswerPlan, prompt_tokens: int) -> Sampling:
        """Return a plan's sampling parameters, with a `max_tokens` that fits the engine's context.

        A missing `max_tokens` becomes the job's `most_tokens` or else the engine's default, but at most the server's limit
        and the rest of the context. An explicit one is not reduced.

        Args:
            job: The job.
            plan: Its plan.
            prompt_tokens: Number of ids of its prompt.

        Raises:
            RequestError: The prompt is empty, `min_tokens` exceeds `max_tokens`, or an id is outside the vocabulary.
            ContextLengthError: The prompt, or the prompt with an explicit `max_tokens`, does not fit the context.

        """
        if not prompt_tokens:
            raise RequestError("the prompt has no tokens", code="invalid_prompt")
        own = job.most_tokens
        most = self.default_max_tokens(job.model) if own is None else min(self._limits.max_output_tokens, own)
        sampling = plan.fit(prompt_tokens, self.context_size(job.model), most=most)
        if sampling.max_tokens is not None and sampling.min_tokens > sampling.max_tokens:
            raise RequestError(
                f"min_tokens is {sampling.min_tokens}, and max_tokens {sampling.max_tokens}", param="min_tokens"
            )
        size = self.tokenizer.vocab_size
        for name, ids in (("stop_token_ids", sampling.stop_token_ids), ("logit_bias", sampling.logit_bias)):
            if (bad := next((each for each in ids if not 0 <= each < size), None)) is not None:
                raise RequestError(f"{name}: token id {bad} is outside the vocabulary (0 to {size - 1})", param=name)
        return sampling

    async def prompt_ids(self, plan: AnswerPlan, *, add_special_tokens: bool = True) -> list[int]:
        """Return the ids of a plan's prompt, rendered and encoded without the prompt cache.

        Waits for its turn in the queue of renders.

        Args:
            plan: The plan.
            add_special_tokens: As for `Tokenizer.encode`; only for a prompt that is a text.

        Raises:
            RequestError: Too many wait already, it waited for too long, or an id is outside the vocabulary.
            TemplateError: The template refuses the plan, as for `encode_plan`.
            TextError: A text has a lone surrogate.

        """
        return (await self.encoded(plan, None, add_special_tokens=add_special_tokens)).ids

    async def encoded(self, plan: AnswerPlan, tenant: str | None, *, add_special_tokens: bool = True) -> EncodedPlan:
        """Render and encode a plan's prompt, in its turn; raises the errors of `prompt_ids`.

        Args:
            plan: The plan.
            tenant: The client whose cached prompts are reused and to which the new one is added; None uses no cache.
            add_special_tokens: As for `Tokenizer.encode`; only for a prompt that is a text.

        """
        if isinstance(plan.prompt, list):
            size = self.tokenizer.vocab_size
            if (bad := max(plan.prompt, default=0)) >= size:
                raise RequestError(
                    f"prompt: token id {bad} is outside the vocabulary (0 to {size - 1})", param="prompt"
                )
            return EncodedPlan(plan.prompt)
        if isinstance(plan.prompt, str):
            encode = partial(self.tokenizer.encode, plan.prompt, add_special_tokens=add_special_tokens)
            async with self._queue.place(len(plan.prompt)):
                return EncodedPlan(await run_in_thread(encode))
        async with self._queue.place(render_cost(plan.messages, plan.tools, plan.template_kwargs)):
            prompts = None if tenant is None else self._prompts
            encoded = await encode_plan(
                plan, self.tokenizer, self._options["encoder"], prompts, tenant or "", self._options["history"]
            )
            if encoded.prompt is not None and (paths := encoded.prompt.mended_calls):
                logger.warning("arguments of a call in a history are no JSON object: %s", ", ".join(paths[:MOST_PATHS]))
            return encoded

    async def work(self, work: Callable[[], T], ids: int) -> T:
        """Return the result of `work()`, called in a thread if it would block the event loop for too long.

        Args:
            work: A function without arguments.
            ids: Number of token ids that it processes, by which its duration is estimated.

        Raises:
            RequestError: Too many wait for a thread already, or it waited for too long.

        """
        if ids <= MANY:
            return work()
        async with self._queue.place(ids * ID_COST):
            return await run_in_thread(work)

    def context_size(self, model: str) -> int | None:
        """Return the most tokens of prompt and answer together that the engine takes, or None if unknown."""
        size: int | None = getattr(self._engines[model], "context_size", None)
        return size

    def default_max_tokens(self, model: str) -> int:
        """Return the most tokens of an answer to a request without a limit of its own: the engine's default or the server's limit."""
        limit, default = self._limits.max_output_tokens, getattr(self._engines[model], "default_max_tokens", None)
        return limit if default is None else min(limit, default)

    def media(self, model: str) -> list[str]:
        """Return the kinds of media that the engine takes, such as images, sorted by name."""
        return sorted(getattr(self._engines[model], "media", ()))

    def ready(self, model: str) -> bool:
        """Return whether the engine reports that it is ready; True if it reports nothing."""
        ready = getattr(self._engines[model], "ready", True)
        return bool(ready() if callable(ready) else ready)


def _refused_choice(error: TemplateError) -> RequestError:
    return unsupported_parameter(str(error), "tool_choice")


def _refused_media(error: MediaError) -> RequestError:
    return RequestError(str(error), code="unsupported_content", param=error.place or None)
