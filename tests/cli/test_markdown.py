"""Markdown in a terminal: what is drawn, where blocks end, and that no sign goes missing."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tokenweir.cli.markdown import LightMarkdown, finished


def drawn(text, width=60):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(LightMarkdown(text))
    return console.file.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "<div class='x'>inside</div>",
        "a <b>bold</b> <script>x</script>",
        "<!-- hidden -->",
        "&lt;tag&gt; &amp; &#x202e;",
        "\\(x_1\\) and \\[y\\] \\{z\\}",
        "[name]: http://example.org",
        "<http://example.org>",
        "a line\nand another",
    ],
)
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


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("", 0),
        ("one\n", 0),
        ("one\n\ntwo", 0),  # the line is not complete
        ("one\n\ntwo\n", 5),
        ("one\n#", 0),
        ("one\n# two\n", 4),
        ("- a\n\n- b\n", 0),  # one list
        ("- a\n\nb\n", 5),
        ("```\na\n\nb\n", 0),
        ("```\na\n\nb\n```\nc\n", 13),
    ],
)
def test_finished(text, end):
    assert finished(text) == end


@given(
    st.lists(
        st.sampled_from(
            [
                "a\n",
                "b",
                "\n",
                "- c\n",
                "1. d\n",
                "```\n",
                "    e\n",
                "> f\n",
                "# g\n",
                "---\n",
                "|h|\n",
                "|-|\n",
                "  i\n",
                "\ti\n",
            ]
        ),
        max_size=16,
    )
)
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
