"""Conversion of deltas to Responses events, sans-I/O."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Literal

from msgspec import UNSET
from msgspec.structs import replace

from tokenweir.encode.errors import ProtocolError
from tokenweir.stream.events.deltas import Delta, Finish, FinishReason, TextDelta, Usage
from tokenweir.stream.serve.wire.responses import events as ev
from tokenweir.stream.serve.wire.responses.items import OpenCall, OpenText, open_item
from tokenweir.stream.serve.wire.responses.requests import ResponseCreate
from tokenweir.stream.serve.wire.responses.response_object import (
    IncompleteDetails,
    Item,
    Response,
    ResponseError,
    ResponseStatus,
    ResponseUsage,
    TextConfig,
)
from tokenweir.stream.serve.wire.responses.response_tools import ClientTool, FunctionTool, NamespaceTool, ServerTool
from tokenweir.stream.serve.wire.shared.ids import new_id, worker_of
from tokenweir.stream.serve.wire.shared.logprobs import finite, lacks_candidates, lacks_logprobs

_REPEATED = [
    "frequency_penalty",
    "instructions",
    "max_tool_calls",
    "metadata",
    "presence_penalty",
    "previous_response_id",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "temperature",
    "top_logprobs",
    "top_p",
    "user",
]
"""Names of the fields that the response object repeats where the request has them."""


class ResponseStream:
    """Converter of the deltas of one answer to the events of a response.

    Call `start()`, then `step(delta)` up to and including the `Finish`; or `fail()` or `cancel()` at any point. Each
    call returns the events to send. Each stretch of text or of thinking, and each tool call, becomes an output item.
    Events are numbered from 0.

    Args:
        request: The client's request; the response object repeats it.
        model: The name under which the engine is served.
        max_output_tokens: The limit in effect, with the server's own taken into account; None if there is no limit.
        reasoning_events: Event names for thinking: `reasoning_text`, as OpenAI's clients expect, or `reasoning`, as in
            Open Responses. If the request asks for a summary, the thinking is sent as summary events instead.
        response_id: The response's id; None makes a new one.
        prompt_ids: Function that returns the prompt's ids. The last event has them if the request has
            `return_token_ids`.

    Attributes:
        previous_id: The id of the response that this one continues; None if it continues no other.
        status: `in_progress` until the last event has been made.
        output: The output items that are finished.
        finished: Whether the last event has been made.

    """

    def __init__(
        self,
        request: ResponseCreate,
        *,
        model: str,
        max_output_tokens: int | None,
        reasoning_events: str = "reasoning_text",
        response_id: str | None = None,
        prompt_ids: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        self.id = response_id or new_id("resp")
        self.previous_id = request.previous_response_id
        self.status: ResponseStatus = "in_progress"
        self.output: list[Item] = []
        self.finished = False
        self._prompt_ids = prompt_ids
        self._next = count().__next__  # a sequence number
        self._item: OpenText | OpenCall | None = None
        asks_summary = request.reasoning is not None and request.reasoning.summary is not None
        self._reasoning_events = "summary" if asks_summary else reasoning_events
        self._logprobs = request.logprobs
        self._top_logprobs = bool(request.top_logprobs)
        self._tokens = _Tokens() if request.return_token_ids else None
        self._tools = request.tool_set
        client_tools = [tool for tool in request.tools or () if not isinstance(tool, ServerTool)]
        self._response = Response(
            id=self.id,
            created_at=int(time.time()),
            model=model,
            status="in_progress",
            max_output_tokens=max_output_tokens,
            reasoning=None
            if request.reasoning is None
            else {"effort": request.reasoning.effort, "summary": request.reasoning.summary},
            background=bool(request.background),
            parallel_tool_calls=bool(client_tools) and request.parallel_tool_calls is not False,
            store=request.stored,
            text=TextConfig() if request.text is None else request.text.echo(),
            tool_choice=request.tool_choice or ("auto" if client_tools else "none"),
            tools=[_enforced(tool) for tool in client_tools],
            left_out=request.left_out or UNSET,
            **{name: value for name in _REPEATED if (value := getattr(request, name)) is not None},
        )

    def start(self) -> list[ev.ResponseEvent]:
        """Return the two events that open a response: `response.created` and `response.in_progress`."""
        return [
            ev.ResponseCreated(sequence_number=self._next(), response=self._response),
            ev.ResponseInProgress(sequence_number=self._next(), response=self._response),
        ]

    def step(self, delta: Delta) -> list[ev.ResponseEvent]:
        """Convert one delta to its events.

        Raises:
            ProtocolError: For a second parallel answer, which a Responses request cannot ask for, and for tokens that
                have no logprob although the request asks for them. No event has been made then.

        """
        if delta.index != 0:
            raise ProtocolError(f"a Responses stream carries one answer, not answer {delta.index}")
        if self._tokens is not None:
            self._tokens.add(delta)
            if not self._logprobs:
                delta = replace(delta, alignment=None)
        if isinstance(delta, TextDelta) and lacks_logprobs(delta.alignment):
            raise ProtocolError("include asks for message.output_text.logprobs, and this model's engine gives none")
        if self._top_logprobs and isinstance(delta, TextDelta) and lacks_candidates(delta.alignment):
            raise ProtocolError("top_logprobs are asked for, and this model's engine gives none")
        if isinstance(delta, Finish):
            return self._finish(delta)
        events: list[ev.ResponseEvent] = []
        more = None if self._item is None else self._item.more(delta)
        if self._item is None or more is None:
            events += self._close("completed")
            self._item = open_item(
                delta, len(self.output), self._next, self._reasoning_events, worker_of(self.id), self._tools
            )
            events += self._item.open()
            more = self._item.more(delta) or []
        if more and self._tokens is not None:
            more[-1] = replace(more[-1], **self._tokens.take())
        events += more
        if self._item.whole:
            events += self._close("completed")
        return events

    def fail(self, message: str, code: str = "server_error", usage: Usage | None = None) -> list[ev.ResponseEvent]:
        """Return the events that end the response after an error.

        Args:
            message: Text of the error; lone surrogates in it are replaced.
            code: Machine-readable reason.
            usage: Token counts; None if they are unknown.

        """
        message = message.encode("utf-8", "replace").decode("utf-8")
        closing = self._close("incomplete")
        return [*closing, self._end("failed", usage, error=ResponseError(code, message))]

    def cancel(self, usage: Usage | None = None) -> list[ev.ResponseEvent]:
        """Return the events that end a response which the client has stopped; `usage` is None if unknown."""
        closing = self._close("incomplete")
        return [*closing, self._end("cancelled", usage, incomplete_details=IncompleteDetails("cancelled"))]

    def _close(self, status: Literal["completed", "incomplete"]) -> list[ev.ResponseEvent]:
        """End the open item with this status and return the events for it; an empty list if no item is open."""
        if self._item is None:
            return []
        item, events = self._item.close(status)
        self.output.append(item)
        self._item = None
        return events

    def _finish(self, finish: Finish) -> list[ev.ResponseEvent]:
        match finish.reason:
            case FinishReason.LENGTH:
                closing = self._close("incomplete")
                details = IncompleteDetails("max_output_tokens")
                return [*closing, self._end("incomplete", finish.usage, incomplete_details=details)]
            case FinishReason.CANCELLED:
                return self.cancel(finish.usage)
            case FinishReason.ERROR:
                return self.fail("the engine reported an error", usage=finish.usage)
            case _:
                closing = self._close("completed")
                return [*closing, self._end("completed", finish.usage, completed_at=int(time.time()))]

    def _end(self, status: ResponseStatus, usage: Usage | None, **details: Any) -> ev.ResponseEvent:
        """Mark the stream as finished; return the last event. `details` are further fields of its response object."""
        self.status, self.finished = status, True
        response = replace(
            self._response,
            status=status,
            output=self.output,
            usage=None if usage is None else ResponseUsage.of(usage),
            **details,
        )
        more = {} if self._tokens is None else self._tokens.take() | {"prompt_token_ids": list(self._prompt_ids())}
        return _LAST_EVENTS[status](sequence_number=self._next(), response=response, **more)


_LAST_EVENTS: dict[str, type[ev.ResponseCompleted | ev.ResponseFailed | ev.ResponseIncomplete]] = {
    "completed": ev.ResponseCompleted,
    "failed": ev.ResponseFailed,
    "incomplete": ev.ResponseIncomplete,
    "cancelled": ev.ResponseIncomplete,
}


def _enforced(tool: ClientTool) -> ClientTool:
    """Return a tool as the response repeats it: without `strict`, since no schema of arguments is enforced."""
    match tool:
        case FunctionTool(strict=True):
            return replace(tool, strict=False)
        case NamespaceTool():
            return replace(tool, tools=[_enforced(each) for each in tool.tools])
        case _:
            return tool


class _Tokens:
    """Tokens that wait for an event that carries them.

    Those of a delta that makes no event are carried by the next event.
    """

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._logprobs: list[float | None] = []

    def add(self, delta: Delta) -> None:
        """Queue a delta's ids and logprobs for the next event."""
        self._ids += delta.token_ids
        self._logprobs += _logprobs(delta)

    def take(self) -> dict[str, Any]:
        """Return the waiting tokens as the event fields `token_ids` and `token_logprobs`, and clear them."""
        fields = {"token_ids": self._ids, "token_logprobs": self._logprobs}
        self._ids, self._logprobs = [], []
        return fields


def _logprobs(delta: Delta) -> list[float | None]:
    """Return one logprob for each of the delta's tokens; None for those without one."""
    if delta.alignment is None:
        return [None] * len(delta.token_ids)
    return [None if logprob is None else finite(logprob) for logprob in delta.alignment.logprobs]
