"""Messages and masks of ids, from the origins of a prompt's text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from tokenweir.templates.messages import REASONING_FIELDS

_MESSAGE = re.compile(r"messages\[([0-9]+)\](?:\.([^.\[ ]+))?")
_FORMAL = frozenset({"role", "type", "id", "tool_call_id", "name"})  # fields that say what a text is


class Span(Protocol):
    """A stretch of a prompt's text, in characters, with its origin: "template", "engine" or the path of an input value."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def origin(self) -> str: ...


class Fields(NamedTuple):
    """The selection of message fields whose ids a loss mask counts.

    Attributes:
        given: The role of each message.
        roles: The roles whose messages count.
        thinking: Whether fields with thinking count.
        tool_calls: Whether tool calls count.

    """

    given: tuple[str, ...]
    roles: frozenset[str]
    thinking: bool
    tool_calls: bool

    def counts(self, number: int, field: str) -> bool:
        """Return whether the mask counts a field of the message with this number."""
        if number >= len(self.given) or self.given[number] not in self.roles:
            return False
        if field in REASONING_FIELDS:
            return self.thinking
        return self.tool_calls if field == "tool_calls" else True


def is_content(path: str, written: Collection[str]) -> bool:
    """Return whether an input text that is absent from a prompt is content, which a template should have written.

    Roles, types, names and ids are not content. Nor is thinking if the message's thinking was written under another
    field name.

    Args:
        path: The path of the text in the input, such as `messages[3].content`.
        written: The paths of the input texts that the prompt has.

    """
    if path.rsplit(".", 1)[-1] in _FORMAL:
        return False
    found = _MESSAGE.fullmatch(path)
    if found is None:
        return path.startswith(("messages[", "tools[", "documents["))
    number, field = found.groups()
    if field not in REASONING_FIELDS:
        return True
    # Of several names the template gets the text of the first, so the others are never written.
    others = (f"messages[{number}].{name}" for name in REASONING_FIELDS)
    return not any(other in written for other in others)


def message_indices(origins: Sequence[Span], offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each id the number of the first message whose text it covers, or -1 if it covers no message's text.

    Args:
        origins: The origins of the prompt's text.
        offsets: The (start, end) characters of each id.

    """
    stretches = [(span.start, span.end, number) for span in origins if (number := _message_of(span.origin)[0]) >= 0]
    return [stretches[at][2] if at >= 0 else -1 for at in _covering(stretches, offsets)]


def loss_mask(
    origins: Sequence[Span],
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    end_ids: Collection[int],
    fields: Fields,
    *,
    end_tokens: bool,
) -> list[int]:
    """Return 1 for each id of a prompt that a model learns, else 0; `Prompt.loss_mask` describes the choice.

    Args:
        origins: The origins of the prompt's text.
        ids: The ids of the prompt.
        offsets: The (start, end) characters of each id.
        end_ids: The ids that end a turn.
        fields: The fields of messages that count.
        end_tokens: Whether the id that ends a turn counts.

    """
    counted: list[tuple[int, int, int]] = []  # stretches that count, each from one text of a message to the next
    last: tuple[int, int, bool] | None = None  # the message whose text came last, where it ended, whether it counts
    for span in origins:
        number, field = _message_of(span.origin)
        if number < 0:
            if span.origin not in ("template", "engine"):
                last = None
            continue
        if field == "role":
            continue
        counts = fields.counts(number, field)
        start = last[1] if last is not None and last[0] == number and last[2] and counts else span.start
        if counts:
            counted.append((start, span.end, number))
        last = (number, span.end, counts)
    mask = [int(at >= 0) for at in _covering(counted, offsets)]
    texts = message_indices(origins, offsets)
    for i, one in enumerate(mask):
        if one and (i + 1 == len(mask) or not mask[i + 1]):
            _extend(mask, texts, ids, i + 1, end_ids, end_tokens=end_tokens)
    return mask


def _extend(
    mask: list[int], texts: list[int], ids: Sequence[int], at: int, end_ids: Collection[int], *, end_tokens: bool
) -> None:
    """Set the mask for the template's markup from index `at` up to the id that ends the turn.

    Nothing is set if the text of another message, or the end, comes before such an id.

    Args:
        mask: The mask, which is changed.
        texts: For each id the number of the message whose text it covers, or -1.
        ids: The ids.
        at: The index of the first id after a message's text.
        end_ids: The ids that end a turn.
        end_tokens: Whether to set the mask for the id that ends the turn, too.

    """
    end = at
    while end < len(ids) and texts[end] < 0 and ids[end] not in end_ids:
        end += 1
    if end < len(ids) and ids[end] in end_ids:
        mask[at : end + end_tokens] = [1] * (end + end_tokens - at)


def _message_of(origin: str) -> tuple[int, str]:
    """Return the message number and the field of an origin such as `messages[3].content`; (-1, "") for other origins."""
    found = _MESSAGE.match(origin)
    return (int(found[1]), found[2] or "") if found else (-1, "")


def _covering(stretches: Sequence[tuple[int, int, int]], offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each id the index of the first stretch that it overlaps, or -1.

    Args:
        stretches: Ascending (start, end, number) in characters; the number is not used.
        offsets: The (start, end) characters of each id.

    """
    ends = [end for _, end, _ in stretches]
    found = []
    for start, end in offsets:
        at = bisect_right(ends, start)
        found.append(at if start < end and at < len(ends) and stretches[at][0] < end else -1)
    return found
