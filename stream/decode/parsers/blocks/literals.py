"""Literals of a programming language as JSON: numbers, constants, the escapes and the ends of strings, Python's and JSON's."""

from __future__ import annotations

import re

from tokenweir.stream.decode.parsers.blocks.coercion import Types, escaped, json_as_written, json_of

LONGEST_ESCAPE = 10  # characters
MAX_CONTAINER = 1 << 16
"""Characters of an object or a list that is written as Python's; a longer one is a string."""
MAX_LOOK = 1024
"""Characters behind a quote that are looked at to tell whether it ends its string."""

_CONSTANTS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_PYTHON_NUMBER = re.compile(r"[+-]?\d+(?:_\d+)*")
_NUMBER: frozenset[str] = frozenset({"integer", "number"})
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|[^xuUN0-7])", re.DOTALL)
_OCTAL = "01234567"
_CONTAINERS: Types = frozenset({"object", "array"})
_BRACKETS = {"(": "[", ")": "]"}
_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<mark>[\[\]{}(),:])|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<word>[^\s\[\]{}(),:'"]+)""",
    re.DOTALL,
)
_CLOSING = re.compile(r"[\s)\]}]*")
_CLOSERS = {"a": ")", "(": ")", "[": "]", "{": "}"}
_ARGUMENT = re.compile(r"\s*(?:\)|[^\s\"'<>()\[\]{},:=]+\s*=|(?P<cut>(?:[^\s\"'<>()\[\]{},:=]+\s*)?\Z))")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}


def json_of_word(word: str) -> str | None:
    """Write a number or a constant as JSON; None if the word is neither."""
    if (constant := _CONSTANTS.get(word)) is not None:
        return constant
    value = json_of(word.replace("_", "") if _PYTHON_NUMBER.fullmatch(word) else word, _NUMBER)
    return None if value.startswith('"') else value


def json_of_argument(text: str, types: Types, *, tagged: bool = False) -> str:
    """Write a value as JSON of one of some types, as `json_of` does, or an object or a list that is written as Python's.

    Args:
        text: What the model wrote.
        types: What the schema declares.
        tagged: The value's own tag calls it JSON.

    """
    value = (json_as_written if tagged else json_of)(text, types)
    return (json_of_container(text, types) if value.startswith('"') else None) or value


def json_of_container(text: str, types: Types) -> str | None:
    """Write an object or a list that is written as Python's as JSON; None if it is none, or not of one of the types.

    Some templates write such arguments so, and models learn it from them.
    """
    if types.isdisjoint(_CONTAINERS) or len(text) > MAX_CONTAINER:
        return None
    parts: list[str] = []
    place, comma = 0, -1  # behind what was read; the part that is a comma and has nothing behind it yet
    while (token := _TOKEN.match(text, place)) is not None:
        place, part = token.end(), token[0]
        if token["word"] is not None:
            value = json_of_word(part)
            if value is None:
                return None
            part = value
        elif token["text"] is not None:
            part = '"' + _json_of_text(part[1:-1]) + '"'
        elif token["mark"] is not None:
            part = _BRACKETS.get(part, part)
            if part in "]}" and comma >= 0:
                parts[comma] = ""
        if token["space"] is None:
            comma = len(parts) if part == "," else -1
        parts.append(part)
    value = json_of("".join(parts), types & _CONTAINERS) if place == len(text) else '"'
    return None if value.startswith('"') else value


def _json_of_text(text: str) -> str:
    """Write the inside of a string as that of a JSON string."""
    out: list[str] = []
    place = 0
    for escape in _ESCAPE.finditer(text):
        out += escaped(text[place : escape.start()]), json_of_escape(escape[0])
        place = escape.end()
    return "".join([*out, escaped(text[place:])])


def string_ends(text: str, place: int, stack: str, *, is_key: bool, in_list: bool) -> bool | None:
    """Tell whether a quote ends a string, by what follows it: a model may forget to escape one.

    Args:
        text: What has come.
        place: The place behind the quote.
        stack: The brackets that are open, the arguments' own as `a`.
        is_key: The string is a key.
        in_list: The call stands in a list.

    Returns:
        Whether it does; None if that is not known yet.

    """
    text = text[place : place + MAX_LOOK]
    unknown = None if len(text) < MAX_LOOK else False
    closing = _CLOSING.match(text)
    end = closing.end() if closing else 0
    for char in "".join(text[:end].split()):
        if not stack:
            return in_list and char == "]"
        if is_key or char != _CLOSERS[stack[-1]]:
            return False
        stack = stack[:-1]
    if end == len(text):
        return unknown
    if is_key:
        return text[end] == ":"
    if not stack:
        return text[end] in ",<" if in_list else text[end] not in "'\"\\"
    if text[end] != "," or stack[-1] != "a":
        return text[end] == ","
    argument = _ARGUMENT.match(text, end + 1)
    return argument is not None and (unknown if argument["cut"] is not None else True)


def find_escape(text: str, place: int) -> tuple[str, bool]:
    """Find the escape of a string that begins at `place`, with a backslash.

    Returns:
        The escape, or an empty text if none stands there; and whether more text could make one of it, or another one.

    """
    found = _ESCAPE.match(text, place)
    escape = found[0] if found else ""
    longer = not found or (escape[1] in _OCTAL and found.end() == len(text) and len(escape) < len(r"\777"))
    return escape, longer and len(text) - place < LONGEST_ESCAPE and "\n" not in text[place:]


def json_of_escape(escape: str) -> str:
    """Write what an escape stands for as in a JSON string; an unknown one stands for itself, as in Python."""
    return escaped(_meant(escape))


def _meant(escape: str) -> str:
    kind = escape[1]
    if kind in "xuU":
        code = int(escape[2:], 16)  # noqa: FURB166 - "U" is no prefix to Python
    elif kind in _OCTAL:
        code = int(escape[1:], 8)
    elif kind in "\\'\"":
        return kind
    else:
        return _SIMPLE.get(kind, escape)
    return chr(code) if code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"
