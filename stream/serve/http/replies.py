"""Answers in one piece: JSON within the bounds of the server, encoded off the event loop where it is large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import msgspec
from starlette.responses import Response

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.worker_thread import run_in_thread
from tokenweir.stream.serve.answers.engines import MANY
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.wire.errors import RequestError

JSON = "application/json"
ID_BYTES = 7
"""Most bytes of an id in JSON, comma included."""


def reply(content: Any, status: int = 200) -> Response:
    """Return a small JSON answer."""
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def encoded(content: Any, limits: Limits) -> bytes:
    """Encode an answer as JSON; raise `RequestError` if it is too long."""
    data = msgspec.json.encode(content)
    if len(data) > limits.max_answer_bytes:
        raise _too_large(f"{len(data)} bytes", limits)
    return data


async def reply_with(make: Callable[[], bytes], tokens: int, limits: Limits) -> Response:
    """Return a JSON answer, made in a thread if it has many tokens."""
    data = make() if tokens <= MANY else await run_in_thread(make)
    if len(data) > limits.max_answer_bytes:
        raise _too_large(f"{len(data)} bytes", limits)
    return Response(data, media_type=JSON)


def check_described(count: int, limits: Limits, param: str) -> None:
    """Raise `RequestError` for more individually described tokens than an answer may have."""
    if count > limits.max_returned_tokens:
        raise RequestError(
            f"{count} tokens are to be described one by one; this server does so for {limits.max_returned_tokens}",
            code="answer_too_large",
            param=param,
        )


def check_text(tokenizer: Tokenizer, texts: Iterable[Iterable[int]], limits: Limits) -> None:
    """Raise `RequestError`, before decoding, for ids whose text is longer than an answer may be."""
    valid = tokenizer.vocab_size
    counts = Counter(chain.from_iterable(texts))
    size = sum(
        number * len(tokenizer.token_bytes(token_id)) for token_id, number in counts.items() if 0 <= token_id < valid
    )
    if size > limits.max_answer_bytes:
        raise _too_large(f"a text of {size} bytes", limits)


def check_copies(ids: int, copies: int, limits: Limits) -> None:
    """Raise `RequestError` for an answer that repeats its prompts' ids, once per choice, beyond the bound."""
    if (size := ids * copies * ID_BYTES) > limits.max_answer_bytes:
        raise _too_large(f"about {size} bytes", limits)


def _too_large(what: str, limits: Limits) -> RequestError:
    return RequestError(
        f"the answer would be {what}; this server sends {limits.max_answer_bytes} in one piece",
        code="answer_too_large",
    )
