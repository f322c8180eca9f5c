"""Fields that requests of several interfaces have, and their effect on the template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from tokenweir.stream.events.sampling import NO_EFFECT, Sampling

StopString = Annotated[str, Meta(min_length=1, max_length=1000)]
"""A stop string; looking for it takes some 300 bytes of memory a character."""


ThinkingBudget = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
"""The most tokens of thinking; 0 asks for an answer without thinking."""


_SAMPLED = (
    *("temperature", "top_p", "top_k", "min_p", "seed", "n", "min_tokens", "ignore_eos"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty"),
)
"""Fields of requests that have the names and values of those of `Sampling`."""


def sampling_of(request: Struct, stop: str | Sequence[str] | None = None, **fields: Any) -> Sampling:
    """Return the sampling parameters for the engine: those of a request, without those that change nothing, and `fields`.

    A `top_k` below 1 means all tokens.
    """
    given: dict[str, Any] = {name: getattr(request, name, None) for name in _SAMPLED}
    if given["top_k"] is not None and given["top_k"] < 1:
        given["top_k"] = None
    given = {name: value for name, value in given.items() if value is not None and NO_EFFECT.get(name) != value}
    return Sampling(stop=(stop,) if isinstance(stop, str) else tuple(stop or ()), **given, **fields)


def effort_kwargs(effort: str | None) -> dict[str, Any]:
    """Return the template variables that express an effort of thinking; an empty dict if `effort` is None.

    `"none"` turns thinking off, all other efforts turn it on.
    """
    if effort is None:
        return {}
    if effort == "none":
        return {"enable_thinking": False, "thinking": False}
    return {"enable_thinking": True, "thinking": True, "reasoning_effort": effort}
