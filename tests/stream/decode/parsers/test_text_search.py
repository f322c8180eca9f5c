from __future__ import annotations

import pytest
from case_tables import cases

from tokenweir.stream.decode.parsers.pieces import Piece, markup, plain
from tokenweir.stream.decode.parsers.text_search import mark_at
from tokenweir.stream.events.deltas import Channel

CASES = cases(__file__)


def test_text_and_markup():
    assert plain("a", Channel.ANSWER) == Piece("a", Channel.ANSWER, "a")
    assert markup("<a>") == Piece("<a>", None, "")


@pytest.mark.parametrize(("text", "place", "found"), CASES["a_mark_at_a_place_or_the_beginning_of_one"])
def test_a_mark_at_a_place_or_the_beginning_of_one(text, place, found):
    assert mark_at(text, place, ("<ab>", "<c>")) == tuple(found)
