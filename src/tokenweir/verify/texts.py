"""Texts and conversations of a user's files, read piece by piece with their places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from tokenweir.encode.errors import TextError

BLOCK = 1 << 16
"""Bytes of lines that are compared at once."""
LONGEST_TEXT = 1 << 20
"""Most bytes of a line of a text file; a longer line is split."""
LONGEST_RECORD = 1 << 26
"""Most bytes of a JSON value; a longer one is refused."""


class Conversation(NamedTuple):
    """Messages, and the template's variables, tools included."""

    messages: list[Any]
    variables: dict[str, Any]


class Piece(NamedTuple):
    """Some lines of a file.

    Attributes:
        places: The file and line of each item.
        items: Texts, and conversations.
        size: How many bytes of the file they take.

    """

    places: list[str]
    items: list[str | Conversation]
    size: int


def read_pieces(path: Path) -> Iterator[Piece]:
    """Yield the items of a file.

    A `.jsonl` or `.ndjson` file has a JSON value a line: a list of messages, an object with `messages` and perhaps `tools`, an
    object with `text`, or a string. A `.json` file has one such value. Of any other file each line is a text, and so are all
    lines of a piece together.

    Raises:
        TextError: A line is not UTF-8, or not such a value; the message names the file and the line.

    """
    with open(path, "rb") as file:
        if path.suffix == ".json":
            data = file.read(LONGEST_RECORD + 1)
            yield Piece([str(path)], [_item(data, str(path))], len(data))
            return
        jsonl = path.suffix in (".jsonl", ".ndjson")
        number = 0
        while lines := list(_lines(file, LONGEST_RECORD + 1 if jsonl else LONGEST_TEXT)):
            places = [f"{path}:{number + i}" for i in range(1, len(lines) + 1)]
            number += len(lines)
            size = sum(map(len, lines))
            if jsonl:
                found = [(place, _item(line, place)) for place, line in zip(places, lines, strict=True) if line.strip()]
                yield Piece([place for place, _ in found], [item for _, item in found], size)
            else:
                texts: list[str | Conversation] = [
                    _text(line, place) for place, line in zip(places, lines, strict=True)
                ]
                if len(texts) > 1:
                    places.append(f"{places[0]}-{number}")
                    texts.append("".join(map(str, texts)))
                yield Piece(places, texts, size)


def _lines(file: BinaryIO, longest: int) -> Iterator[bytes]:
    """Yield lines until they have `BLOCK` bytes. Split a line longer than `longest` bytes between two characters."""
    size = 0
    while size < BLOCK and (line := file.readline(longest)):
        if len(line) == longest and not line.endswith(b"\n"):
            while len(line) < longest + 3 and (more := file.peek(1)[:1]) and more[0] & 0xC0 == 0x80:  # type: ignore[attr-defined]
                line += file.read(1)
        size += len(line)
        yield line


def _text(line: bytes, place: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise TextError(f"{place}: byte 0x{line[error.start]:02x} is not UTF-8 ({error.reason})") from error


def _item(data: bytes, place: str) -> str | Conversation:
    if len(data) > LONGEST_RECORD:
        raise TextError(f"{place}: a value of more than {LONGEST_RECORD >> 20} MiB")
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TextError(f"{place}: not JSON: {error}") from error
    match value:
        case str():
            return value
        case list():
            return Conversation(value, {})
        case {"messages": list(messages)}:
            tools = value.get("tools")
            variables = value.get("chat_template_kwargs")
            return Conversation(messages, ({"tools": tools} if tools else {}) | (variables or {}))
        case {"text": str(text)}:
            return text
        case _:
            raise TextError(f"{place}: neither a list of messages, nor an object with messages or text, nor a string")
