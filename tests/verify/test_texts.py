"""The items of a user's files, with their places."""

from __future__ import annotations

import json
import re

import pytest

from tokenweir.encode.errors import TextError
from tokenweir.verify import texts
from tokenweir.verify.texts import Conversation, read_pieces

MESSAGES = [{"role": "user", "content": "Hi"}]


def read(path):
    return [pair for piece in read_pieces(path) for pair in zip(piece.places, piece.items, strict=True)]


def test_lines_and_all_lines_together(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("é\r\n\nb".encode())
    assert read(path) == [(f"{path}:1", "é\r\n"), (f"{path}:2", "\n"), (f"{path}:3", "b"), (f"{path}:1-3", "é\r\n\nb")]


def test_the_sizes_are_those_of_the_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("abc\n" * 50_000)
    pieces = list(read_pieces(path))
    assert len(pieces) > 1
    assert sum(piece.size for piece in pieces) == path.stat().st_size
    assert pieces[1].places[0] == f"{path}:{len(pieces[0].items)}"


def test_a_long_line_is_taken_in_parts_between_characters(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "LONGEST_TEXT", 5)
    path = tmp_path / "a.txt"
    path.write_text("é🙂ab中" * 9, encoding="utf-8")
    (piece,) = read_pieces(path)
    assert piece.items[-1] == "é🙂ab中" * 9
    assert "".join(piece.items[:-1]) == piece.items[-1]
    assert max(len(text.encode()) for text in piece.items[:-1]) <= 8


def test_json_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    values = [MESSAGES, {"messages": MESSAGES, "tools": [{}], "chat_template_kwargs": {"a": 1}}, {"text": "t"}, "s"]
    path.write_text("\n\n".join(map(json.dumps, values)))
    assert read(path) == [
        (f"{path}:1", Conversation(MESSAGES, {})),
        (f"{path}:3", Conversation(MESSAGES, {"tools": [{}], "a": 1})),
        (f"{path}:5", "t"),
        (f"{path}:7", "s"),
    ]


def test_one_value_of_a_json_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"messages": MESSAGES}, indent=1))
    assert read(path) == [(str(path), Conversation(MESSAGES, {}))]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.txt", b"a\n\xffb", ":2: byte 0xff is not UTF-8 (invalid start byte)"),
        ("a.jsonl", b'"a"\n{', ":2: not JSON: Input data was truncated"),
        ("a.jsonl", b'"a"\n\n5', ":3: neither a list of messages, nor an object with messages or text, nor a string"),
        ("a.json", b"5", ": neither a list of messages, nor an object with messages or text, nor a string"),
    ],
)
def test_errors_name_the_line(tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(TextError, match=re.escape(f"{path}{words}")):
        read(path)
