"""Probabilities of the ids of a prompt, which some engines give for evaluation harnesses."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tokenweir.stream.events.deltas import Alignment


class PromptScores(Struct, frozen=True):
    """Logprobs of a prompt's ids.

    Attributes:
        logprobs: The natural logarithm of each id's probability behind the ids before it; None for the first one.
        top_logprobs: For each id the likeliest ids in its place, each with its logprob; empty if none were asked for.

    """

    logprobs: Sequence[float | None]
    top_logprobs: Sequence[Sequence[tuple[int, float]]] = ()


class EchoedPrompt(Struct, frozen=True):
    """A prompt as an answer repeats it: its text, and its tokens with their logprobs if they are asked for."""

    text: str
    alignment: Alignment | None = None
