"""Deltas in, Responses events out: the protocol's bookkeeping for one response, without any I/O."""

from __future__ import annotations

import secrets
import time
from typing import Literal

import msgspec

from tokenweir.encode.errors import ProtocolError
from tokenweir.stream.events import Delta, Finish, FinishReason, ReasoningDelta, TextDelta, Usage
from tokenweir.stream.wire import events as ev
from tokenweir.stream.wire.requests import ResponseCreate


def new_id(prefix: str) -> str:
    """An id nobody can guess, in the protocol's form, such as `resp_6f1c...`."""
    return f"{prefix}_{secrets.token_hex(16)}"


class ResponseStream:
    """One response as its events: `start()`, then `step(delta)` until the `Finish`, or `fail()` at any point.

    Each stretch of one channel becomes an output item with one content part. Events are numbered from 0.

    Args:
        request: What the client asked for; the response object repeats it.
        model: The name under which the engine is served.
        max_output_tokens: The limit that holds, the server's own included.

    Attributes:
        id: The response's id.
        status: `in_progress` until the last event has been made.
        output: The items that are done.

    """

    def __init__(self, request: ResponseCreate, *, model: str, max_output_tokens: int | None) -> None:
        self.id = new_id("resp")
        self.status: ev.ResponseStatus = "in_progress"
        self.output: list[ev.Item] = []
        self._sequence = 0
        self._channel: type[TextDelta | ReasoningDelta] | None = None
        self._item_id = ""
        self._pieces: list[str] = []
        self._response = ev.Response(
            id=self.id,
            created_at=time.time(),
            model=model,
            status="in_progress",
            instructions=request.instructions,
            max_output_tokens=max_output_tokens,
            metadata=request.metadata or {},
            previous_response_id=request.previous_response_id,
            reasoning=None if request.reasoning is None else {"effort": request.reasoning.effort, "summary": None},
            temperature=request.temperature,
            top_p=request.top_p,
            user=request.user,
        )

    @property
    def finished(self) -> bool:
        """Whether the last event has been made."""
        return self.status != "in_progress"

    def start(self) -> list[ev.ResponseEvent]:
        """The two events that open a response."""
        return [
            ev.ResponseCreated(sequence_number=self._next(), response=self._response),
            ev.ResponseInProgress(sequence_number=self._next(), response=self._response),
        ]

    def step(self, delta: Delta) -> list[ev.ResponseEvent]:
        """The events of one delta.

        Raises:
            ProtocolError: For a tool call or a second parallel answer; a Responses request cannot ask this server for
                either.

        """
        if delta.index != 0:
            raise ProtocolError(f"a Responses stream carries one answer, not answer {delta.index}")
        match delta:
            case TextDelta() | ReasoningDelta():
                opening = self._open(type(delta)) if type(delta) is not self._channel else []
                self._pieces.append(delta.text)
                return [*opening, self._more(delta)]
            case Finish():
                return self._finish(delta)
            case _:
                raise ProtocolError(f"a Responses stream without tools carries no {type(delta).__name__}")

    def fail(
        self,
        message: str,
        code: Literal["server_error", "invalid_prompt"] = "server_error",
        usage: Usage | None = None,
    ) -> list[ev.ResponseEvent]:
        """The events that end a response which an error cut off; `message` may hold any characters."""
        message = message.encode("utf-8", "replace").decode("utf-8")
        closing = self._close("incomplete")
        return [*closing, self._end("failed", usage, error=ev.ResponseError(code, message))]

    def cancel(self, usage: Usage | None = None) -> list[ev.ResponseEvent]:
        """The events that end a response which the client stopped; without `usage` if nobody counted."""
        closing = self._close("incomplete")
        return [*closing, self._end("cancelled", usage, incomplete_details=ev.IncompleteDetails("cancelled"))]

    def _next(self) -> int:
        number = self._sequence
        self._sequence += 1
        return number

    def _open(self, channel: type[TextDelta | ReasoningDelta]) -> list[ev.ResponseEvent]:
        closing = self._close("completed")
        self._channel = channel
        item: ev.Item
        part: ev.Part
        if channel is TextDelta:
            item, part = ev.MessageItem(new_id("msg"), "in_progress", []), ev.OutputText("")
        else:
            item, part = ev.ReasoningItem(new_id("rs"), "in_progress", []), ev.ReasoningText("")
        self._item_id = item.id
        index = len(self.output)
        return [
            *closing,
            ev.OutputItemAdded(sequence_number=self._next(), output_index=index, item=item),
            ev.ContentPartAdded(sequence_number=self._next(), item_id=item.id, output_index=index, part=part),
        ]

    def _more(self, delta: TextDelta | ReasoningDelta) -> ev.ResponseEvent:
        kind = ev.OutputTextDelta if isinstance(delta, TextDelta) else ev.ReasoningTextDelta
        return kind(
            sequence_number=self._next(), item_id=self._item_id, output_index=len(self.output), delta=delta.text
        )

    def _close(self, status: Literal["completed", "incomplete"]) -> list[ev.ResponseEvent]:
        """The events that end the open item, if one is open."""
        if self._channel is None:
            return []
        text, index, item_id = "".join(self._pieces), len(self.output), self._item_id
        item: ev.Item
        part: ev.Part
        done: ev.ResponseEvent
        if self._channel is TextDelta:
            part = ev.OutputText(text)
            item = ev.MessageItem(item_id, status, [part])
            done = ev.OutputTextDone(sequence_number=self._next(), item_id=item_id, output_index=index, text=text)
        else:
            part = ev.ReasoningText(text)
            item = ev.ReasoningItem(item_id, status, [part])
            done = ev.ReasoningTextDone(sequence_number=self._next(), item_id=item_id, output_index=index, text=text)
        self.output.append(item)
        self._channel, self._pieces = None, []
        return [
            done,
            ev.ContentPartDone(sequence_number=self._next(), item_id=item_id, output_index=index, part=part),
            ev.OutputItemDone(sequence_number=self._next(), output_index=index, item=item),
        ]

    def _finish(self, finish: Finish) -> list[ev.ResponseEvent]:
        match finish.reason:
            case FinishReason.LENGTH:
                closing = self._close("incomplete")
                details = ev.IncompleteDetails("max_output_tokens")
                return [*closing, self._end("incomplete", finish.usage, incomplete_details=details)]
            case FinishReason.CANCELLED:
                return self.cancel(finish.usage)
            case FinishReason.ERROR:
                return self.fail("the engine reported an error", usage=finish.usage)
            case _:
                closing = self._close("completed")
                return [*closing, self._end("completed", finish.usage, completed_at=time.time())]

    def _end(
        self,
        status: ev.ResponseStatus,
        usage: Usage | None,
        *,
        completed_at: float | None = None,
        error: ev.ResponseError | None = None,
        incomplete_details: ev.IncompleteDetails | None = None,
    ) -> ev.ResponseEvent:
        self.status = status
        response = msgspec.structs.replace(
            self._response,
            status=status,
            output=self.output,
            usage=None if usage is None else _wire_usage(usage),
            completed_at=completed_at,
            error=error,
            incomplete_details=incomplete_details,
        )
        match status:
            case "completed":
                return ev.ResponseCompleted(sequence_number=self._next(), response=response)
            case "failed":
                return ev.ResponseFailed(sequence_number=self._next(), response=response)
            case _:
                return ev.ResponseIncomplete(sequence_number=self._next(), response=response)


def _wire_usage(usage: Usage) -> ev.ResponseUsage:
    return ev.ResponseUsage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        output_tokens_details=ev.OutputTokensDetails(usage.reasoning_tokens),
    )
