"""Text that is held back, to which more is added at its end."""

from __future__ import annotations

import msgspec


class HeldText:
    """A text in the parts in which it came, so that holding costs the same for each part.

    Attributes:
        length: How many characters it has.

    """

    __slots__ = ("_parts", "length")

    _parts: list[str]
    length: int

    def __init__(self, text: str = "") -> None:
        self.replace(text)

    def __str__(self) -> str:
        return "".join(self._parts)

    def replace(self, text: str) -> None:
        """Hold this text only."""
        self._parts, self.length = [text], len(text)

    def add(self, text: str) -> None:
        """Hold more text."""
        self._parts.append(text)
        self.length += len(text)

    def take(self) -> str:
        """Return the text, and hold nothing."""
        text = "".join(self._parts)
        self._parts, self.length = [], 0
        return text

    def state(self) -> str:
        """Return the text."""
        return str(self)

    def restore(self, state: object) -> None:
        """Hold a text in place of this one."""
        self.replace(msgspec.convert(state, str))

    def copy(self) -> HeldText:
        """Return an independent copy."""
        return HeldText(str(self))
