"""Prompts of plans: rendered, encoded, and if there is a cache, encoded from where they differ from earlier ones."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.media import place_media
from tokenweir.stream.chat.plan import AnswerPlan
from tokenweir.stream.events.media import MediaPrompt
from tokenweir.stream.prompts.cached_prompt import CachedPrompt
from tokenweir.stream.prompts.prompt_cache import History, PromptCache
from tokenweir.stream.prompts.prompt_encoding import Encoder, encode_all
from tokenweir.stream.prompts.worker_thread import run_in_thread
from tokenweir.templates.messages import Messages
from tokenweir.templates.prompt import Prompt


class EncodedPlan(NamedTuple):
    """The prompt of a plan.

    Attributes:
        ids: Its ids.
        cached: The prompt as the cache has it; None without a cache.
        prompt: The rendered prompt; None for a plan of a text or of ids.

    """

    ids: list[int]
    cached: CachedPrompt | None = None
    prompt: Prompt | None = None


async def encode_plan(
    plan: AnswerPlan,
    tokenizer: Tokenizer,
    encoder: Encoder | None = None,
    prompts: PromptCache | None = None,
    tenant: str = "",
    history: History = "canonical",
) -> EncodedPlan:
    """Render the messages of a plan and encode them.

    Long prompts go to a thread: rendering a megabyte takes long enough to hold up all other streams. A short prompt takes less
    time than a thread does, which gets its turn after milliseconds on a busy event loop.

    Args:
        plan: The plan, of messages.
        tokenizer: The tokenizer of the engine's model.
        encoder: Encodes in the tokenizer's place, as for `chat()`.
        prompts: Earlier prompts, as for `chat()`.
        tenant: As for `chat()`.
        history: As for `chat()`.

    Raises:
        TemplateError: As `AnswerPlan.render`.
        TextError: A message has a lone surrogate.

    """
    short = plan.is_short
    own = encoder if isinstance(encoder, Tokenizer) else tokenizer
    if encoder is None or isinstance(encoder, Tokenizer):
        if prompts is None:
            work = partial(_encode, plan, own)
        else:
            work = partial(_resume, plan, own, prompts, tenant, history)
        return work() if short else await run_in_thread(work)
    prompt = plan.render(own) if short else await run_in_thread(partial(plan.render, own))
    return EncodedPlan((await encode_all([prompt], encoder))[0].tolist(), prompt=prompt)


async def prompt_media(plan: AnswerPlan, prompt: Prompt | None, tokenizer: Tokenizer) -> MediaPrompt | None:
    """Return the media of a plan with their placeholders in its `EncodedPlan.prompt`; None without media.

    Raises:
        MediaError: As `place_media`.

    """
    return (
        None
        if prompt is None or not plan.media
        else await run_in_thread(lambda: place_media(prompt, plan.media, tokenizer))
    )


def _encode(plan: AnswerPlan, tokenizer: Tokenizer) -> EncodedPlan:
    prompt = plan.render(tokenizer)
    return EncodedPlan(prompt.encode(tokenizer), prompt=prompt)


def _resume(plan: AnswerPlan, tokenizer: Tokenizer, prompts: PromptCache, tenant: str, history: History) -> EncodedPlan:
    if not isinstance(plan.messages, Messages):
        plan = replace(plan, messages=Messages(plan.messages))
    prompt = plan.render(tokenizer)
    cached = prompts.encode(
        prompt,
        plan.messages,
        tokenizer=tokenizer,
        before=(plan.template.source, plan.tools, plan.template_kwargs),
        tenant=tenant,
        history=history,
    )
    return EncodedPlan(cached.ids.tolist(), cached, prompt)
