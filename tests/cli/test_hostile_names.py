"""Names and words that commands repeat, in which escape sequences hide: a terminal gets them as text."""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path

import pytest
from commands import EMBEDDED, run

CONTROLS = "\x1b]52;c;aGk=\x07\x9b31m\x9d\r\x08\u202e\u2066\u200f\x7f"
"""OSC 52, a CSI of one byte, C0 and C1 controls, and bidirectional ones."""
NAME = f"a{CONTROLS}b"


def controls(text):
    """The characters that a terminal would obey."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\t"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with files of hostile names and content; it is what commands are run in."""
    monkeypatch.chdir(tmp_path)
    Path(NAME).write_text("hello\n")
    Path("plain.txt").write_text("hello\n")
    Path("template").write_text("{{ raise_exception(messages[0].content) }}")
    Path("unknown").write_text("{% " + NAME + " %}")
    Path("messages").write_text(json.dumps([{"role": "user", "content": NAME}]))
    Path("roles").write_text(json.dumps([{"role": NAME, "content": "hi"}]))
    Path("broken").write_text(json.dumps({"version": "1.0", "model": {"type": NAME}}))
    Path("lines.jsonl").write_text(json.dumps({NAME: "text"}) + "\n")
    Path("documents.jsonl").write_text(json.dumps({"messages": [{"role": NAME, "content": 5}]}) + "\n")
    Path(f"{NAME}.jsonl").write_text("{")
    return tmp_path


COMMANDS = {
    "an argument that is a file": ["encode", NAME],
    "a file that is not there": ["encode", "--file", f"{NAME}c"],
    "a file that cannot be read": ["count", "--file", "."],
    "no tokenizer": ["count", "x", "--tokenizer", f"{NAME}c"],
    "a text as tokenizer": ["count", "x", "--tokenizer", NAME],
    "an unknown model": ["inspect", "--tokenizer", "broken"],
    "ids that are none": ["decode", NAME],
    "the shards' folder": ["encode-files", "plain.txt", "-o", f"{NAME}.out", "--workers", "1"],
    "a column": ["encode-files", "lines.jsonl", "-o", "out", "--column", f"{NAME}c", "--workers", "1"],
    "a document's field": ["encode-files", "documents.jsonl", "-o", "out", "--chat", "--workers", "1"],
    "a damaged document": ["encode-files", f"{NAME}.jsonl", "-o", "out", "--workers", "1"],
    "a template's own error": ["render", "messages", "--template", "template"],
    "a template's mistake": ["render", "messages", "--template", "unknown"],
    "a role": ["render", "roles"],
    "messages that are none": ["render", NAME],
    "an engine": ["chat", "--engine", NAME],
    "an engine's address": ["chat", "--engine", f"llama-server:http://{NAME}"],
    "a recording": ["chat", "--engine", f"replay:{NAME}"],
    "a recording of no name": ["chat", "--engine", f"replay:{NAME}c"],
    "a limit": ["serve", "--limit", f"{NAME}=1"],
    "a limit's value": ["serve", "--limit", f"max_items={NAME}"],
    "a host": ["serve", "--host", NAME, "--engine", "none"],
    "a port": ["serve", "--port", NAME],
    "a device": ["encode", "x", "--device", NAME],
    "a wheel": ["fetch-model", NAME],
    "an option": ["count", f"--{NAME}"],
    "a command": [NAME],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_what_a_command_repeats_only_shows(arguments, folder):
    result = run(*arguments)
    assert isinstance(result.exception, (SystemExit, type(None))), result.exception
    assert result.output
    assert not controls(result.output), result.output


def test_tokens_and_inspect_of_a_vocabulary_with_hostile_names(folder):
    shutil.copytree(EMBEDDED, "model")
    path = Path("model/tokenizer.json")
    spec = json.loads(path.read_text())
    spec["added_tokens"].append(spec["added_tokens"][-1] | {"id": 1 << 14, "content": NAME})
    path.write_text(json.dumps(spec))
    for arguments in (["inspect"], ["inspect", "--json"], ["tokens", NAME], ["tokens", "--json", NAME]):
        result = run(*arguments, "--tokenizer", "model")
        assert not controls(result.output.replace("\x7f", "") if "--json" in arguments else result.output)
