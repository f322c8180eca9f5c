"""Text with marks in it, and what string methods make of it when they are blind to the marks.

A mark stands behind the character that it marks. Whatever cuts a text must leave the mark with its character, and
whatever looks into a text must not see it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tokenweir.templates import limits

MARK = "\ufdd0"  # a noncharacter: Unicode keeps U+FDD0..U+FDEF for such internal use

_ATOM = re.compile(f"[^{MARK}]{MARK}*", re.DOTALL)


def unmarked(value: Any) -> Any:
    """A value without marks: a string, or JSON-like data."""
    if isinstance(value, str):
        return value.replace(MARK, "") if MARK in value else value
    if isinstance(value, list | tuple | dict):
        limits.spend(1 + len(value))
        if isinstance(value, dict):
            return {unmarked(key): unmarked(item) for key, item in value.items()}
        return type(value)(map(unmarked, value))
    return value


def find_marked(mapping: Mapping[Any, Any], key: str) -> str | None:
    """The key of a mapping that is `key` but for marks."""
    limits.spend(1 + len(mapping) // 16)
    key = unmarked(key)
    return next((k for k in mapping if isinstance(k, str) and unmarked(k) == key), None)


def sliced(text: str, place: Any) -> str:
    """`text[place]`, counted without the marks."""
    return "".join(atoms(text)[place])


def atoms(text: str) -> list[str]:
    """The characters of a text, each with its marks."""
    return _ATOM.findall(text)


def recased(text: str, changed: str) -> str:
    """`changed`, which was made of the characters of `text` one by one, with the marks of `text`."""
    letters = atoms(text)
    if len(changed) != len(letters):
        return changed
    return "".join(new + letter[1:] for new, letter in zip(changed, letters, strict=True))


def call_method(name: str, text: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Call a string method as if there were no marks, and give the result its marks again.

    Methods that paste and change character by character work on marked text as they are.
    """
    plain_arguments = tuple(map(unmarked, arguments))
    plain_keywords = {key: unmarked(value) for key, value in keywords.items()}
    if name in _LOOKING:
        return getattr(unmarked(text), name)(*plain_arguments, **plain_keywords)
    if name == "replace" and len(arguments) >= 2 and arguments[0] and MARK in text:
        return str(arguments[1]).join(_cut("split", text, (plain_arguments[0], *plain_arguments[2:]), {}))
    if name in _CUTTING and MARK in text:
        pieces = _cut(name, text, plain_arguments, plain_keywords)
        return pieces if name in _SPLITTING else tuple(pieces) if name in _PARTING else pieces[0]
    if name in _RECASING and MARK in text:
        return recased(text, getattr(unmarked(text), name)())
    return getattr(text, name)(*arguments, **keywords)


def _cut(name: str, text: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[str]:
    """The pieces that a method cuts from a text, with their marks."""
    plain = unmarked(text)
    result = getattr(plain, name)(*arguments, **keywords)
    pieces = [result] if isinstance(result, str) else list(result)
    letters = atoms(text)
    first, gap = _layout(name, plain, pieces, arguments, keywords)
    marked: list[str] = []
    place = first
    for piece in pieces:
        place = gap(place) if marked else place
        marked.append("".join(letters[place : place + len(piece)]))
        place += len(piece)
    return marked


def _layout(
    name: str, plain: str, pieces: list[str], arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[int, Callable[[int], int]]:
    """Where the first piece begins, and where the next one does after one that ends somewhere."""

    def skip_space(place: int) -> int:
        while place < len(plain) and plain[place].isspace():
            place += 1
        return place

    separator = arguments[0] if arguments else keywords.get("sep")
    if name in ("split", "rsplit"):
        if separator is not None:
            return 0, lambda place: place + len(str(separator))
        return (skip_space(0) if name == "split" or not pieces else plain.index(pieces[0])), skip_space
    if name == "splitlines":
        kept = bool((arguments and arguments[0]) or keywords.get("keepends"))
        return 0, lambda place: place if kept else place + 1 + plain.startswith("\r\n", place)
    if name in ("lstrip", "removeprefix"):
        return len(plain) - len(pieces[0]), int
    if name == "strip":
        return len(plain) - len(plain.lstrip(*arguments)), int
    return 0, int


_LOOKING = frozenset({"startswith", "endswith", "find", "rfind", "index", "rindex", "count", "encode"}) | frozenset(
    name for name in dir(str) if name.startswith("is")
)
_SPLITTING = frozenset({"split", "rsplit", "splitlines"})
_PARTING = frozenset({"partition", "rpartition"})
_CUTTING = _SPLITTING | _PARTING | {"strip", "lstrip", "rstrip", "removeprefix", "removesuffix"}
_RECASING = frozenset({"title", "capitalize"})  # of which a mark would change the result
BLIND_METHODS = _LOOKING | _CUTTING | _RECASING | {"replace"}
