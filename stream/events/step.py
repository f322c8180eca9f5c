"""Steps of an engine: new ids, with their logprobs and the reason for the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct


class EngineStep(Struct, frozen=True):
    """New ids with details, which an engine may yield instead of bare ids.

    Attributes:
        ids: One or more new ids.
        logprobs: The natural logarithm of each id's probability; None for an id without.
        top_logprobs: For each id the likeliest tokens in its place, each an id with its logprob, the likeliest first.
        finish_reason: Set on the last step of an answer if the engine knows why it ends.
        index: The number of the answer among `Sampling.n` parallel ones, from 0.
        inferred: The number of ids, at the beginning of `ids`, that were inferred from text. Their text and their
            number are the engine's, but other ids with the same text could have been generated.
        cached: Ids of the prompt that the engine had in its prefix cache, on any step of an answer; None if it does not tell.

    """

    ids: Sequence[int]
    logprobs: Sequence[float | None] | None = None
    finish_reason: str | None = None
    index: int = 0
    inferred: int = 0
    cached: int | None = None
    top_logprobs: Sequence[Sequence[tuple[int, float]]] | None = None


def likeliest(candidates: Iterable[tuple[int, float | None]], most: int) -> list[tuple[int, float]]:
    """Return the `most` likeliest of the candidates, sorted by falling logprob, each id once.

    Args:
        candidates: Ids with their logprobs, perhaps with duplicates; those with None are left out.
        most: Most candidates to return.

    """
    found = {token_id: logprob for token_id, logprob in candidates if logprob is not None}
    return sorted(found.items(), key=lambda candidate: -candidate[1])[:most]
