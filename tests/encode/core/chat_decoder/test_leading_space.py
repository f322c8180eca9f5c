"""White space at the start of a block of text: held, sent with what follows, or removed with the markup around it."""

from __future__ import annotations

import pytest

from tokenweir.encode._core import AnswerText, StopStrings


@pytest.fixture
def answer():
    return AnswerText(StopStrings(()), trims=True)


def add(answer, *texts):
    for number, text in enumerate(texts, 1):
        answer.add([number], text)


def test_white_space_waits_for_another_character(answer):
    add(answer, "\n", "  x", " ")
    assert answer.send("\n") == ("", [])
    assert answer.send("  x") == ("\n  x", [1, 2])
    assert answer.send(" ") == (" ", [3])


@pytest.mark.parametrize("space", [" ", "\t\r\n", "\v\f", "\u00a0\u2003\u3000", "\u2028\u0085"])
def test_white_space_between_markup_is_removed(answer, space):
    add(answer, "<a>", space, "<b>", "x")
    answer.drop("<a>")
    assert answer.send(space) == ("", [])
    assert answer.take("<b>") == [1, 2, 3]
    assert answer.send("x") == ("x", [4])


@pytest.mark.parametrize(("before", "kept"), [("", " "), ("<a>", "")])
def test_an_answer_of_white_space_is_kept_without_markup(answer, before, kept):
    add(answer, before, " ")
    if before:
        answer.drop(before)
    assert answer.send(" ") == ("", [])
    assert answer.end_block(False) is bool(kept)
    assert answer.send("")[0] == kept


def test_a_call_keeps_its_white_space(answer):
    add(answer, " ")
    answer.enter(False, False, call=True)
    assert answer.send(" ") == (" ", [1])


def test_stops_see_white_space_when_it_is_sent():
    answer = AnswerText(StopStrings(["\n\n"]), trims=True)
    answer.enter(True, False)
    add(answer, "\n\n", "<a>", "\n\n", "x")
    answer.send("\n\n")
    answer.drop("<a>")
    assert answer.matched is None
    answer.send("\n\n")
    assert answer.send("x") == ("", [])
    assert answer.matched == "\n\n"


def test_ids_of_removed_white_space_count_where_it_stood(answer):
    add(answer, "\n", "<think>", "hm")
    answer.send("\n")
    answer.think(True)
    answer.drop("<think>")
    answer.send("hm")
    assert answer.thinking == 2


def test_without_the_option_nothing_is_held():
    answer = AnswerText(StopStrings(()))
    add(answer, "\n")
    assert answer.send("\n") == ("\n", [1])
