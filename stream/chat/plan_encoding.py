"""Rendering and encoding of the prompts of plans; a cache, if given, reuses the ids of earlier prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.answer_record import Keep
from tokenweir.stream.chat.media import place_media
from tokenweir.stream.chat.plan import AnswerPlan
from tokenweir.stream.events.media import MediaPrompt
from tokenweir.stream.prompts.batching.prompt_encoding import Encoder, encode_all
from tokenweir.stream.prompts.batching.worker_thread import run_in_thread
from tokenweir.stream.prompts.cache.cached_prompt import CachedPrompt
from tokenweir.stream.prompts.cache.prompt_cache import History, PromptCache
from tokenweir.templates.messages import Messages
from tokenweir.templates.prompt import Prompt

ENCODER_BYTES = 1 << 16
"""The most bytes behind the text of an earlier prompt that the tokenizer encodes in place of the encoder."""


class EncodedPlan(NamedTuple):
    """The encoded prompt of a plan.

    Attributes:
        ids: The ids of the prompt.
        cached: The prompt as the cache returned it; None without a cache.
        prompt: The rendered prompt; None for a plan of a text or of ids.
        opening: The last of `ids`, which the rendered prompt does not have; see `AnswerPlan.answer_opening`.

    """

    ids: list[int]
    cached: CachedPrompt | None = None
    prompt: Prompt | None = None
    opening: Sequence[int] = ()

    def keep_in(self, prompts: PromptCache) -> Keep | None:
        """Return a function that stores an answer to the prompt in the cache; None if the prompt is not cached there."""
        cached, opening = self.cached, self.opening
        if cached is None:
            return None
        if not opening:
            return partial(prompts.answered, cached)

        def keep(ids: list[int], message: Mapping[str, Any], *, inferred: list[int]) -> None:
            added = len(opening)  # the cached prompt lacks these ids, so they count as the answer's
            inferred = [*range(added), *(place + added for place in inferred)]
            prompts.answered(cached, [*opening, *ids], message, inferred=inferred)

        return keep


async def encode_plan(
    plan: AnswerPlan,
    tokenizer: Tokenizer,
    encoder: Encoder | None,
    prompts: PromptCache | None,
    tenant: str,
    history: History,
) -> EncodedPlan:
    """Render the messages of a plan and encode the prompt, up to where the engine's answer begins.

    Long prompts go to a thread: rendering a megabyte takes long enough to hold up all other streams. A short prompt takes less
    time than a thread does, which gets its turn after milliseconds on a busy event loop.

    Args:
        plan: The plan.
        tokenizer: The tokenizer of the engine's model.
        encoder: Encodes in the tokenizer's place, as for `chat()`. With `prompts`, it gets only the prompts whose new text is
            longer than the text that they have in common with an earlier one, or longer than `ENCODER_BYTES`.
        prompts: The cache of earlier prompts; None uses no cache.
        tenant: As for `chat()`.
        history: As for `chat()`.

    Raises:
        TemplateError: As `AnswerPlan.render` and `AnswerPlan.answer_opening`.
        TextError: A message has a lone surrogate.

    """
    encoded = await _encode_prompt(plan, tokenizer, encoder, prompts, tenant, history)
    if opening := plan.answer_opening(tokenizer, encoded.ids):
        return encoded._replace(ids=[*encoded.ids, *opening], opening=opening)
    return encoded


async def _encode_prompt(
    plan: AnswerPlan,
    tokenizer: Tokenizer,
    encoder: Encoder | None,
    prompts: PromptCache | None,
    tenant: str,
    history: History,
) -> EncodedPlan:
    short = plan.is_short
    own = encoder if isinstance(encoder, Tokenizer) else tokenizer
    if encoder is None or isinstance(encoder, Tokenizer):
        if prompts is None:
            work = partial(_encode, plan, own)
        else:
            work = partial(_resume, plan, own, prompts, tenant, history)
        return work() if short else await run_in_thread(work)
    if prompts is None:
        prompt = plan.render(own) if short else await run_in_thread(partial(plan.render, own))
        return EncodedPlan((await encode_all([prompt], encoder))[0].tolist(), prompt=prompt)
    start = partial(_begin, plan, own, prompts, tenant, history)
    plan, prompt, encoded = start() if short else await run_in_thread(start)
    if encoded is not None:
        return encoded
    ids = (await encode_all([prompt], encoder))[0]
    keep = partial(_resumed, plan, prompt, own, prompts, tenant, history, ids)
    return keep() if short else await run_in_thread(keep)


async def prompt_media(plan: AnswerPlan, encoded: EncodedPlan, tokenizer: Tokenizer) -> MediaPrompt | None:
    """Return the media of a plan with the positions of their placeholders in its encoded prompt, for the engine.

    None if the plan has no media, or if it has no messages but a text or ids.
    """
    if encoded.prompt is None or not plan.media:
        return None
    return await run_in_thread(lambda: placed_media(plan, encoded, tokenizer))


def placed_media(plan: AnswerPlan, encoded: EncodedPlan, tokenizer: Tokenizer) -> MediaPrompt:
    """Return what `prompt_media` returns, for a plan that has media and messages."""
    assert encoded.prompt is not None
    media = place_media(encoded.prompt, plan.media, tokenizer)
    return replace(media, text=media.text + tokenizer.decode(encoded.opening, skip_special_tokens=False))


def _encode(plan: AnswerPlan, tokenizer: Tokenizer) -> EncodedPlan:
    prompt = plan.render(tokenizer)
    return EncodedPlan(prompt.encode(tokenizer), prompt=prompt)


def _resume(plan: AnswerPlan, tokenizer: Tokenizer, prompts: PromptCache, tenant: str, history: History) -> EncodedPlan:
    plan = _read(plan)
    return _resumed(plan, plan.render(tokenizer), tokenizer, prompts, tenant, history)


def _read(plan: AnswerPlan) -> AnswerPlan:
    """Return the plan with its messages as `Messages`, so that template and cache need not read them twice."""
    return plan if isinstance(plan.messages, Messages) else replace(plan, messages=Messages(plan.messages))


def _begin(
    plan: AnswerPlan, tokenizer: Tokenizer, prompts: PromptCache, tenant: str, history: History
) -> tuple[AnswerPlan, Prompt, EncodedPlan | None]:
    """Render a plan, and encode the prompt with the tokenizer if little of it is new to the cache.

    Returns:
        The plan with its messages read, its prompt, and the encoded prompt; None in its place if the encoder is to encode it.
    """
    plan = _read(plan)
    prompt = plan.render(tokenizer)
    known, new = prompts.known_bytes(prompt, plan.messages, tokenizer=tokenizer, before=_common(plan), tenant=tenant)
    if new > min(known, ENCODER_BYTES):
        return plan, prompt, None
    return plan, prompt, _resumed(plan, prompt, tokenizer, prompts, tenant, history)


def _resumed(
    plan: AnswerPlan,
    prompt: Prompt,
    tokenizer: Tokenizer,
    prompts: PromptCache,
    tenant: str,
    history: History,
    ids: NDArray[np.int32] | None = None,
) -> EncodedPlan:
    """Encode a rendered plan by the cache and keep it there; `ids` are its ids if an encoder has already encoded it."""
    cached = prompts.encode(
        prompt,
        plan.messages,
        tokenizer=tokenizer,
        before=_common(plan),
        tenant=tenant,
        history=history,
        ids=ids,
    )
    return EncodedPlan(cached.ids.tolist(), cached, prompt)


def _common(plan: AnswerPlan) -> object:
    """Return the data that prompts of one conversation share besides the messages: template, tools and variables."""
    return plan.template.source, plan.tools, plan.template_kwargs
