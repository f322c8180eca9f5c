"""The input of a custom tool, read from the arguments of the function that it was shown as."""

from __future__ import annotations

import json
import re

from tokenweir.stream.serve.wire.shared.tool_names import CUSTOM_INPUT

_OPENING = ("{", f'"{CUSTOM_INPUT}"', ":", '"')
_HIGH, _LOW = r"[dD][89abAB][0-9a-fA-F]{2}", r"[dD][c-fC-F][0-9a-fA-F]{2}"
_PART = re.compile(
    r'(?P<same>[^"\\]+)|(?P<end>")'
    rf"|(?P<cut>\\(?:u(?:.{{0,3}}|{_HIGH}(?:\\(?:u.{{0,3}})?)?))?\Z)"
    rf"|\\u(?P<units>{_HIGH}\\u{_LOW}|[0-9a-fA-F]{{4}})|\\(?P<char>.)",
    re.DOTALL,
)
"""A part of a JSON string: text, its end, an escape that is cut off, one or two UTF-16 code units, another escape."""
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class CustomInput:
    """Incremental reader of the text in `{"input": "..."}`.

    Arguments of another form are read at their end: the field `input`, wherever it stands, or else the whole JSON text, so
    that nothing that the model wrote is lost. The cost is linear in the length of the JSON.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._opening = 0  # tokens of `_OPENING` that were read
        self._matched = 0  # characters of the next one
        self._is_plain = True  # whether the arguments begin as expected so far
        self._is_over = False  # whether the text has ended
        self._held = ""  # an incomplete escape

    def feed(self, piece: str) -> str:
        """Read a piece of JSON text; return the increment of the input."""
        self._pieces.append(piece)
        if self._is_over or not self._is_plain:
            return ""
        at = self._open(piece) if self._opening < len(_OPENING) else 0
        return self._text(self._held + piece[at:]) if self._opening == len(_OPENING) else ""

    def finish(self) -> str:
        """Return the rest of the input, at the end of the arguments."""
        if self._opening == len(_OPENING):
            return ""
        arguments = "".join(self._pieces)
        try:
            given = json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            return arguments
        found = given.get(CUSTOM_INPUT) if isinstance(given, dict) else given
        return found.encode("utf-8", "replace").decode() if isinstance(found, str) else arguments

    def _open(self, piece: str) -> int:
        """Read what stands before the text; return the place behind it."""
        for place, char in enumerate(piece):
            if self._matched == 0 and char in " \t\r\n":
                continue
            expected = _OPENING[self._opening]
            if char != expected[self._matched]:
                self._is_plain = False
                break
            self._matched += 1
            if self._matched == len(expected):
                self._opening, self._matched = self._opening + 1, 0
                if self._opening == len(_OPENING):
                    return place + 1
        return len(piece)

    def _text(self, text: str) -> str:
        """Decode a stretch of the JSON string up to its end; hold an escape that is incomplete.

        An invalid escape stays as it is, and half of a surrogate pair becomes U+FFFD.
        """
        out: list[str] = []
        self._held = ""
        for part in _PART.finditer(text):
            match part.lastgroup:
                case "end":
                    self._is_over = True
                    break
                case "cut":
                    self._held = part[0]
                case "units":
                    out.append(bytes.fromhex(part["units"].replace("\\u", "")).decode("utf-16-be", "replace"))
                case "char":
                    out.append(_ESCAPES.get(part["char"], part[0]))
                case _:
                    out.append(part[0])
        return "".join(out)
