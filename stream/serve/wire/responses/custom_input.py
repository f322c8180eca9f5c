"""The input of a custom tool, read from the arguments of the function that it was shown as."""

from __future__ import annotations

import json

from tokenweir.stream.serve.wire.shared.tool_names import CUSTOM_INPUT

_OPENING = ("{", f'"{CUSTOM_INPUT}"', ":", '"')
_HEX = frozenset("0123456789abcdefABCDEF")
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
        """Decode a stretch of the JSON string up to its end; hold an escape that is incomplete."""
        out: list[str] = []
        at, self._held = 0, ""
        quote = text.find('"')
        while True:
            if 0 <= quote < at:
                quote = text.find('"', at)
            end = len(text) if quote < 0 else quote
            slash = text.find("\\", at, end)
            if slash < 0:
                out.append(text[at:end])
                self._is_over = quote >= 0
                return "".join(out)
            out.append(text[at:slash])
            length, decoded = _escape(text[slash : slash + 12])
            if length == 0:
                self._held = text[slash:]
                return "".join(out)
            out.append(decoded)
            at = slash + length


def _escape(text: str) -> tuple[int, str]:
    """Decode the escape at the beginning of a text.

    Returns:
        Its length and the character; length 0 if the text ends within it. An invalid escape stays as it is, and half of a
        surrogate pair becomes U+FFFD.

    """
    kind = text[1:2]
    if kind != "u":
        return (0, "") if not kind else (2, _ESCAPES.get(kind, text[:2]))
    if len(text) < 6:
        return 0, ""
    if (unit := _unit(text[:6])) is None:
        return 2, text[:2]
    if not 0xD800 <= unit < 0xE000:
        return 6, chr(unit)
    if unit < 0xDC00 and "\\u".startswith(text[6:8]) and len(text) < 12:
        return 0, ""
    low = _unit(text[6:12]) if unit < 0xDC00 else None
    if low is None or not 0xDC00 <= low < 0xE000:
        return 6, "\ufffd"
    return 12, chr(0x10000 + (unit - 0xD800) * 0x400 + low - 0xDC00)


def _unit(escape: str) -> int | None:
    """Return the code unit of an escape such as `\\u00e9`; None if it is no such escape."""
    digits = escape[2:]
    if not escape.startswith("\\u") or len(digits) != 4 or any(digit not in _HEX for digit in digits):
        return None
    return int(digits, 16)
