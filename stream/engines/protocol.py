"""What an engine is: ids in, ids out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from msgspec import Struct


class Sampling(Struct, frozen=True, kw_only=True):
    """How to generate. An engine honours what it can; the decoder enforces everything that is about text or ids.

    Attributes:
        max_tokens: Most ids to generate; None leaves it to the engine.
        temperature: 0 is greedy; None is the engine's default.
        top_p: Nucleus; None is the engine's default.
        top_k: Most candidates; None is the engine's default.
        seed: For a repeatable answer.
        stop: Strings that end the answer.
        stop_token_ids: Ids that end the answer, added to the end tokens.
        min_tokens: No stop and no end token counts before this many ids.
        ignore_eos: Go on past end tokens; `stop_token_ids` still hold.
        n: Parallel answers. An engine with a true attribute `parallel` is asked once for all of them; another one once
            for each, with `n=1` and the seeds `seed`, `seed + 1` and so on.

    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    min_tokens: int = 0
    ignore_eos: bool = False
    n: int = 1


class EngineStep(Struct, frozen=True):
    """What an engine may yield instead of bare ids.

    Attributes:
        ids: One or more new ids.
        logprobs: One a token, natural logarithm, if the engine has them.
        finish_reason: Set on the last step of an answer if the engine knows why it ends.
        index: Which of `Sampling.n` parallel answers the ids belong to, from 0.

    """

    ids: Sequence[int]
    logprobs: Sequence[float] | None = None
    finish_reason: str | None = None
    index: int = 0


class Engine(Protocol):
    """Anything that turns prompt ids into an async generator of new ids.

    Closing the generator (`aclose()`) cancels the generation at once. An engine that can generate several answers to one
    prompt together says so by an attribute `parallel = True`, and then tells them apart by `EngineStep.index`.
    """

    def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling
    ) -> AsyncGenerator[Sequence[int] | EngineStep, None]:
        """Generate from `prompt_ids`; yield new ids, one or several at a time."""
        ...
