"""Append-only buffer for held text."""

from __future__ import annotations

import msgspec


class HeldText:
    """Append-only buffer of text, kept as a list of parts, so that appending takes constant time."""

    __slots__ = ("_parts", "length")

    _parts: list[str]
    length: int

    def __init__(self, text: str = "") -> None:
        self.replace(text)

    def __str__(self) -> str:
        return "".join(self._parts)

    def replace(self, text: str) -> None:
        """Replace the content."""
        self._parts, self.length = [text], len(text)

    def add(self, text: str) -> None:
        """Append text."""
        self._parts.append(text)
        self.length += len(text)

    def take(self) -> str:
        """Return the text and clear the buffer."""
        text = "".join(self._parts)
        self._parts, self.length = [], 0
        return text

    def state(self) -> str:
        """Return the text, as plain data for a saved state."""
        return str(self)

    def restore(self, state: object) -> None:
        """Replace the content by a text that `state` returned; raise `ValueError` if it is not a text."""
        self.replace(msgspec.convert(state, str))

    def copy(self) -> HeldText:
        return HeldText(str(self))
