"""Output items of a response while they are being put out: messages, thinking, calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, UnsetType

from tokenweir.stream.events.call_ids import new_call_id
from tokenweir.stream.events.deltas import ContentDelta, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.serve.wire.responses import events as ev
from tokenweir.stream.serve.wire.responses.custom_input import CustomInput
from tokenweir.stream.serve.wire.responses.response_object import (
    CustomToolCallItem,
    FunctionCallItem,
    Item,
    ItemStatus,
    MessageItem,
    OutputText,
    ReasoningItem,
    ReasoningText,
    SummaryText,
)
from tokenweir.stream.serve.wire.responses.response_tools import ShownTool, ToolSet
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.shared.logprobs import Logprob, token_logprobs

End = Literal["completed", "incomplete"]


def open_item(
    delta: ContentDelta,
    index: int,
    number: Callable[[], int],
    reasoning_events: str,
    worker: str | None,
    tools: ToolSet,
) -> OpenText | OpenCall:
    """Create the output item that a delta begins; the delta itself is not added to it.

    Args:
        delta: The first delta of the item.
        index: The item's place in the response's output.
        number: Returns the next sequence number for an event.
        reasoning_events: Names of the events of thinking: `reasoning_text`, `reasoning` as in Open Responses, or
            `summary`.
        worker: Name of the worker process, for the item's id; None leaves it out.
        tools: The tools that the model was shown.

    """
    if isinstance(delta, ToolCallDelta):
        return OpenCall(delta, tools.find(delta.name), index, number, worker)
    item_id = new_id("msg" if isinstance(delta, TextDelta) else "rs", worker)
    return OpenText(delta, index, number, reasoning_events, item_id)


class _PartEvents(NamedTuple):
    """Constructors of an item's content part (from its text) and of the events for the part."""

    part: Callable[..., Any]
    added: Callable[..., ev.ResponseEvent]
    delta: Callable[..., ev.ResponseEvent]
    done: Callable[..., ev.ResponseEvent]
    part_done: Callable[..., ev.ResponseEvent]


_ANSWER = _PartEvents(OutputText, ev.ContentPartAdded, ev.OutputTextDelta, ev.OutputTextDone, ev.ContentPartDone)
_THINKING = {
    "reasoning_text": _PartEvents(
        ReasoningText, ev.ContentPartAdded, ev.ReasoningTextDelta, ev.ReasoningTextDone, ev.ContentPartDone
    ),
    "reasoning": _PartEvents(
        ReasoningText, ev.ContentPartAdded, ev.ReasoningDelta, ev.ReasoningDone, ev.ContentPartDone
    ),
    "summary": _PartEvents(
        SummaryText,
        ev.ReasoningSummaryPartAdded,
        ev.ReasoningSummaryTextDelta,
        ev.ReasoningSummaryTextDone,
        ev.ReasoningSummaryPartDone,
    ),
}


class _OpenItem:
    """Base of an open item.

    Attributes:
        whole: Whether the item is complete, so that no further delta can belong to it.

    """

    whole = False

    def __init__(self, item_id: str, index: int, number: Callable[[], int]) -> None:
        self._id = item_id
        self._index = index
        self._number = number
        self._pieces: list[str] = []

    def _of_item(self, made: Callable[..., ev.ResponseEvent], item: Item) -> ev.ResponseEvent:
        return made(sequence_number=self._number(), output_index=self._index, item=item)

    def _event(self, made: Callable[..., ev.ResponseEvent], **fields: object) -> ev.ResponseEvent:
        return made(sequence_number=self._number(), item_id=self._id, output_index=self._index, **fields)


