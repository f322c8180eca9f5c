"""Values written as nested tags, converted to JSON of the type that the tool's schema declares.

    <KEY>value</KEY>...      the members of an object
    <item>value</item>...    the elements of an array

A mark before each tag distinguishes it from text. A value with tags is an array if the schema does not allow an object,
or if all tags are `item` and the schema does not decide. A repeated key gets a list of its values (as in vLLM 0.33).
Empty text is an empty array or object if the schema requires one. Mismatched tags are one string, markup included, so
no call is ever dropped.
"""

from __future__ import annotations

import re

from msgspec import Struct

from tokenweir.stream.decode.parsers.blocks.coercion import json_of, quoted
from tokenweir.stream.decode.parsers.value_schemas import ValueSchema

ITEM = "item"

MAX_DEPTH = 64
"""Maximum nesting of tags; a deeper value is a string."""

MAX_TAGS = 1 << 14
"""Maximum number of tags; a value with more is a string."""


class _Element(Struct):
    """Content of a tag: its name, and either text or nested elements."""

    name: str = ""
    text: str = ""
    inner: list[_Element] = []


def nested_json(text: str, schema: ValueSchema, mark: str) -> str:
    """Convert a value that is written as nested tags to JSON, or to a JSON string of the text if its tags do not match.

    Args:
        schema: The value's schema, which decides between numbers and strings.
        mark: The mark before each tag.

    """
    found = _parsed(text, mark)
    return quoted(text) if found is None else _json(found, schema)


def _parsed(text: str, mark: str) -> _Element | None:
    """Parse a text of nested tags into a nameless root element.

    Return None if the tags do not match, are too many or nested too deep, or stand beside text.
    """
    place, stack = 0, [_Element()]
    for count, tag in enumerate(re.finditer(re.escape(mark) + "<(?P<closes>/?)(?P<name>[^<>]+)>", text), 1):
        if count > MAX_TAGS or not _add(stack[-1], text[place : tag.start()]):
            return None
        place = tag.end()
        if not tag["closes"]:
            if len(stack) > MAX_DEPTH:
                return None
            stack.append(_Element(tag["name"]))
        else:
            done = stack.pop()
            if not stack or done.name != tag["name"] or stack[-1].text.strip():
                return None
            stack[-1].inner.append(done)
    return stack[0] if len(stack) == 1 and _add(stack[0], text[place:]) else None


def _add(element: _Element, text: str) -> bool:
    """Append text to an element, and return true.

    If the element has nested elements, nothing is appended; return false if the text is more than white space.
    """
    if element.inner:
        return not text.strip()
    element.text += text
    return True


def _json(found: _Element, schema: ValueSchema) -> str:
    types = schema.types
    if not found.inner:
        empty = "" if found.text.strip() else "[]" if "array" in types else "{}" if "object" in types else ""
        return empty or json_of(found.text, types)
    items = all(inner.name == ITEM for inner in found.inner)
    if (items and "object" not in types) or ("array" in types and (items or "object" not in types)):
        return f"[{', '.join(_json(inner, schema.element(index)) for index, inner in enumerate(found.inner))}]"
    values: dict[str, list[str]] = {}
    for inner in found.inner:
        values.setdefault(inner.name, []).append(_json(inner, schema.member(inner.name)))
    members = {key: of[0] if len(of) == 1 else f"[{', '.join(of)}]" for key, of in values.items()}
    return f"{{{', '.join(f'{quoted(key)}: {value}' for key, value in members.items())}}}"
