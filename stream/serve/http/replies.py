"""Answers in one piece: JSON within the bounds of the server, encoded off the event loop where it is large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import msgspec
from starlette.responses import Response

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.batching.worker_thread import run_in_thread
from tokenweir.stream.serve.answers.engines import MANY
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.wire.shared.errors import RequestError

JSON = "application/json"
ID_BYTES = 7
"""Most bytes of an id in JSON, comma included."""


def reply(content: Any, status: int = 200) -> Response:
    """Return a JSON response with this content and status; for small contents, whose size is not checked."""
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def encoded(content: Any, limits: Limits) -> bytes:
    """Encode a response's content as JSON; raise `RequestError` if it is longer than `Limits.max_answer_bytes`."""
    return _bounded(msgspec.json.encode(content), limits)


def _bounded(data: bytes, limits: Limits) -> bytes:
    if len(data) > limits.max_answer_bytes:
        raise _too_large(f"{len(data)} bytes", limits)
    return data


async def reply_with(make: Callable[[], bytes], tokens: int, limits: Limits) -> Response:
    """Return a JSON response with the body that `make()` returns.

    Args:
        make: Makes the body; called in a thread if it would block the event loop for too long.
        tokens: Number of tokens that the body describes, by which the duration is estimated.
        limits: The limits.

    Raises:
        RequestError: The body is longer than `Limits.max_answer_bytes`.

    """
    data = make() if tokens <= MANY else await run_in_thread(make)
    return Response(_bounded(data, limits), media_type=JSON)


def check_described(count: int, limits: Limits, param: str) -> None:
    """Raise `RequestError` if a response would describe more tokens one by one than `Limits.max_returned_tokens`.

    Args:
        count: Number of tokens.
        limits: The limits.
        param: The field of the request that asks for them, for the error.

    """
    if count > limits.max_returned_tokens:
        raise RequestError(
            f"{count} tokens are to be described one by one; this server does so for {limits.max_returned_tokens}",
            code="answer_too_large",
            param=param,
        )


def check_text(tokenizer: Tokenizer, texts: Iterable[Iterable[int]], limits: Limits) -> None:
    """Raise `RequestError` if the text of ids is longer than a response may be, without decoding it.

    Args:
        tokenizer: The tokenizer of the ids.
        texts: The ids of one or more texts, whose lengths are added up.
        limits: The limits.

    """
    valid = tokenizer.vocab_size
    counts = Counter(chain.from_iterable(texts))
    size = sum(
        number * len(tokenizer.token_bytes(token_id)) for token_id, number in counts.items() if 0 <= token_id < valid
    )
    if size > limits.max_answer_bytes:
        raise _too_large(f"a text of {size} bytes", limits)


def check_copies(ids: int, copies: int, limits: Limits) -> None:
    """Raise `RequestError` if a response that repeats the ids of its prompts would be too long.

    Args:
        ids: Number of ids of all prompts.
        copies: Number of times that each prompt is repeated.
        limits: The limits.

    """
    if (size := ids * copies * ID_BYTES) > limits.max_answer_bytes:
        raise _too_large(f"about {size} bytes", limits)


def _too_large(what: str, limits: Limits) -> RequestError:
    return RequestError(
        f"the answer would be {what}; this server sends {limits.max_answer_bytes} in one piece",
        code="answer_too_large",
    )
