"""An answer as it is shown without Markdown: channels, labels, line ends and the closing line."""

from __future__ import annotations

import io
import re

import pytest
from pseudo_terminal import Terminal

from tokenweir.cli.terminal.answer import ShownAnswer
from tokenweir.cli.terminal.view import PlainView
from tokenweir.stream.events.deltas import Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta, Usage


@pytest.fixture(autouse=True)
def xterm(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def shown(deltas, out=None, think="hide"):
    out = out or io.StringIO()
    view = PlainView(out)
    answer = ShownAnswer(view, think, labelled=think == "show")
    for delta in deltas:
        answer.step(delta)
    view.close()
    return answer, out.getvalue()


THOUGHT = [ReasoningDelta("\nhm", [1]), ReasoningDelta("\n", [2]), TextDelta("\n", [3]), TextDelta("\nyes", [4])]


@pytest.mark.parametrize(
    ("out", "think", "text"),
    [
        (io.StringIO, "hide", "yes\n"),
        (io.StringIO, "show", "[thinking]\nhm\n\n[answer]\nyes\n"),
        (Terminal, "hide", "yes\n"),
        (Terminal, "dim", "\x1b[2mhm\x1b[0m\x1b[2m\n\x1b[0m\nyes\n"),
        (Terminal, "show", "[thinking]\nhm\n\n[answer]\nyes\n"),
    ],
)
def test_thinking(out, think, text):
    answer, written = shown(THOUGHT, out(), think)
    assert (written, answer.text) == (text, "\n\nyes")


def test_channels_never_share_a_line():
    deltas = [
        TextDelta("a"),
        ReasoningDelta("b"),
        ToolCallDelta("clock", ""),
        ToolCallDelta("", "{}"),
        TextDelta("c\n"),
    ]
    assert shown(deltas, think="show")[1] == "a\n\n[thinking]\nb\n\n[tool call]\nclock{}\n\n[answer]\nc\n"


def test_control_characters_on_every_channel():
    deltas = [ReasoningDelta("\x1b["), TextDelta("2J\r"), ToolCallDelta("\x07", "")]
    assert shown(deltas, think="show")[1] == "[thinking]\n␛[\n\n[answer]\n2J␍\n\n[tool call]\n␇\n"


def test_the_closing_line():
    assert shown([])[0].summary() == "0 tokens; Ctrl-C"
    assert re.fullmatch(r"1 tokens; first token \d\.\d\d s; Ctrl-C", shown([TextDelta("a", [1])])[0].summary())
    finish = Finish(FinishReason.STOP, "\x1b", Usage(7, 3, 2), [9])
    summary = shown([ReasoningDelta("a", [1, 2]), finish])[0].summary()
    assert re.fullmatch(
        r"3 tokens, 2 thinking; prompt 7; first token \d\.\d\d s; \d+\.\d tokens/s; stop at '\\x1b'", summary
    )
