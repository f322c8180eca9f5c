"""Merging and sizes of events for the replay buffer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, groupby
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from tokenweir.stream.serve.wire.responses import events as ev
from tokenweir.stream.serve.wire.responses.response_object import text_of


def merge_events(events: Iterable[ev.ResponseEvent]) -> list[ev.ResponseEvent]:
    """Merge successive deltas of one item to one event, with the sequence number of the last.

    Other events stay as they are.
    """
    merged: list[ev.ResponseEvent] = []
    for _, run in groupby(events, key=_run_of):
        pieces = list(run)
        merged.append(_joined(pieces) if len(pieces) > 1 else pieces[0])
    return merged


def _joined(pieces: list[Any]) -> ev.ResponseEvent:
    """Return one event for successive deltas of one item, with the sequence number of the last."""
    last: ev.ResponseEvent = pieces[-1]

    def all_of(field: str) -> list[Any]:
        return [*chain.from_iterable(getattr(piece, field) for piece in pieces)]

    fields: dict[str, Any] = {"delta": "".join(piece.delta for piece in pieces)}
    if isinstance(last, ev.OutputTextDelta):
        fields["logprobs"] = all_of("logprobs")
    if isinstance(last, ev.WithTokens) and last.token_ids is not UNSET:
        fields |= {"token_ids": all_of("token_ids"), "token_logprobs": all_of("token_logprobs")}
    return replace(last, **fields)


_Delta = (
    ev.OutputTextDelta
    | ev.ReasoningTextDelta
    | ev.ReasoningSummaryTextDelta
    | ev.FunctionCallArgumentsDelta
    | ev.CustomToolCallInputDelta
)


def _run_of(event: ev.ResponseEvent) -> str | int:
    """Return the grouping key of an event: neighbours with equal keys can be merged.

    It is the item's id for a delta, and the event's own sequence number for all others.
    """
    return event.item_id if isinstance(event, _Delta) else event.sequence_number


EVENT_BYTES = 200
"""Bytes of an event on the wire besides its texts."""


def event_size(event: ev.ResponseEvent) -> int:
    """Return an estimate of the bytes that the event has as JSON, without encoding it."""
    if isinstance(event, _Delta):
        size = len(event.delta)
        if isinstance(event, ev.OutputTextDelta):
            size += _LOGPROB_BYTES * sum(1 + len(row.top_logprobs) for row in event.logprobs)
        if event.token_ids is not UNSET:
            size += _TOKEN_BYTES * len(event.token_ids)
        return EVENT_BYTES + size
    if (response := getattr(event, "response", None)) is not None:
        size = 1000 + len(response.instructions or "") + sum(len(text_of(item)) for item in response.output)
    elif (item := getattr(event, "item", None)) is not None:
        size = len(text_of(item))
    elif (part := getattr(event, "part", None)) is not None:
        size = len(part.text)
    else:
        size = next(len(getattr(event, name)) for name in ("text", "arguments", "input") if hasattr(event, name))
    return EVENT_BYTES + size


_LOGPROB_BYTES = 80
_TOKEN_BYTES = 16  # an id and its logprob
