"""Spans of answers for OpenTelemetry, if its API is installed (extra `otel`). Its SDK decides where they are sent.

Names and attributes are those of its semantic conventions for generative AI. A span has no text of prompts or answers. Its parent is
the span in which the request is handled, or else the one that the request's `traceparent` names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

from tokenweir.stream.chat.plan import AnswerRequest
from tokenweir.stream.events.deltas import Finish

try:
    from opentelemetry import context, propagate, trace
except ImportError:
    INSTALLED = False
else:
    INSTALLED = True

P = ParamSpec("P")

logger = logging.getLogger("tokenweir.serve")

MOST_HEADER = 512
"""Most bytes of a header that names a trace (W3C Trace Context)."""


@contextmanager
def request_context(headers: Any) -> Iterator[None]:
    """While the context lasts, make spans children of the trace that a request's headers name.

    No effect if a span is already open, or OpenTelemetry is not installed. `headers` are pairs of bytes; long ones are not
    read, nor is baggage, of which nothing here makes use.
    """
    if not INSTALLED or trace.get_current_span().get_span_context().is_valid:
        yield
        return
    carrier = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if len(value) <= MOST_HEADER and name != b"baggage"
    }
    token = context.attach(propagate.extract(carrier))
    try:
        yield
    finally:
        context.detach(token)


def _harmless(record: Callable[P, None]) -> Callable[P, None]:
    """Return a method that logs errors instead of raising them: samplers and span processors are other people's code."""

    @wraps(record)
    def logged(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            record(*args, **kwargs)
        except Exception:
            logger.exception("the span of an answer could not be recorded")

    return logged


class AnswerSpan:
    """The OpenTelemetry span of one request's answers, from its arrival to the end of its engine.

    A failure of the SDK is logged, and fails no answer.
    """

    @_harmless
    def __init__(self, answer_id: str, model: str, request: AnswerRequest) -> None:
        self._span: trace.Span = trace.INVALID_SPAN
        self._reasons: list[str] = []
        self._output_tokens = 0
        operation = "chat" if request.prompt is None else "text_completion"
        sampling = request.sampling
        asked = {
            "gen_ai.request.max_tokens": sampling.max_tokens,
            "gen_ai.request.temperature": sampling.temperature,
            "gen_ai.request.top_p": sampling.top_p,
            "gen_ai.request.choice.count": sampling.n if sampling.n > 1 else None,
        }
        self._span = trace.get_tracer("tokenweir").start_span(
            f"{operation} {model}",
            kind=trace.SpanKind.SERVER,
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.request.model": model,
                "gen_ai.response.id": answer_id,
                **{name: value for name, value in asked.items() if value is not None},
            },
        )

    @_harmless
    def start(self) -> None:
        """Record that the prompt is encoded and the engine starts."""
        self._span.add_event("tokenweir.engine_started")

    @_harmless
    def first_token(self) -> None:
        """Record that the engine has given the first token."""
        self._span.add_event("tokenweir.first_token")

    @_harmless
    def finish(self, finish: Finish) -> None:
        """Record the token counts and the finish reason of one of the request's answers."""
        self._reasons.append(str(finish.reason))
        self._output_tokens += finish.usage.completion_tokens
        self._span.set_attribute("gen_ai.usage.input_tokens", finish.usage.prompt_tokens)

    @_harmless
    def end(self, error: str | None) -> None:
        """End the span, after the engine has stopped or been abandoned.

        `error` is the error code that the client gets, None for a success.
        """
        self._span.set_attribute("gen_ai.usage.output_tokens", self._output_tokens)
        self._span.set_attribute("gen_ai.response.finish_reasons", self._reasons)
        if error is not None:
            self._span.set_attribute("error.type", error)
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()
