"""`tokenweir verify`: its table, its exit code, and its examples."""

from __future__ import annotations

import json
from functools import partial

import pytest
from commands import EMBEDDED
from commands import run as run_command

from tokenweir.verify import run as verification
from tokenweir.verify.prompts import TransformersTemplate

run = partial(run_command, "verify")


def test_the_embedded_model(tmp_path):
    text, chats = tmp_path / "a.txt", tmp_path / "b.jsonl"
    text.write_text("Hello\nnaïve 🙂\n", encoding="utf-8")
    chats.write_text(json.dumps([{"role": "user", "content": "What is <|im_end|>?"}]))
    result = run(EMBEDDED, text, chats, "--strings", 40)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines()[4:9]]
    assert [(row[-3], row[-1]) for row in rows] == [("57", "0"), ("8", "0"), ("45", "0"), ("3", "0"), ("1", "0")]
    assert [row[0][-7:] for row in rows[3:]] == ["0/a.txt", "b.jsonl"]
    assert "tokenweir 0.2.0 beside tokenizers " in result.stdout
    assert "compared: ids, ids of plain text, offsets, decoded and streamed text; renders of the chat" in result.stdout
    assert "prompts a text spells a control token" in result.stdout


def test_json(tmp_path):
    result = run(EMBEDDED, "--strings", 0, "--json")
    found = json.loads(result.stdout)
    assert [(part["name"], part["differences"]) for part in found["parts"]][-1] == ("built-in conversations", 0)
    assert len(found["libraries"]) == 2


def test_a_difference(tmp_path, monkeypatch):
    template = TransformersTemplate.__init__
    monkeypatch.setattr(TransformersTemplate, "__init__", lambda self, source, special: template(self, "x", special))
    result = run(EMBEDDED, "--strings", 0)
    assert result.exit_code == 1
    assert "built-in conversations: render differs (plain)\n" in result.stdout
    assert '  given  {"messages": []}\n' in result.stdout
    assert "  theirs 'x'\n" in result.stdout


def test_an_interrupt_prints_what_was_compared(monkeypatch):
    def interrupted(self, count, seed):
        yield verification.Part("built-in strings", 7)
        raise KeyboardInterrupt

    monkeypatch.setattr(verification.Verification, "built_in", interrupted)
    result = run(EMBEDDED)
    assert result.exit_code == 130
    assert " 7 " in result.stdout


def test_without_any_library(monkeypatch):
    def refuse(*_):
        raise ImportError("no", name="tokenizers")

    monkeypatch.setattr(verification, "reference_of", refuse)
    monkeypatch.setattr(verification, "TransformersTemplate", refuse)
    result = run(EMBEDDED)
    assert result.exit_code == 1
    assert "tokenizers is not installed" in result.stderr
    assert "pip install 'tokenweir[verify]'" in result.stderr


def test_the_small_model(small_model):
    """llama.cpp's own ids of its GGUF file."""
    pytest.importorskip("xllamacpp")
    result = run("local", "--strings", 190)
    assert result.exit_code == 0, result.output
    assert "beside llama.cpp (xllamacpp " in result.stdout
