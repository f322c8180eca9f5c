"""`Saved`: states of splitters and their blocks as plain data, which is not trusted."""

from __future__ import annotations

from copy import copy
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta

from tokenweir.stream.decode.parsers.pieces import TOOL_CALL
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER
from tokenweir.stream.events.deltas import Channel

ShortText = Annotated[str, Meta(max_length=2 * MAX_HEADER)]
"""Bounded text of a saved state: a name, a header, a reason, a prefix of markup. Genuine ones are never longer."""

MAX_COUNT = 1 << 48
"""Bounded number of a saved state: above any real count of calls, ids or characters, and safe to increment."""

Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
CallNumber = Annotated[int, Meta(ge=-1, le=MAX_COUNT)]


class Saved:
    """Mixin with `state`, `restore` and `copy`, driven by a table of the mutable attributes.

    An attribute has either a type that `msgspec` reads and writes, or these three methods itself, as a `JsonValue`,
    a `HeldText` or another `Saved`. A class with more to save extends the methods. A state is not trusted: types bound
    texts and numbers (`ShortText`, `Count`), and `check` raises for inconsistent values.
    """

    SAVED: ClassVar[dict[str, Any]] = {}
    """The mutable attributes, with their types."""

    def state(self) -> Any:
        """Return the values of the attributes that `SAVED` lists, in its order, as plain data."""
        values = (getattr(self, name) for name in self.SAVED)
        return [value.state() if hasattr(value, "state") else msgspec.to_builtins(value) for value in values]

    def restore(self, state: Any) -> None:
        """Set the attributes that `SAVED` lists from the result of `state`, and check them.

        Raises:
            ValueError: The state is invalid (`msgspec.ValidationError` is a subclass); the object is then unusable.

        """
        values = msgspec.convert(state, list[Any])
        if len(values) != len(self.SAVED):
            raise ValueError(f"the state of a {type(self).__name__} has {len(self.SAVED)} parts, not {len(values)}")
        for value, (name, kind) in zip(values, self.SAVED.items(), strict=True):
            if hasattr(kind, "restore"):
                getattr(self, name).restore(value)
            else:
                setattr(self, name, msgspec.convert(value, kind))
        self.check()

    def check(self) -> None:
        """Raise `ValueError` if a restored state violates an invariant that later steps rely on."""

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy(self)
        for name in self.SAVED:
            value = getattr(self, name)
            if hasattr(value, "copy"):
                setattr(other, name, value.copy())
        return other


def check_restored(holds: bool, what: str) -> None:
    """Raise `ValueError` unless `holds`, an invariant of a restored state; `what` says what is wrong, for the message."""
    if not holds:
        raise ValueError(f"no text leads to such a state: {what}")


def check_channel(channel: Channel) -> None:
    """Raise `ValueError` if `channel`, restored for text outside of calls, is the channel of tool calls."""
    check_restored(channel is not TOOL_CALL, "text of a tool call where there is none")
