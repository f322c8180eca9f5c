"""Markdown in a terminal: what is drawn, where blocks end, and that no sign goes missing."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tokenweir.cli.terminal.markdown import LightMarkdown, finished

CASES = cases(__file__)


def drawn(text, width=60):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(LightMarkdown(text))
    return console.file.getvalue()


@pytest.mark.parametrize("text", CASES["not_markdown"])
def test_what_is_no_markdown_stays_text(text):
    assert drawn(text).split() == text.split()
    assert drawn(text).count("\n") >= text.count("\n")


def test_escapes():
    assert drawn("\\*stars\\* \\# \\_x\\_ \\\\ \\d").strip() == "*stars* # _x_ \\ \\d"


def test_links_and_images_show_where_they_lead():
    assert drawn("[text](http://a/b) ![picture](http://c/d)").strip() == "text (http://a/b) !picture (http://c/d)"


@given(st.text(st.characters(categories=("L", "N")) | st.sampled_from(" \n.,;:!?()"), max_size=200))
def test_letters_and_digits_all_stay(text):
    assert [sign for sign in drawn(text, 200) if sign.isalpha()] == [sign for sign in text if sign.isalpha()]


TABLE = """\
| what is written | tokens | meaning |
|:----------------|-------:|---------|
| encode | 12 | takes a text and gives the ids of it |
| https://example.org/a/very/long/path/that/has/no/space | 3 | decodes |
"""


def test_a_table_that_has_room_is_one():
    header, rule, first, *_ = (line.rstrip() for line in drawn(TABLE, 120).split("\n") if line.strip())
    assert header.split() == ["what", "is", "written", "tokens", "meaning"]
    assert set(rule.strip()) == {"─"}
    assert first.startswith(" encode ")
    assert first.endswith("    12  takes a text and gives the ids of it")
    assert header.index("tokens") + len("tokens") == first.index("12") + len("12")


@pytest.mark.parametrize("width", [10, 20, 33, 60, 80])
def test_a_table_that_has_little_room_loses_nothing(width):
    signs = sorted(sign for sign in drawn(TABLE, 300) if sign.isalnum() or sign in ":/.")
    shown = drawn(TABLE, width)
    assert all(len(line) <= width for line in shown.split("\n"))
    assert not set(shown) & set("…")
    if any(set(line.strip()) == {"─"} for line in shown.split("\n")):  # a table: every sign once
        assert sorted(sign for sign in shown if sign.isalnum() or sign in ":/.") == signs
    else:
        assert "".join(shown.split()) == (
            "whatiswritten:encodetokens:12meaning:takesatextandgivestheidsofit"
            "whatiswritten:https://example.org/a/very/long/path/that/has/no/spacetokens:3meaning:decodes"
        )


@pytest.mark.parametrize("width", [33, 60, 80])
def test_words_of_a_table_stay_whole(width):
    words = ["takes", "text", "gives", "decodes", "tokens", "meaning"]
    shown = drawn(TABLE, width).split()
    assert [word for word in words if word not in shown and f"{word}:" not in shown] == []


NESTED = "".join(f"{'  ' * level}- item{level} of words\n" for level in range(7))


@pytest.mark.parametrize("width", [4, 8, 12, 20, 40])
@pytest.mark.parametrize(
    "text", [NESTED, "> " * 9 + "quoted words", "```\nx = 'a line of code'\n```\n", TABLE, "# Head\n"]
)
def test_no_width_is_too_small(text, width):
    signs = sorted(sign for sign in drawn(text, 300) if sign.isalnum())
    found = sorted(sign for sign in drawn(text, width) if sign.isalnum())
    assert not Counter(signs) - Counter(found)


@pytest.mark.parametrize(("text", "end"), CASES["finished"])
def test_finished(text, end):
    assert finished(text) == end


PARTS = [*"a\n- c\n1. d\n```\n    e\n> f\n# g\n---\n|h|\n|-|\n  i\n\ti\n".splitlines(keepends=True), "b", "\n"]


@given(st.lists(st.sampled_from(PARTS), max_size=16))
def test_a_finished_block_is_drawn_alike_whatever_follows(parts):
    text = "".join(parts)
    end = 0
    for cut in range(len(text) + 1):
        if now := finished(text[end:cut]):
            head, tail = text[end : end + now], text[end + now :]
            both, apart = drawn(head + tail), drawn(head) + drawn(tail)
            assert [line.split() for line in both.split("\n") if line.strip()] == [
                line.split() for line in apart.split("\n") if line.strip()
            ]
            end += now
