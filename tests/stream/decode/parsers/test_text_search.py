from __future__ import annotations

import pytest

from tokenweir.stream.decode.parsers.pieces import Piece, markup, plain
from tokenweir.stream.decode.parsers.text_search import mark_at
from tokenweir.stream.events.deltas import Channel


def test_text_and_markup():
    assert plain("a", Channel.ANSWER) == Piece("a", Channel.ANSWER, "a")
    assert markup("<a>") == Piece("<a>", None, "")


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("x<ab>", 1, ("<ab>", False)),
        ("x<ab>y", 1, ("<ab>", False)),
        ("x<a", 1, ("", True)),
        ("<", 0, ("", True)),
        ("<c", 0, ("", True)),
        ("<cd", 0, ("", False)),
        ("x", 0, ("", False)),
    ],
)
def test_a_mark_at_a_place_or_the_beginning_of_one(text, place, found):
    assert mark_at(text, place, ("<ab>", "<c>")) == found
