"""The signs that stand for what a terminal would obey."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.base.visible_text import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text,\ttabs\nand lines", "plain text,\ttabs\nand lines"),
        ("\x1b[31mred", "␛[31mred"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),  # fills the clipboard
        ("\x1b]0;title\x1b\\", "␛]0;title␛\\"),
        ("\x9b31m\x9d52;c;aGk=\x9c", "\\x9b31m\\x9d52;c;aGk=\\x9c"),  # the same in 8-bit form
        ("safe\rEVIL", "safe␍EVIL"),
        ("a\x00b\x08c\x7f", "a␀b␈c␡"),
        ("user\u202etxt.exe\u2066\u200f", "user\\u202etxt.exe\\u2066\\u200f"),
        ("👩\u200d👩\u200d👧 é 漢字", "👩\u200d👩\u200d👧 é 漢字"),  # joiners stay
    ],
)
def test_visible(text, shown):
    assert visible(text) == shown


@given(st.text(), st.text())
def test_nothing_that_acts_gets_through_however_the_text_is_cut(head, tail):
    shown = visible(head) + visible(tail)
    assert shown == visible(head + tail)
    assert not {c for c in shown if unicodedata.category(c) == "Cc"} - {"\n", "\t"}
    overrides = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not {unicodedata.bidirectional(c) for c in shown} & overrides
