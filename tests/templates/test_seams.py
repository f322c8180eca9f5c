"""Seams: where a template's text breaks off inside a control token, and what could complete it."""

from __future__ import annotations

import pytest

from tokenweir.templates.guard import MARK, Guard
from tokenweir.templates.seams import Seams, fold

TOKENS = ["<|im_end|>", "<think>", "</think>", "<s>"]


def test_a_template_that_writes_whole_tokens_has_none():
    seams = Seams(["<think>\n", "user", "a <b> "], TOKENS, known=True)
    assert not seams
    assert not seams.completes("think")


def test_what_may_stand_behind_a_seam():
    seams = Seams(["x\n<"], TOKENS, known=True)
    assert seams.characters == {"|", "/"}
    for text in ("think", "a think", "THINK>", "s", "ｔhink", "thi", " t "):
        assert seams.completes(text), text
    for text in ("thinking", "city", "thx", "", "im_end"):
        assert not seams.completes(text), text


def test_a_seam_within_a_word():
    seams = Seams(["<th"], TOKENS, known=True)
    assert seams.completes("ink")
    assert not seams.completes("think")


def test_punctuation_of_the_template_may_be_the_middle_of_a_token():
    assert Seams(["|"], TOKENS, known=True).completes("im_end")


def test_tokens_that_end_in_a_letter():
    seams = Seams(["<"], ["<EOS"], known=True)
    assert seams.completes("EOSx")


@pytest.mark.parametrize("literal", ["<", "a </", "<|", "<|tool_", "[", "[/IN"])
def test_any_text_may_complete_a_token_that_is_not_known(literal):
    assert Seams([literal], [], known=False).everywhere
    assert not Seams([literal], [], known=True)


@pytest.mark.parametrize("literal", ["a < ", "<b>", "a]", "{", "<a b"])
def test_no_seam_even_so(literal):
    assert not Seams([literal], [], known=False)


def test_fold():
    assert fold("Tｈíｎk") == "think"


# -- what the guard makes of them --------------------------------------------------------------------------------------


def test_the_guard_marks_what_completes_a_token():
    guard = Guard(TOKENS, literals=["<"])
    assert guard.mark("|im_end|") == f"|{MARK}im_end|{MARK}"
    assert guard.mark({"think": "I think so"}) == {f"t{MARK}hink": f"I t{MARK}hink so"}
    assert guard.mark("Bern") == "Bern"
    assert guard.concerns(["Bern", "thi"])
    assert not guard.concerns(["Bern"])


def test_the_guard_marks_every_text_where_the_tokens_are_not_known():
    guard = Guard(["<s>"], literals=["<"], known=False)
    assert guard.mark(" Bern") == f" B{MARK}ern"
    assert guard.mark("<b") == f"<{MARK}{MARK}b"
    assert guard.locate(f"x <{MARK}{MARK}b", "x <b") == (2,)
    assert guard.mark(" ") == " "


def test_the_beginning_of_a_token_that_has_no_telltale_is_marked_at_the_end_of_a_text():
    guard = Guard(["_<EOT>"])
    assert guard.mark("snake_case_ ") == f"snake_case_{MARK} "
    assert guard.concerns(["x_"])
    assert not guard.concerns(["snake_case"])
