"""Output items of a response while they are being put out: messages, thinking, calls."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import UNSET, UnsetType

from tokenweir.stream.events.call_ids import new_call_id
from tokenweir.stream.events.deltas import Alignment, ReasoningDelta, TextDelta, TokenLogprob, ToolCallDelta
from tokenweir.stream.serve.wire import events as ev
from tokenweir.stream.serve.wire.custom_input import CustomInput
from tokenweir.stream.serve.wire.response_object import (
    CustomToolCallItem,
    FunctionCallItem,
    Item,
    ItemStatus,
    Logprob,
    MessageItem,
    OutputText,
    ReasoningItem,
    ReasoningText,
    SummaryText,
    TopLogprob,
)
from tokenweir.stream.serve.wire.response_tools import ShownTool, ToolSet

ItemDelta = TextDelta | ReasoningDelta | ToolCallDelta
End = Literal["completed", "incomplete"]

ITEMS = ("msg", "rs", "fc", "ctc")
"""Prefixes of the ids of messages, thinking, calls, and calls of custom tools."""

NO_PROBABILITY = -9999.0
"""The protocol's logarithm of 0, since JSON has no infinity."""


def finite(logprob: float) -> float:
    """Return the logprob, at least `NO_PROBABILITY`: JSON has no infinity."""
    return max(NO_PROBABILITY, float(logprob))


def new_id(prefix: str) -> str:
    """Return a random, unguessable id that begins with `prefix`, such as `resp_6f1c...`."""
    return f"{prefix}_{secrets.token_hex(16)}"


def new_response_id(worker: str = "") -> str:
    """Return a new response id; it contains `worker`, the name of the worker process that keeps the response, if given."""
    return _new_id("resp", worker)


def _new_id(prefix: str, worker: str | None) -> str:
    return new_id(f"{prefix}_{worker}" if worker else prefix)


def worker_of(response_id: str, prefixes: tuple[str, ...] = ("resp",)) -> str | None:
    """Return the name of the worker that an id such as `resp_WORKER_6f1c...` contains.

    Args:
        response_id: The id of a response, or of an item.
        prefixes: The accepted prefixes; `ITEMS` for the ids of items.

    Returns:
        The name; None if the id contains no worker's name or has another prefix.

    """
    match response_id.split("_"):
        case [prefix, worker, _] if prefix in prefixes and worker.isascii() and worker.isalnum():
            return worker
        case _:
            return None


class OpenItem(Protocol):
    """An output item of a response that deltas are being added to."""

    @property
    def whole(self) -> bool:
        """Whether the item is complete, so that no further delta can belong to it."""
        ...

    def open(self) -> list[ev.ResponseEvent]:
        """Return the events that announce the item."""
        ...

    def more(self, delta: ItemDelta) -> list[ev.ResponseEvent] | None:
        """Add a delta and return its events; None, and nothing is added, if the delta does not belong to this item."""
        ...

    def close(self, status: End) -> tuple[Item, list[ev.ResponseEvent]]:
        """Return the finished item with this status, and the events that report its end."""
        ...


def open_item(
    delta: ItemDelta, index: int, number: Callable[[], int], reasoning_events: str, worker: str | None, tools: ToolSet
) -> OpenItem:
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
        return _OpenCall(delta, tools.find(delta.name), index, number, worker)
    item_id = _new_id("msg" if isinstance(delta, TextDelta) else "rs", worker)
    return _OpenText(delta, index, number, reasoning_events, item_id)


class _PartEvents(NamedTuple):
    """Constructors of an item's content part (from its text) and of the events for the part."""

    part: Callable[[str], Any]
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


