"""The signs that stand for what a terminal would obey."""

import unicodedata

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.base.visible_text import visible

CASES = cases(__file__)


@pytest.mark.parametrize(("text", "shown"), CASES["visible"])
def test_visible(text, shown):
    assert visible(text) == shown


@given(st.text(), st.text())
def test_nothing_that_acts_gets_through_however_the_text_is_cut(head, tail):
    shown = visible(head) + visible(tail)
    assert shown == visible(head + tail)
    assert not {c for c in shown if unicodedata.category(c) == "Cc"} - {"\n", "\t"}
    overrides = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not {unicodedata.bidirectional(c) for c in shown} & overrides
