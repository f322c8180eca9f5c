"""One JSON value, checked as its text comes.

The grammar is that of RFC 8259 and nothing more: no NaN, no comments, no control characters in strings. So a value
that is done is one that any JSON parser reads. Nothing of the text is kept; memory is one character a level.
"""

from __future__ import annotations

import re

MAX_DEPTH = 128  # levels of objects and arrays; Python's own parser fails at about a thousand

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'[^"\\\x00-\x1f]*')
_HEX = "0123456789abcdefABCDEF"
_DIGITS = "0123456789"

# Inside escapes, words and numbers: from each state, the next one by the character that comes; "end" is the end of the
# value. Words are named by what has been read of them, numbers by what was read last.
_NEXT: dict[str, dict[str, str]] = {
    "\\": dict.fromkeys('"\\/bfnrt', "string") | {"u": "\\u"},
    "\\u": dict.fromkeys(_HEX, "\\u1"),
    "\\u1": dict.fromkeys(_HEX, "\\u2"),
    "\\u2": dict.fromkeys(_HEX, "\\u3"),
    "\\u3": dict.fromkeys(_HEX, "string"),
    "-": {"0": "zero"} | dict.fromkeys(_DIGITS[1:], "integer"),
    "zero": {".": "point", "e": "e", "E": "e"},
    "integer": dict.fromkeys(_DIGITS, "integer") | {".": "point", "e": "e", "E": "e"},
    "point": dict.fromkeys(_DIGITS, "fraction"),
    "fraction": dict.fromkeys(_DIGITS, "fraction") | {"e": "e", "E": "e"},
    "e": dict.fromkeys(_DIGITS, "exponent") | {"+": "e+", "-": "e+"},
    "e+": dict.fromkeys(_DIGITS, "exponent"),
    "exponent": dict.fromkeys(_DIGITS, "exponent"),
}
_NEXT |= {
    word[:length]: {word[length]: word[: length + 1] if length + 1 < len(word) else "end"}
    for word in ("true", "false", "null")
    for length in range(1, len(word))
}
_NUMBERS = frozenset({"zero", "integer", "fraction", "exponent"})  # states in which a number may end

# What begins a value, and the state after it.
_BEGIN = {'"': "string", "{": "key or }", "[": "value or ]", "-": "-", "0": "zero", "t": "t", "f": "f", "n": "n"}
_BEGIN |= dict.fromkeys(_DIGITS[1:], "integer")
BEGINNINGS = frozenset(_BEGIN)
"""The characters that a value can begin with."""


class JsonValue:
    """Follows the text of one JSON value.

    Attributes:
        done: The value is whole. A number is only once a character has come that is none of it, or `finish`.
        error: Why the text is not JSON; None while it may be.

    """

    __slots__ = ("_key", "_open", "_state", "done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: str | None = None
        self._state = "value"
        self._open = ""  # the objects and arrays that are open, each by its closing bracket
        self._key = False  # the string that is being read is a key

    def feed(self, text: str, start: int = 0) -> int:
        """Take text from `start` on, until the value is done or wrong.

        Returns:
            The place after the last character that belongs to the value.

        """
        place, length = start, len(text)
        while place < length and not self.done and self.error is None:
            state = self._state
            if state == "string":
                place = _STRING.match(text, place).end()  # type: ignore[union-attr]
                if place < length:
                    place += self._in_string(text[place])
            elif state in _NEXT:
                then = _NEXT[state].get(text[place])
                if then is not None:
                    place += 1
                    self._state = then
                    if then == "end":
                        self._end()
                elif state in _NUMBERS:
                    self._end()
                else:
                    self._fail(text[place])
            else:
                place = _SPACE.match(text, place).end()  # type: ignore[union-attr]
                if place < length:
                    place += self._between(text[place])
        return place

    def finish(self) -> None:
        """Take the end of the text, which ends a number and leaves anything else unfinished."""
        if self._state in _NUMBERS and not self._open:
            self.done = True
        elif not self.done and self.error is None:
            self.error = "the JSON is not closed"

    def _in_string(self, char: str) -> int:
        """Take a character that is no ordinary one of a string; say how many were taken."""
        if char == '"':
            if self._key:
                self._state = ":"
            else:
                self._end()
        elif char == "\\":
            self._state = "\\"
        else:
            return self._fail(char)
        return 1

    def _between(self, char: str) -> int:
        """Take a character between strings, numbers and words; say how many were taken."""
        state = self._state
        if char in "}]" and self._open[-1:] == char and state in (", or end", f"key or {char}", f"value or {char}"):
            self._open = self._open[:-1]
            self._end()
        elif state in ("key", "key or }") and char == '"':
            self._state, self._key = "string", True
        elif state == ":" and char == ":":
            self._state = "value"
        elif state == ", or end" and char == ",":
            self._state = "key" if self._open[-1] == "}" else "value"
        elif state in ("value", "value or ]") and char in _BEGIN:
            if char in "{[":
                if len(self._open) == MAX_DEPTH:
                    self.error = f"the JSON is nested more than {MAX_DEPTH} levels deep"
                    return 0
                self._open += "}" if char == "{" else "]"
            self._state, self._key = _BEGIN[char], False
        else:
            return self._fail(char)
        return 1

    def _end(self) -> None:
        self._state = ", or end"
        self.done = not self._open

    def _fail(self, char: str) -> int:
        where = "a string" if self._state == "string" else "a JSON escape" if self._state[0] == "\\" else "the JSON"
        self.error = f"{char!r} cannot stand here in {where}"
        return 0
