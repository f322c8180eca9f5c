"""Logprobs of an answer's tokens, as OpenAI's interfaces have them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

from msgspec import Struct

from tokenweir.stream.events.deltas import Alignment, TokenLogprob

NO_PROBABILITY = -9999.0
"""The protocol's logarithm of 0, since JSON has no infinity."""


class TopLogprob(Struct, frozen=True):
    """A token, its bytes, and the natural logarithm of its probability.

    `token` has U+FFFD in place of bytes that are only part of a character.
    """

    token: str
    logprob: float
    bytes: list[int]


class Logprob(TopLogprob, frozen=True):
    """A token of the answer, and the likeliest tokens in its place."""

    top_logprobs: list[TopLogprob] = []


def finite(logprob: float) -> float:
    """Return the logprob, at least `NO_PROBABILITY`: JSON has no infinity."""
    return max(NO_PROBABILITY, float(logprob))


def token_logprobs(alignment: Alignment | None) -> list[Logprob]:
    """Return the tokens of a delta's text with their logprobs, and the likeliest tokens in their places if the engine gave them.

    Tokens of markup and those without a logprob are left out. The result is empty if `alignment` is None.
    """
    if alignment is None:
        return []
    alignment = alignment.text_tokens()
    tops: Iterable[Iterable[TokenLogprob]] = alignment.top_logprobs or repeat(())
    return [
        Logprob(_text(token), finite(logprob), list(token), [_top(each) for each in top])
        for token, logprob, top in zip(alignment.token_bytes, alignment.logprobs, tops, strict=False)
        if logprob is not None
    ]


def lacks_candidates(alignment: Alignment | None) -> bool:
    """Return whether the engine gave no likeliest tokens (`top_logprobs`) for at least one token of the delta's text.

    False if `alignment` is None, or the delta has no tokens of text.
    """
    if alignment is None or not (tokens := alignment.text_tokens()).logprobs:
        return False
    return not all(tokens.top_logprobs or [()])


def lacks_logprobs(alignment: Alignment | None) -> bool:
    """Return whether the engine gave no logprob for at least one token of the delta's text; False if `alignment` is None."""
    return alignment is not None and None in alignment.text_tokens().logprobs


def _top(candidate: TokenLogprob) -> TopLogprob:
    token = candidate.token_bytes
    return TopLogprob(_text(token), finite(candidate.logprob), list(token))


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace")
