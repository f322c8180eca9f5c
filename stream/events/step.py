"""Steps of an engine: ids with what the engine knows about them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class EngineStep(Struct, frozen=True):
    """What an engine may yield instead of bare ids.

    Attributes:
        ids: One or more new ids.
        logprobs: One a token, natural logarithm, if the engine has them; None for a token without.
        finish_reason: Set on the last step of an answer if the engine knows why it ends.
        index: Which of `Sampling.n` parallel answers the ids belong to, from 0.
        inferred: How many ids at the beginning of `ids` the engine did not give: their text is its own, and so is their
            number, but other ids with the same text could have been generated.

    """

    ids: Sequence[int]
    logprobs: Sequence[float | None] | None = None
    finish_reason: str | None = None
    index: int = 0
    inferred: int = 0
