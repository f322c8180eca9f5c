"""Probabilities of ids as those of tokens: the rows that chat completions and completions have of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.serve.wire.openai.completions import completion_rows
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.logprobs import Logprob, TopLogprob, finite
from tokenweir.stream.serve.wire.vllm.generate import Candidate, Choice, Sampled

PLACEHOLDER = "token_id:"


def rows_of(tokenizer: Tokenizer, choice: Choice, count: int, field: str) -> list[Logprob] | None:
    """Return the first tokens of an answer with their logprobs; None if the engine gave no logprobs.

    Args:
        tokenizer: The tokenizer, which gives the tokens' texts.
        choice: The engine's answer, with ids and logprobs.
        count: Number of tokens to return.
        field: Path of the answer in the request, for errors.

    Raises:
        RequestError: There are not as many logprobs as ids, or one has no id or an id outside the vocabulary.

    """
    if choice.logprobs is None or choice.logprobs.content is None:
        return None
    content, ids = choice.logprobs.content, choice.token_ids or []
    field = f"{field}.logprobs.content"
    if len(content) != len(ids):
        raise RequestError(f"{field} has {len(content)} rows for {len(ids)} ids", param=field)
    return [_sampled(tokenizer, row, f"{field}[{place}]") for place, row in enumerate(content[:count])]


def flat_rows(rows: Sequence[Logprob], start: int) -> dict[str, Sequence[Any]]:
    """Return the `logprobs` object of a completion for these tokens, with a list for each field.

    `start` is the number of characters of the answer's text before the first token.
    """
    tops = [{top.token: top.logprob for top in row.top_logprobs} or None for row in rows]
    return completion_rows(rows, start, tops)


def _sampled(tokenizer: Tokenizer, row: Sampled, field: str) -> Logprob:
    tops = [
        TopLogprob(*_token(tokenizer, top, f"{field}.top_logprobs[{place}]"))
        for place, top in enumerate(row.top_logprobs)
    ]
    return Logprob(*_token(tokenizer, row, field), tops)


def _token(tokenizer: Tokenizer, row: Candidate, field: str) -> tuple[str, float, list[int]]:
    token_id = row.token_id
    if token_id is None:
        number = (row.token or "").removeprefix(PLACEHOLDER)
        if number == row.token or not (number.isascii() and number.isdigit() and len(number) < 10):
            raise RequestError(f"{field} names no id", param=f"{field}.token_id")
        token_id = int(number)
    if token_id >= tokenizer.vocab_size:
        size = tokenizer.vocab_size
        raise RequestError(
            f"{field}: token id {token_id} is outside the vocabulary (0 to {size - 1})", param=f"{field}.token_id"
        )
    data = tokenizer.token_bytes(token_id)
    return data.decode("utf-8", "replace"), finite(row.logprob), list(data)
