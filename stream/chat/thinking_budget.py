"""A budget of thinking that holds with any engine: at its end the thinking is closed, and a second generation continues.

The second generation gets the prompt, the ids so far and the ids that end the thinking. These ids are a part of the answer:
they count in its usage and its `max_tokens`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from msgspec.structs import replace

from tokenweir.encode.errors import EngineError, TokenIdError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.engine_call import call_engine
from tokenweir.stream.chat.stages import Owned
from tokenweir.stream.chat.thinking_end import ids_to_end_thinking
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.chunk import engine_ids
from tokenweir.stream.decode.options import DecoderOptions
from tokenweir.stream.engines.protocol import Engine
from tokenweir.stream.events.deltas import Channel
from tokenweir.stream.events.media import MediaPrompt
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep
from tokenweir.templates.chat_template import ChatTemplate

MOST_ENDS = 8
"""Most times that the thinking of an answer is ended: a model may begin it again and again."""


def enforce_budget(
    engine: Engine, sampling: Sampling, options: DecoderOptions, tokenizer: Tokenizer, template: ChatTemplate
) -> tuple[Engine, Sampling]:
    """Return the engine and the sampling with which `options["thinking_budget"]` bounds the thinking.

    Without a budget, and with `on_thinking_spent`, which leaves it to the caller, these are the arguments. An engine with an
    attribute `thinking_budget` gets the budget as that key of `Sampling.extra`.

    Raises:
        EngineError: The sampling has a penalty that counts the ids of the answer. The second generation cannot honour it.

    """
    budget = options.get("thinking_budget")
    if budget is None or options.get("on_thinking_spent") is not None:
        return engine, sampling
    if (name := getattr(engine, "thinking_budget", None)) is not None:
        return engine, replace(sampling, extra=sampling.extra | {name: budget})
    for penalty in ("frequency_penalty", "presence_penalty"):
        if getattr(sampling, penalty):
            raise EngineError(
                f"a thinking budget cannot be honoured with {penalty}: behind the thinking the engine continues a prompt",
                kind="unsupported",
                option=penalty,
            )
    return BudgetedEngine(engine, options, tokenizer, template), sampling


class BudgetedEngine:
    """Engine that ends the thinking of another engine's answers where their budget is spent.

    Args:
        engine: The other engine.
        options: The options of the answers' decoders, which say what is thinking, with a `thinking_budget`.
        tokenizer: The tokenizer of the engine's model.
        template: The template of the prompts.

    """

    def __init__(self, engine: Engine, options: DecoderOptions, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        self._engine = engine
        self._options = options | {"alignment": False, "call_ids": None, "index": 0}
        self._tokenizer = tokenizer
        self._template = template
        self.runs_ahead = getattr(engine, "runs_ahead", False)

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, media: MediaPrompt | None = None
    ) -> AsyncGenerator[Any, None]:
        """Generate from `prompt_ids`; yield the other engine's items, and a step with the ids that end the thinking."""
        watch = ChatDecoder(
            self._tokenizer, prompt_ids=prompt_ids, **(self._options | {"max_tokens": sampling.max_tokens})
        )
        given: list[int] = []
        for ends in range(MOST_ENDS + 1):
            rest = _rest(sampling, len(given))
            if rest is None:
                return
            source = Owned(call_engine(self._engine, [*prompt_ids, *given], rest, self._continued(media, given)))
            spent = False
            try:
                async for item in source:
                    ids = engine_ids(item)
                    count = len(ids) if ends == MOST_ENDS else _taken(watch, ids)
                    has_ended = count == len(ids) and isinstance(item, EngineStep) and item.finish_reason is not None
                    spent = ends < MOST_ENDS and _is_over(watch) and not has_ended
                    given += ids[:count]
                    yield _first(item, ids, count if spent else len(ids), ends > 0)
                    if spent:
                        break
            finally:
                await source.aclose()
            style = watch.reasoning
            if not spent or watch.finished or style is None:
                return
            end = ids_to_end_thinking(self._tokenizer, self._template, style, [*prompt_ids, *given])
            watch.feed(end)
            given += end
            yield _forced(end, sampling)

    def _continued(self, media: MediaPrompt | None, given: list[int]) -> MediaPrompt | None:
        """Return the media of a prompt that the ids of the answer so far continue."""
        if media is None or not given:
            return media
        return replace(media, text=media.text + self._tokenizer.decode(given, skip_special_tokens=False))


def _taken(watch: ChatDecoder, ids: list[int]) -> int:
    """Feed ids to a decoder up to the one that spends the budget; return their number."""
    for count, token_id in enumerate(ids, 1):
        try:
            watch.feed([token_id])
        except TokenIdError:  # the answer's own decoder raises it
            return len(ids)
        if _is_over(watch):
            return count
    return len(ids)


def _is_over(watch: ChatDecoder) -> bool:
    """Return whether the answer thinks although its budget is spent."""
    return watch.thinking_spent and watch.channel is Channel.REASONING and not watch.finished


def _first(item: Any, ids: list[int], count: int, continues: bool) -> Any:
    """Return an engine's item with its first `count` ids; `continues`: it is of a second generation, whose prompt has others."""
    if not isinstance(item, EngineStep):
        return ids[:count]
    step = replace(item, cached=None) if continues else item
    if count == len(ids):
        return step
    return replace(
        step,
        ids=ids[:count],
        logprobs=None if step.logprobs is None else step.logprobs[:count],
        top_logprobs=None if step.top_logprobs is None else step.top_logprobs[:count],
        inferred=min(step.inferred, count),
        finish_reason=None,
    )


def _forced(ids: list[int], sampling: Sampling) -> EngineStep:
    """Return a step of ids that no engine has sampled; their probability is 1."""
    tops = [[(token_id, 0.0)] for token_id in ids] if sampling.top_logprobs else None
    logprobs = [0.0] * len(ids) if sampling.logprobs or tops else None
    return EngineStep(ids, logprobs, inferred=len(ids), top_logprobs=tops)


def _rest(sampling: Sampling, given: int) -> Sampling | None:
    """Return the sampling of the rest of an answer that has `given` ids already; None if it may have no more."""
    most = None if sampling.max_tokens is None else sampling.max_tokens - given
    if most is not None and most < 1 and given:
        return None
    return replace(sampling, max_tokens=most, min_tokens=max(0, sampling.min_tokens - given))