class _OpenText:
    """An open message or stretch of thinking; it has one content part."""

    __slots__ = ("_answer", "_events", "_id", "_index", "_kind", "_logprobs", "_number", "_pieces")

    whole = False

    def __init__(
        self,
        delta: TextDelta | ReasoningDelta,
        index: int,
        number: Callable[[], int],
        reasoning_events: str,
        item_id: str,
    ) -> None:
        self._kind = type(delta)
        self._answer = isinstance(delta, TextDelta)
        self._events = _ANSWER if self._answer else _THINKING[reasoning_events]
        self._id = item_id
        self._index = index
        self._number = number
        self._pieces: list[str] = []
        self._logprobs: list[Logprob] = []

    def open(self) -> list[ev.ResponseEvent]:
        made: Callable[..., Item] = MessageItem if self._answer else ReasoningItem
        return [
            ev.OutputItemAdded(
                sequence_number=self._number(), output_index=self._index, item=made(self._id, "in_progress", [])
            ),
            self._events.added(
                sequence_number=self._number(),
                item_id=self._id,
                output_index=self._index,
                part=self._events.part(""),
            ),
        ]

    def more(self, delta: ItemDelta) -> list[ev.ResponseEvent] | None:
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
        text = "".join(self._pieces)
        number, index = self._number(), self._index
        item: Item
        if self._answer:
            logprobs = self._logprobs
            part: Any = OutputText(text, logprobs=logprobs)
            item = MessageItem(self._id, status, [part])
            done = self._events.done(
                sequence_number=number, item_id=self._id, output_index=index, text=text, logprobs=logprobs
            )
        else:
            part = self._events.part(text)
            content, summary = ([], [part]) if isinstance(part, SummaryText) else ([part], [])
            item = ReasoningItem(self._id, status, content, summary)
            done = self._events.done(sequence_number=number, item_id=self._id, output_index=index, text=text)
        return item, [
            done,
            self._events.part_done(sequence_number=self._number(), item_id=self._id, output_index=index, part=part),
            ev.OutputItemDone(sequence_number=self._number(), output_index=index, item=item),
        ]


class _CallEvents(NamedTuple):
    """Constructors of a call's item and of its events; `field` is the name of the call's text in the last of them."""

    item: Callable[[str, ItemStatus, str, str, str, str | UnsetType], Item]
    delta: Callable[..., ev.ResponseEvent]
    done: Callable[..., ev.ResponseEvent]
    field: str


_FUNCTION = _CallEvents(FunctionCallItem, ev.FunctionCallArgumentsDelta, ev.FunctionCallArgumentsDone, "arguments")
_CUSTOM = _CallEvents(CustomToolCallItem, ev.CustomToolCallInputDelta, ev.CustomToolCallInputDone, "input")


class _OpenCall:
    """An open tool call; its status is `completed` only if the decoder has reported its JSON as complete."""

    def __init__(
        self, delta: ToolCallDelta, called: ShownTool | None, index: int, number: Callable[[], int], worker: str | None
    ) -> None:
        self.whole = False
        is_custom = called is not None and called.is_custom
        self._events = _CUSTOM if is_custom else _FUNCTION
        self._input = CustomInput() if is_custom else None
        self._call = delta.call
        self._name = delta.name if called is None else called.tool.name
        self._namespace = UNSET if called is None or called.namespace is None else called.namespace
        self._id = _new_id("ctc" if is_custom else "fc", worker)
        self._call_id = delta.id or new_call_id()
        self._index = index
        self._number = number
        self._complete = False
        self._pieces: list[str] = []

    def open(self) -> list[ev.ResponseEvent]:
        item = self._item("in_progress", "")
        return [ev.OutputItemAdded(sequence_number=self._number(), output_index=self._index, item=item)]

    def more(self, delta: ItemDelta) -> list[ev.ResponseEvent] | None:
        if not isinstance(delta, ToolCallDelta) or delta.call != self._call:
            return None
        self._complete = delta.complete
        self.whole = delta.complete
        return self._grow(delta.arguments if self._input is None else self._input.feed(delta.arguments))

    def close(self, status: End) -> tuple[Item, list[ev.ResponseEvent]]:
        events = [] if self._input is None else self._grow(self._input.finish())
        text = "".join(self._pieces)
        item = self._item(status if self._complete else "incomplete", text)
        events.append(
            self._events.done(
                sequence_number=self._number(),
                item_id=self._id,
                output_index=self._index,
                **{self._events.field: text},
            )
        )
        events.append(ev.OutputItemDone(sequence_number=self._number(), output_index=self._index, item=item))
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
    """Return whether the engine gave no likeliest tokens (`top_logprobs`) for at least one token of the delta's text."""
    if alignment is None or not (tokens := alignment.text_tokens()).logprobs:
        return False
    return not all(tokens.top_logprobs or [()])


def lacks_logprobs(alignment: Alignment | None) -> bool:
    """Return whether the engine gave no logprob for at least one token of the delta's text."""
    return alignment is not None and None in alignment.text_tokens().logprobs


def _top(candidate: TokenLogprob) -> TopLogprob:
    token = candidate.token_bytes
    return TopLogprob(_text(token), finite(candidate.logprob), list(token))


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace")
