from __future__ import annotations

import pytest
from case_tables import cases

from tokenweir.encode import _core
from tokenweir.encode._core import SkippableText
from tokenweir.encode.tokenizer import core_of
from tokenweir.stream.decode.fast_path import FastPath
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.parsers.tools import ToolParser

CASES = cases(__file__)


@pytest.fixture
def detok(tok):
    return _core.Detokenizer(core_of(tok).tokens, [], True, False, _core.StopStrings([]), [], {}, True, 0, None)


def feed(detok, text):
    """Return the emitted text, the number of ids taken, and the text for the splitter."""
    sent, _, place, given = detok.feed(list(text.encode()), 0)
    return sent, place, given and given[0]


def test_where_something_may_begin_an_id_is_given_with_what_has_passed(detok):
    splitter = ReasoningParser("think")
    path = FastPath(detok)
    path.open(splitter, True)
    assert feed(detok, "a{<b") == ("a{", 3, "a{<")
    assert splitter.feed("a{<") == ReasoningParser("think").feed("a{<")
    assert detok.answer.send("a{<") == ("<", [ord("<")])


def test_arguments_pass_up_to_their_end(detok):
    splitter = ToolParser("hermes")
    splitter.feed('<tool_call>{"name": "f", "arguments": {')
    path = FastPath(detok)
    path.open(splitter, True)
    assert feed(detok, '"a<{": 1}}') == ('"a<{": 1', 9, '"a<{": 1}')
    assert not splitter.skippable.scanner.done  # the core follows a copy
    path.close()


def test_a_call_that_is_held_passes_without_going_out(detok):
    splitter = ToolParser("hermes")
    start = '<tool_call>{"arguments": {'
    splitter.feed(start)
    path = FastPath(detok)
    path.open(splitter, False)
    assert feed(detok, '"a": 1}') == ("", 7, '"a": 1}')
    assert splitter.feed('"a": 1}') == []


def test_text_must_come_back_once(detok):
    detok.feed([65, 66], 0)
    with pytest.raises(RuntimeError, match="not come back"):
        detok.allow_skip(SkippableText("<"))
    detok.answer.drop("A")
    with pytest.raises(RuntimeError, match="not given"):
        detok.answer.take("A")
    detok.allow_skip(SkippableText("<"))
    assert detok.feed([66, 67], 0)[0] == "BC"
    with pytest.raises(RuntimeError, match="not given"):
        detok.allow_skip(None)
    assert detok.unseen() == "BC"
    assert detok.answer.send("BC") == ("", [])
    with pytest.raises(RuntimeError, match="not given"):
        detok.answer.send("C")


def given(detok, text):
    """Return the text for the splitter, and whether it is a removed tag."""
    return detok.feed(list(text.encode()), 0)[3]


TAGS = SkippableText("<[", tags=["</a>", "<b>"], line_tags=["[x]"])


def test_a_tag_that_ids_end_is_cut_out_and_named(detok):
    detok.allow_skip(TAGS)
    assert detok.feed(list(b"some text</a> more"), 0) == ("some text", list(b"some text"), 13, ("</a>", True))
    detok.allow_skip(TAGS)
    assert detok.feed([32], 0) == (" ", [*b"</a>", 32], 1, None)


def test_tags_count_as_thinking_with_what_is_between(detok):
    ids = list(b"ab</a>cde<b>f")
    detok.allow_skip(TAGS)
    place = detok.feed(ids, 0)[2]
    assert detok.answer.thinks
    assert detok.answer.thinking == 4
    detok.allow_skip(TAGS)
    place = detok.feed(ids, place)[2]
    detok.allow_skip(TAGS)
    detok.feed(ids, place)
    assert not detok.answer.thinks
    assert detok.answer.thinking == detok.answer.thought == 10


def test_the_beginning_of_a_tag_waits_in_the_core_until_it_is_none(detok):
    detok.allow_skip(TAGS)
    assert detok.feed(list(b"text</"), 0) == ("text", list(b"text"), 6, None)
    assert given(detok, "b") == ("text</b", False)


def test_what_waits_is_shown_if_it_is_asked_for(detok):
    detok.allow_skip(TAGS)
    detok.feed(list(b"text<"), 0)
    with pytest.raises(RuntimeError, match="text has passed that was not given"):
        detok.state()
    assert detok.unseen() == "text<"
    assert detok.answer.send("text<") == ("<", [ord("<")])


def test_a_tag_that_begins_a_block_is_named_and_comes_back(detok):
    detok.allow_skip(SkippableText("<", openers=["<call>"]))
    assert detok.feed(list(b"text<call>"), 0) == ("text", list(b"text"), 10, ("<call>", True))
    with pytest.raises(RuntimeError, match="not given"):
        detok.answer.send("text<call>")
    assert detok.answer.take("<call>") == list(b"<call>")
    assert detok.answer.thinking == 0


def test_a_tag_that_ends_a_block_is_cut_out_with_what_is_held_before_it(detok):
    ids = list(b"\n \n</call>.")
    detok.feed(ids, 0)  # the first is held by who splits, the others pass
    detok.allow_skip(SkippableText(None, held=True, closers=["</call>"]))
    assert detok.feed(ids, 1) == ("", [], 10, ("</call>", True))
    detok.allow_skip(SkippableText(""))
    assert detok.feed(ids, 10) == (".", ids, 11, None)
    assert detok.answer.thinking == 0


def test_what_a_stop_holds_goes_out_before_the_end_of_a_block(tok):
    detok = _core.Detokenizer(core_of(tok).tokens, [], True, False, _core.StopStrings(["xyz"]), [], {}, True, 0, None)
    detok.answer.enter(True, False)
    detok.allow_skip(SkippableText(""))
    assert detok.feed(list(b"axy"), 0)[:2] == ("a", [97])
    detok.answer.send(detok.unseen())
    detok.allow_skip(SkippableText(None, held=True, closers=["</call>"]))
    assert detok.feed(list(b" </call>z"), 0) == ("xy", list(b"xy"), 8, ("</call>", True))


@pytest.mark.parametrize("text", ["a", "\u00a0", "\u3000", "\x0b"])
def test_where_only_white_space_passes_it_is_that_of_json(detok, text):
    detok.allow_skip(SkippableText(None, held=True, closers=["</call>"]))
    assert given(detok, " \t\r\n") is None
    assert given(detok, text[:1]) is not None


@pytest.mark.parametrize(("before", "bare", "counts"), CASES["a_tag_that_must_be_first_on_its_line"])
def test_a_tag_that_must_be_first_on_its_line(detok, before, bare, counts):
    detok.allow_skip(SkippableText("[", line_tags=["[x]"], bare=bare))
    for char in before:
        assert given(detok, char) is None
    if counts:
        assert given(detok, "[x]") == ("[x]", True)
    else:
        assert given(detok, "[x]") == (before + "[", False)
