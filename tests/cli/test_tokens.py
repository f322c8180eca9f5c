"""`tokens`: the same tokens in colours, in lines, as JSON and as a picture."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from xml.etree import ElementTree

import pytest
from chat_program import environment
from commands import run
from pseudo_terminal import PseudoTerminal

from tokenweir.cli.terminal.token_view import GROUNDS, shown
from tokenweir.encode.tokenizer import Tokenizer

TEXT = "Hello, 世界! 👩‍🚀\n<|im_end|>"


tokens = partial(run, "tokens")


def test_a_line_a_token():
    ids = Tokenizer.default().encode(TEXT)
    lines = tokens(TEXT).stdout.splitlines()
    assert [int(line.split("\t")[0]) for line in lines] == ids
    assert lines[0].split("\t")[1:3] == ["0", str(len(Tokenizer.default().decode(ids[:1])))]
    assert lines[-1].split("\t")[3] == "<|im_end|>"
    assert any(line.endswith("\t↵") for line in lines)


def test_json():
    result = json.loads(tokens("--json", "-f", "-", stdin=TEXT).stdout)
    assert result["count"] == len(result["tokens"])
    assert b"".join(bytes(token["bytes"]) for token in result["tokens"]).decode() == TEXT
    assert {(token["start"], token["end"]) for token in result["tokens"]} >= {(len(TEXT) - 10, len(TEXT))}


def test_parts_of_a_character_are_escapes():
    assert shown("世".encode()[:2]) == "\\xe4\\xb8"
    assert shown(b" a\n\t\x1b") == " a↵⇥␛"


@pytest.mark.parametrize("wanted", [True, False])
def test_at_a_terminal_styles_are_shown_where_they_are_wanted(wanted):
    command = (sys.executable, "-m", "tokenweir", "tokens", "Hello, world\nyes \x1b[2J")
    env = environment(COLORTERM="truecolor") if wanted else environment(NO_COLOR="1")
    with PseudoTerminal(*command, env=env) as screen:
        between = screen.expect("characters")
        assert screen.end() == 0
    ids = Tokenizer.default().encode("Hello, world\nyes \x1b[2J")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", between).replace("\r\n", "\n")
    assert plain.startswith("Hello, world↵\nyes ␛[2J\n")
    assert " ".join(map(str, ids)) in plain
    assert ("\x1b[30;48;2;207;232;255mHel" in between, "\x1b[" in between) == (wanted, wanted)


def test_a_picture(tmp_path):
    path = tmp_path / "tokens.svg"
    assert tokens("--svg", str(path), TEXT).exit_code == 0
    picture = path.read_text()
    ElementTree.fromstring(picture)
    assert GROUNDS[0] in picture
    assert not re.search(r"href|@font-face|@import|url\((?!#)", picture)  # nothing is fetched
