from __future__ import annotations

import pytest

from tokenweir.encode._core import AnswerText, Detokenizer, StopStrings
from tokenweir.encode.tokenizer import Tokenizer, core_of


@pytest.fixture
def answer():
    return AnswerText(StopStrings(()))


def test_an_id_goes_with_the_last_character_of_its_text(answer):
    answer.add([7], "Hello")
    assert answer.take("Hell") == []
    assert answer.take("o") == [7]
    assert answer.finish() == []


def test_an_id_without_text_rides_with_the_next_character(answer):
    answer.add([7], "ab")
    answer.add([8], "")
    assert answer.take("ab") == [7]
    answer.add([9], "cde")
    assert answer.take("c") == [8]
    assert answer.take("de") == [9]


def test_what_is_dropped_leaves_its_ids_to_what_comes_next(answer):
    answer.add([7], "ab")
    answer.add([8], "c")
    answer.drop("ab")
    assert answer.send("c") == ("c", [7, 8])


def test_text_may_be_sent_in_parts_one_for_each_place_where_ids_end(answer):
    answer.add([1], "")
    answer.add([2, 3], "abc")
    answer.add([4], "def")
    assert answer.send_in_parts("abcde") == [("a", [1]), ("bc", [2, 3]), ("de", [])]
    assert answer.finish() == [4]


def test_parts_leave_characters_whole():
    tok = Tokenizer.default()
    ids = tok.encode("a𓀀é", add_special_tokens=False)
    assert len(ids) > 3  # some of them are bytes of one character
    detok = Detokenizer(core_of(tok).tokens, [], True, False, StopStrings(()), [], {}, False, 0, None)
    text = "".join(detok.step(token_id) for token_id in ids)
    assert detok.answer.send_in_parts(text) == [("a", ids[:1]), ("𓀀", ids[1:-1]), ("é", ids[-1:])]


def test_more_than_was_added_does_not_come_back(answer):
    answer.add([1], "ab")
    with pytest.raises(RuntimeError, match="^text comes back that was not given$"):
        answer.send("abc")


def test_the_stops_are_those_of_whoever_made_them():
    stops = StopStrings(["cd"])
    answer = AnswerText(stops)
    answer.enter(search=True, drop=False)
    answer.add([1, 2], "abc")
    assert answer.send("abc") == ("ab", [])
    assert (answer.stop_begun, stops.held) == (True, "c")
    answer.add([3], "de")
    assert answer.send("de") == ("", [])
    assert stops.matched == answer.matched == "cd"


def test_held_text_goes_out_where_the_search_ends():
    answer = AnswerText(StopStrings(["cd"]))
    answer.enter(search=True, drop=False)
    answer.add([1], "abc")
    answer.send("abc")
    assert answer.send(None) == ("c", [1])
    assert not answer.stop_begun


def test_ids_whose_own_text_was_emitted_are_told():
    answer = AnswerText(StopStrings(["st"]))
    answer.record()
    for token_id, text in enumerate(["<tag>", "ab", "", "c", "rest"]):
        answer.add([token_id], text)
    answer.drop("<tag>")
    answer.enter(search=True, drop=False)
    assert answer.send("abc") == ("abc", [0, 1, 2, 3])
    assert answer.take_in_text() == [False, True, False, True]
    answer.send("rest")
    assert answer.finish() == [4]
    assert answer.take_in_text() == [False]
    assert answer.take_in_text() == []
