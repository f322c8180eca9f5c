"""Literals of a programming language as JSON: numbers, constants, the escapes and the ends of strings, Python's and JSON's."""

from __future__ import annotations

import json
import re

from tokenweir.stream.decode.parsers.blocks.coercion import Types, escaped, json_as_written, json_of

LONGEST_ESCAPE = 10  # characters
SET = "s"
"""An open set in Python's syntax, on the stack of open brackets."""
MAX_CONTAINER = 1 << 16
"""Most characters of an object or a list in Python's syntax; longer text is a string."""
MAX_LOOK = 1024
"""Lookahead in characters behind a quote, to decide whether it ends its string."""

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
_CLOSERS = {"a": ")", "(": ")", "[": "]", "{": "}", SET: "}"}
_ARGUMENT = re.compile(r"\s*(?:\)|[^\s\"'<>()\[\]{},:=]+\s*=|(?P<cut>(?:[^\s\"'<>()\[\]{},:=]+\s*)?\Z))")
_ELEMENT = re.compile(
    r"""\{\s*(?:(?P<element>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s\[\]{}(),:'"]+)\s*)?"""
    r"""(?:(?P<after>[,:}(\[{])|(?P<cut>(?:'(?:[^'\\]|\\.)*\\?|"(?:[^"\\]|\\.)*\\?)?\Z))""",
    re.DOTALL,
)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}


def json_of_word(word: str) -> str | None:
    """Return a number or a constant of Python or JSON as JSON (`true` for `True`); None for any other word."""
    if (constant := _CONSTANTS.get(word)) is not None:
        return constant
    value = json_of(word.replace("_", "") if _PYTHON_NUMBER.fullmatch(word) else word, _NUMBER)
    return None if value.startswith('"') else value


def json_of_argument(text: str, types: Types, *, tagged: bool = False) -> str:
    """Convert an argument that a model wrote as text to JSON of an allowed type; containers may be in Python's syntax.

    Args:
        text: The argument as the model wrote it.
        types: The allowed JSON types; empty if none are declared.
        tagged: The model has marked the argument as JSON.

    """
    value = (json_as_written if tagged else json_of)(text, types)
    return (json_of_container(text, types) if value.startswith('"') else None) or value


def json_of_container(text: str, types: Types) -> str | None:
    """Return an object or a list in Python's syntax as JSON; None if the text is neither, or not of a type in `types`.

    Some templates write arguments in this form, and models learn it from them.
    """
    if types.isdisjoint(_CONTAINERS) or len(text) > MAX_CONTAINER:
        return None
    parts: list[str] = []
    place, comma = 0, -1  # the place reached; the index of a trailing comma among the parts
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
    """Convert the inside of a Python or JSON string literal, escapes included, to the inside of a JSON string."""
    out: list[str] = []
    place = 0
    for escape in _ESCAPE.finditer(text):
        out += escaped(text[place : escape.start()]), json_of_escape(escape[0])
        place = escape.end()
    return "".join([*out, escaped(text[place:])])


def text_of_literal(literal: str) -> str:
    """Return the text that a string literal of JSON or Python, quotes included, stands for."""
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return str(json.loads(f'"{_json_of_text(literal[1:-1])}"'))


def string_ends(text: str, place: int, stack: str, *, is_key: bool, in_list: bool, closes: str = "") -> bool | None:
    """Decide by lookahead whether a quote ends a string: models forget to escape quotes, so the text behind it decides.

    Args:
        text: The text with the quote and what has come behind it.
        place: The index behind the quote.
        stack: The brackets that are open, the outermost first; `a` stands for the bracket of the arguments.
        is_key: The string is a key of an object.
        in_list: The call is in a list of calls.
        closes: The text that ends the block, if any. A string ends before it even if the brackets between do not match.

    Returns:
        Whether the quote ends the string; None if more text is needed.

    """
    text = text[place : place + MAX_LOOK]
    unknown = None if len(text) < MAX_LOOK else False
    closing = _CLOSING.match(text)
    end = closing.end() if closing else 0
    if closes and text.startswith(closes, end):
        return True
    if closes and closes.startswith(text[end:]):
        return unknown
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


def begins_set(text: str, place: int) -> bool | None:
    """Decide by lookahead whether the `{` at `place` begins a set rather than a dictionary of Python.

    Return None if more text is needed.
    """
    text = text[place : place + MAX_LOOK]
    found = _ELEMENT.match(text)
    if found is None:
        return False
    if found["cut"] is not None:
        return None if len(text) < MAX_LOOK else False
    return found["after"] != ":" and (found["element"] is not None or found["after"] != "}")


def find_escape(text: str, place: int) -> tuple[str, bool]:
    """Find the escape sequence at `place`, which is a backslash.

    Return the escape, or an empty text; and whether more text could complete or change it.
    """
    found = _ESCAPE.match(text, place)
    escape = found[0] if found else ""
    longer = not found or (escape[1] in _OCTAL and found.end() == len(text) and len(escape) < len(r"\777"))
    return escape, longer and len(text) - place < LONGEST_ESCAPE and "\n" not in text[place:]


def json_of_escape(escape: str) -> str:
    """Return the character that an escape sequence stands for, escaped as in a JSON string.

    An unknown escape sequence stands for itself, as in Python.
    """
    return escaped(_unescape(escape))


def _unescape(escape: str) -> str:
    kind = escape[1]
    if kind in "xuU":
        code = int(escape[2:], 16)  # noqa: FURB166 - "U" is not a prefix in Python
    elif kind in _OCTAL:
        code = int(escape[1:], 8)
    elif kind in "\\'\"":
        return kind
    else:
        return _SIMPLE.get(kind, escape)
    return chr(code) if code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"