class OpenText(_OpenItem):
    """An open message or stretch of thinking; it has one content part."""

    def __init__(
        self,
        delta: TextDelta | ReasoningDelta,
        index: int,
        number: Callable[[], int],
        reasoning_events: str,
        item_id: str,
    ) -> None:
        super().__init__(item_id, index, number)
        self._kind = type(delta)
        self._answer = isinstance(delta, TextDelta)
        self._events = _ANSWER if self._answer else _THINKING[reasoning_events]
        self._logprobs: list[Logprob] = []

    def open(self) -> list[ev.ResponseEvent]:
        """Return the events that announce the item."""
        made: Callable[..., Item] = MessageItem if self._answer else ReasoningItem
        return [
            self._of_item(ev.OutputItemAdded, made(self._id, "in_progress", [])),
            self._event(self._events.added, part=self._events.part("")),
        ]

    def more(self, delta: ContentDelta) -> list[ev.ResponseEvent] | None:
        """Add a delta and return its events; None, and nothing is added, if the delta does not belong to this item."""
        if not isinstance(delta, self._kind):
            return None
        self._pieces.append(delta.text)
        number, item, index = self._number(), self._id, self._index
        if not self._answer:
            return [self._events.delta(sequence_number=number, item_id=item, output_index=index, delta=delta.text)]
        logprobs = [] if delta.alignment is None else token_logprobs(delta.alignment)
        self._logprobs += logprobs
        return [
            self._events.delta(
                sequence_number=number, item_id=item, output_index=index, delta=delta.text, logprobs=logprobs
            )
        ]

    def close(self, status: End) -> tuple[Item, list[ev.ResponseEvent]]:
        """Return the finished item with this status, and the events that report its end."""
        text = "".join(self._pieces)
        logprobs = {"logprobs": self._logprobs} if self._answer else {}
        part = self._events.part(text, **logprobs)
        item: Item
        if self._answer:
            item = MessageItem(self._id, status, [part])
        else:
            content, summary = ([], [part]) if isinstance(part, SummaryText) else ([part], [])
            item = ReasoningItem(self._id, status, content, summary)
        return item, [
            self._event(self._events.done, text=text, **logprobs),
            self._event(self._events.part_done, part=part),
            self._of_item(ev.OutputItemDone, item),
        ]


class _CallEvents(NamedTuple):
    """Constructors of a call's item and of its events; `field` is the name of the call's text in the last of them."""

    item: Callable[[str, ItemStatus, str, str, str, str | UnsetType], Item]
    delta: Callable[..., ev.ResponseEvent]
    done: Callable[..., ev.ResponseEvent]
    field: str


_FUNCTION = _CallEvents(FunctionCallItem, ev.FunctionCallArgumentsDelta, ev.FunctionCallArgumentsDone, "arguments")
_CUSTOM = _CallEvents(CustomToolCallItem, ev.CustomToolCallInputDelta, ev.CustomToolCallInputDone, "input")


class OpenCall(_OpenItem):
    """An open tool call; its status is `completed` only if the decoder has reported its JSON as complete."""

    def __init__(
        self, delta: ToolCallDelta, called: ShownTool | None, index: int, number: Callable[[], int], worker: str | None
    ) -> None:
        is_custom = called is not None and called.is_custom
        super().__init__(new_id("ctc" if is_custom else "fc", worker), index, number)
        self._events = _CUSTOM if is_custom else _FUNCTION
        self._input = CustomInput() if is_custom else None
        self._call = delta.call
        self._name = delta.name if called is None else called.tool.name
        self._namespace = UNSET if called is None or called.namespace is None else called.namespace
        self._call_id = delta.id or new_call_id()
        self._complete = False

    def open(self) -> list[ev.ResponseEvent]:
        return [self._of_item(ev.OutputItemAdded, self._item("in_progress", ""))]

    def more(self, delta: ContentDelta) -> list[ev.ResponseEvent] | None:
        if not isinstance(delta, ToolCallDelta) or delta.call != self._call:
            return None
        self._complete = delta.complete
        self.whole = delta.complete
        return self._grow(delta.arguments if self._input is None else self._input.feed(delta.arguments))

    def close(self, status: End) -> tuple[Item, list[ev.ResponseEvent]]:
        events = [] if self._input is None else self._grow(self._input.finish())
        text = "".join(self._pieces)
        item = self._item(status if self._complete else "incomplete", text)
        events.append(self._event(self._events.done, **{self._events.field: text}))
        events.append(self._of_item(ev.OutputItemDone, item))
        return item, events

    def _grow(self, text: str) -> list[ev.ResponseEvent]:
        """Add a piece of the call's text and return its event; an empty list for an empty piece."""
        if not text:
            return []
        self._pieces.append(text)
        return [
            self._events.delta(sequence_number=self._number(), item_id=self._id, output_index=self._index, delta=text)
        ]

    def _item(self, status: ItemStatus, text: str) -> Item:
        return self._events.item(self._id, status, self._call_id, self._name, text, self._namespace)
