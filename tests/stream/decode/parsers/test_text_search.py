from __future__ import annotations

import pytest
from case_tables import cases

from tokenweir.stream.decode.parsers.text_search import mark_at

CASES = cases(__file__)


@pytest.mark.parametrize(("text", "place", "found"), CASES["a_mark_at_a_place_or_the_beginning_of_one"])
def test_a_mark_at_a_place_or_the_beginning_of_one(text, place, found):
    assert mark_at(text, place, ("<ab>", "<c>")) == tuple(found)
