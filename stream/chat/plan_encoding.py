"""Rendering and encoding of the prompts of plans; a cache, if given, reuses the ids of earlier prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

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

T = TypeVar("T")

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
        TemplateError: The template refuses the messages or takes no tools, a variable has a reserved name, or the prompt
            opens thinking that no known markup ends.
        TextError: A message has a lone surrogate.

    """
    own = encoder if isinstance(encoder, Tokenizer) else tokenizer
    encoding = _Encoding(plan, own, prompts, tenant, history)
    encoded: EncodedPlan | None
    if encoder is None or isinstance(encoder, Tokenizer):
        encoded = await encoding.run(encoding.encode)
    else:
        prompt, encoded = await encoding.run(encoding.begin)
        if encoded is None:
            (ids,) = await encode_all([prompt], encoder)
            encoded = await encoding.run(partial(encoding.keep, prompt, ids))
    if opening := plan.answer_opening(tokenizer, encoded.ids):
        return encoded._replace(ids=[*encoded.ids, *opening], opening=opening)
    return encoded


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


class _Encoding:
    """Rendering and encoding of one plan's prompt, beside a cache of earlier prompts if there is one."""

    def __init__(
        self, plan: AnswerPlan, tokenizer: Tokenizer, prompts: PromptCache | None, tenant: str, history: History
    ) -> None:
        self._plan = plan
        self._is_short = plan.is_short
        self._tokenizer = tokenizer
        self._prompts = prompts
        self._history = history
        # The data that prompts of one conversation share besides the messages.
        before = plan.template.source, plan.tools, plan.template_kwargs
        self._shared: dict[str, Any] = {"tokenizer": tokenizer, "before": before, "tenant": tenant}

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of `work()`, called in a thread if the prompt is long."""
        return work() if self._is_short else await run_in_thread(work)

    def encode(self) -> EncodedPlan:
        """Render the plan and encode its prompt with the tokenizer."""
        prompt = self._render()
        if self._prompts is None:
            return EncodedPlan(prompt.encode(self._tokenizer), prompt=prompt)
        return self.keep(prompt)

    def begin(self) -> tuple[Prompt, EncodedPlan | None]:
        """Render the plan, and encode the prompt with the tokenizer if little of it is new to the cache.

        Returns:
            The prompt, and the encoded prompt; None in its place if the encoder is to encode it.

        """
        prompt = self._render()
        if self._prompts is None:
            return prompt, None
        known, new = self._prompts.known_bytes(prompt, self._plan.messages, **self._shared)
        return prompt, None if new > min(known, ENCODER_BYTES) else self.keep(prompt)

    def keep(self, prompt: Prompt, ids: NDArray[np.int32] | None = None) -> EncodedPlan:
        """Encode a prompt by the cache and keep it there; `ids` are its ids if an encoder has already encoded it."""
        if self._prompts is None:
            assert ids is not None
            return EncodedPlan(ids.tolist(), prompt=prompt)
        cached = self._prompts.encode(prompt, self._plan.messages, history=self._history, ids=ids, **self._shared)
        return EncodedPlan(cached.ids.tolist(), cached, prompt)

    def _render(self) -> Prompt:
        """Render the plan, for a cache with its messages as `Messages`, so that template and cache read them once."""
        if self._prompts is not None and not isinstance(self._plan.messages, Messages):
            self._plan = replace(self._plan, messages=Messages(self._plan.messages))
        return self._plan.render(self._tokenizer)
