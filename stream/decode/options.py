"""The options of a decoder, checked and looked up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.events import Channel, FinishReason
from tokenweir.templates.reasoning_styles import ReasoningStyle, style_of
from tokenweir.templates.tool_styles import ToolStyle, tool_style_of

SCOPES = {
    "answer": frozenset({Channel.ANSWER}),
    "reasoning": frozenset({Channel.REASONING}),
    "all": frozenset({Channel.ANSWER, Channel.REASONING}),
}
"""The channels on which stop strings count."""


def stop_channels(option: str, scope: str) -> frozenset[Channel]:
    """Look up the channels of a scope of stop strings, which is given as `option`.

    Raises:
        ValueError: There is no such scope.

    """
    if scope not in SCOPES:
        raise ValueError(f"{option} must be one of {', '.join(SCOPES)}, not {scope!r}")
    return SCOPES[scope]


def finish_reason(reason: str) -> FinishReason:
    """Look up why an answer ends.

    Raises:
        ValueError: There is no such reason.

    """
    if reason not in list(FinishReason):
        raise ValueError(f"unknown finish reason {reason!r}; known are {', '.join(FinishReason)}")
    return FinishReason(reason)


def check_counts(min_tokens: int, max_tokens: int | None, thinking_budget: int | None) -> None:
    """Refuse numbers of ids that cannot be.

    Raises:
        TypeError: One is no integer.
        ValueError: One is below what it may be, or the least is above the most.

    """
    for name, number, least in (
        ("min_tokens", min_tokens, 0),
        ("max_tokens", max_tokens, 0),
        ("thinking_budget", thinking_budget, 1),
    ):
        if number is None and name != "min_tokens":
            continue
        if not isinstance(number, int):
            raise TypeError(f"{name}={number!r} is no integer")
        if number < least:
            raise ValueError(f"{name}={number} is below {least}")
    if max_tokens is not None and min_tokens > max_tokens:
        raise ValueError(f"min_tokens={min_tokens} is above max_tokens={max_tokens}")


def end_ids(
    tok: Tokenizer, eos_ids: Iterable[int] | None, stop_token_ids: Iterable[int], ignore_eos: bool
) -> dict[int, int | None]:
    """List the ids that end an answer, each with the `stop_reason` that it gives.

    Raises:
        TokenIdError: One is outside the vocabulary.

    """
    ends: dict[int, int | None] = {}
    if not ignore_eos:
        ends |= dict.fromkeys(_checked_ids(tok, "eos_ids", tok.eos_ids if eos_ids is None else eos_ids))
    return ends | {token_id: token_id for token_id in _checked_ids(tok, "stop_token_ids", stop_token_ids)}


def thinking_style(
    reasoning: str | ReasoningStyle | None, known: str | ReasoningStyle | None
) -> ReasoningStyle | Literal["auto"] | None:
    """Look up the style of thinking that is asked for; `known` is that for "auto" and "strip".

    Raises:
        ValueError: No style has the name.

    """
    if reasoning is None or reasoning == "off":
        return None
    if reasoning not in ("auto", "strip"):
        return style_of(reasoning)
    return "auto" if known is None else style_of(known)


def calls_style(tools: str | ToolStyle | None) -> ToolStyle | Literal["auto"] | None:
    """Look up the style of tool calls that is asked for.

    Raises:
        ValueError: No style has the name.

    """
    return None if tools is None else "auto" if tools == "auto" else tool_style_of(tools)


def _checked_ids(tok: Tokenizer, option: str, ids: Iterable[int]) -> list[int]:
    checked = list(ids)
    if (bad := next((i for i in checked if not 0 <= i < tok.vocab_size), None)) is not None:
        raise TokenIdError(f"{option}: token id {bad} is outside the vocabulary (0 to {tok.vocab_size - 1})")
    return checked
