"""Renders of the native engine in the form that the oracle has, and what must be true of the origins of any of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja_oracle import CLOCK, Expected

from tokenweir.encode.errors import TemplateError, TextError
from tokenweir.templates._native import Rendering, Template

Span = tuple[int, int, int, int, bool]


@dataclass(frozen=True)
class Piece:
    """A span of a rendering.

    Attributes:
        text: Its text.
        origin: The path of the input that it came from.
        offset: The position of the text in that input.
        changed: Whether it is not an unchanged slice of the input.

    """

    text: str
    origin: str
    offset: int
    changed: bool


def rendered(template: Template, variables: Mapping[str, Any] | bytes) -> Rendering:
    """Render a template by the native engine, with the fixed time of the oracle as the current one."""
    return template.render(variables, now=CLOCK)


def outcome(source: str | Template, variables: Mapping[str, Any] | bytes) -> Expected:
    """Render by the native engine; return the text with its generation blocks, or a documented error as an `Expected`.

    Any exception other than `TemplateError` and `TextError` is raised.
    """
    try:
        template = Template(source) if isinstance(source, str) else source
        result = rendered(template, variables)
    except (TemplateError, TextError) as error:
        line = re.match(r"template, line (\d+): ", str(error))
        return Expected(None, error=str(error), line=int(line[1]) if line else None)
    return Expected(result.text, tuple(generation(result)))


def generation(result: Rendering) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each generation block in characters, as transformers counts them."""
    encoded = result.text.encode()
    for start, end in result.generation:
        first = len(encoded[:start].decode())
        yield first, first + len(encoded[start:end].decode())


def pieces(result: Rendering) -> list[Piece]:
    """Return the rendered text as its spans. Raise an error if the spans leave a gap, overlap, or cut a character."""
    encoded, made, at = result.text.encode(), [], 0
    names: dict[int, str] = {}
    for start, end, origin, offset, changed in result.spans:
        assert start == at < end, (start, at, end)
        at = end
        name = names.get(origin) or names.setdefault(origin, result.origin(origin))
        made.append(Piece(encoded[start:end].decode(), name, offset, changed))
    assert at == len(encoded), (at, len(encoded))
    return made


def _step(key: str) -> str:
    if key.isidentifier():
        return f".{key}"
    return '["' + key.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"]'


def places(variables: Mapping[str, Any]) -> dict[str, str]:
    """Return the text at each path of the input: strings, keys of objects, and an empty text for any other value."""
    found: dict[str, str] = {}

    def visit(path: str, value: Any) -> None:
        if isinstance(value, str):
            found[path] = value
        elif isinstance(value, Mapping):
            found[path] = ""  # the place of a media part
            for key, item in value.items():
                found[f"{path}{_step(key)} (key)"] = key
                visit(path + _step(key), item)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                visit(f"{path}[{index}]", item)
        else:
            found[path] = ""  # numbers have a place too, and a text that is not the input's

    for name, value in variables.items():
        visit(name, value)
    return found


def check_origins(result: Rendering, variables: Mapping[str, Any]) -> None:
    """Check that every unchanged span is a slice of the input it names, and that every origin exists."""
    known = places(variables)
    for piece in pieces(result):
        if piece.origin in ("template", "engine"):
            assert (piece.offset, piece.changed) == (0, False), piece
            continue
        assert piece.origin in known, piece
        if not piece.changed:
            encoded = piece.text.encode()
            assert known[piece.origin].encode()[piece.offset : piece.offset + len(encoded)] == encoded, piece


def as_json(variables: Mapping[str, Any], *, ascii_only: bool = False) -> bytes:
    """Return the variables as JSON, as in the body of a request."""
    return json.dumps(variables, ensure_ascii=ascii_only).encode()
