from __future__ import annotations

from itertools import pairwise

import pytest
from drawn_answers import text_of
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.errors import TextError
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.stops import StopStep, StopStrings
from tokenweir.stream.events.deltas import ReasoningDelta
from tokenweir.stream.events.merge import merge

TEXT = st.text("ab<\n", max_size=30)
STOPS = st.lists(st.text("ab<\n", min_size=1, max_size=4), max_size=4)


def pieces_of(text, cuts):
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


def whole(text, stops, include=False, ignore=0):
    """The definition: the match that completes first, of those the first listed."""
    for end in range(ignore + 1, len(text) + 1):
        for stop in stops:
            if text[:end].endswith(stop):
                return text[: end if include else end - len(stop)], stop
    return text, None


def run(stops, pieces):
    text = "".join(stops.step(piece).text for piece in pieces)
    return text + stops.flush(), stops.matched


@given(TEXT, STOPS, st.lists(st.integers(0, 30)), st.booleans())
def test_every_cutting_gives_the_match_that_completes_first(text, stops, cuts, include):
    assert run(StopStrings(stops, include=include), pieces_of(text, cuts)) == whole(text, stops, include)


@given(TEXT, STOPS, st.lists(st.integers(0, 30)), st.booleans())
def test_the_offset_is_the_place_of_the_match_in_all_text(text, stops, cuts, include):
    matcher = StopStrings(stops, include=include)
    before, matched = whole(text, stops)
    run(matcher, pieces_of(text, cuts))
    assert matcher.offset == (None if matched is None else len(before))
    assert matched is None or text[matcher.offset :].startswith(matched)


@given(TEXT, STOPS)
def test_held_is_the_longest_suffix_that_is_a_proper_prefix_of_a_stop(text, stops):
    matcher, sent = StopStrings(stops), ""
    for place, char in enumerate(text, start=1):
        sent += matcher.step(char).text
        if matcher.matched is not None:
            assert matcher.held == ""
            break
        seen = text[:place]
        longest = max((n for stop in stops for n in range(len(stop)) if seen.endswith(stop[:n])), default=0)
        assert matcher.held == seen[place - longest :]
        assert sent + matcher.held == seen


@given(TEXT, STOPS, st.integers(0, 30))
def test_after_ignored_matches_held_is_still_the_least(text, stops, ignore):
    matcher = StopStrings(stops)
    matcher.step(text, ignore=ignore)
    longest = max((n for stop in stops for n in range(len(stop)) if text.endswith(stop[:n])), default=0)
    assert matcher.matched is not None or len(matcher.held) == longest


@given(TEXT, STOPS, st.integers(0, 30))
def test_ignored_matches_stay_in_the_text_and_may_overlap_the_one_that_counts(text, stops, ignore):
    matcher = StopStrings(stops)
    step = matcher.step(text, ignore=ignore)
    assert (step.text + matcher.flush(), step.matched) == whole(text, stops, ignore=ignore)


def test_text_after_the_stop_is_dropped():
    stops = StopStrings(["END"])
    assert stops.step("aEN") == StopStep("a")
    assert stops.step("Dtail") == StopStep("", "END")
    assert stops.step("more") == StopStep("", "END")
    assert stops.flush() == ""


def test_a_flush_in_the_middle_begins_a_new_text():
    stops = StopStrings(["ab"])
    assert stops.step("a").text == ""
    assert stops.flush() == "a"
    assert stops.step("b") == StopStep("b")


def test_a_single_string_is_one_stop():
    assert run(StopStrings("ab"), ["b", "ab"]) == ("b", "ab")


def test_bad_stops_are_refused():
    with pytest.raises(ValueError, match=r"^stop string 1 of 2 is empty; it would end every text at once$"):
        StopStrings(["a", ""])
    with pytest.raises(TypeError, match="^include='no' is neither True nor False$"):
        StopStrings(["a"], include="no")
    with pytest.raises(TypeError, match=r"^stop string 0 is int 7, not a str$"):
        StopStrings([7])
    with pytest.raises(TextError, match=r"^stop string 1 has a lone surrogate U\+D800 at character 1$"):
        StopStrings(["a", "b\ud800"])


@given(st.text("aéà日旦👩", max_size=20), st.lists(st.text("aéà日旦👩", min_size=1, max_size=3), max_size=3), st.data())
def test_characters_that_share_bytes_are_not_mixed_up(text, stops, data):
    ignore = data.draw(st.integers(0, 20))
    matcher = StopStrings(stops)
    step = matcher.step(text, ignore=ignore)
    longest = max((n for stop in stops for n in range(len(stop)) if text.endswith(stop[:n])), default=0)
    assert step.matched is not None or matcher.held == text[len(text) - longest :]
    assert (step.text + matcher.flush(), step.matched) == whole(text, stops, ignore=ignore)


def test_long_stops_are_matched_in_linear_time():
    matcher = StopStrings(["a" * 100_000 + "b", "b" * 100_000])
    for _ in range(200):
        matcher.step("a" * 99_999 + "c")
    assert matcher.step("a" * 100_001 + "b").matched == "a" * 100_000 + "b"


def test_where_the_stop_is_kept_nothing_is_held_back():
    stops = StopStrings(["<end>", "d>x"], include=True)
    assert [stops.step(text).text for text in ("a<", "en", "d")] == ["a<", "en", "d"]
    assert stops.held == ""
    assert stops.step("> b") == StopStep(">", "<end>")


@pytest.mark.parametrize("include", [False, True])
def test_a_stop_does_not_reach_over_markup(tok, include):
    options = {"reasoning": "gemma4", "stop": ["ox"], "include_stop": include}
    ids = list(b"o<|channel>thought\nhm<channel|>x o")
    for chunks in ([[token_id] for token_id in ids], [ids]):
        decoder = ChatDecoder(tok, **options)
        deltas = merge([delta for chunk in chunks for delta in decoder.feed(chunk)] + decoder.finish())
        assert [delta.text for delta in deltas[:-1]] == ["o", "hm", "x o"]
        assert deltas[-1].stop_reason is None


# -- control tokens in stop strings ------------------------------------------------------------------------------------


def decoded(decoder, ids, size=1):
    deltas = [delta for at in range(0, len(ids), size) for delta in decoder.feed(ids[at : at + size])]
    return merge(deltas + decoder.finish())


@pytest.mark.parametrize("size", [1, 2, 99])
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize(("stop", "rest"), [("<skip>", ""), ("<skip>us", "us"), ("b<skip>", "b"), ("<skip><skip>", "")])
def test_a_control_token_in_a_stop_counts_though_it_gives_no_text(tok, stop, rest, size, include):
    skip = tok.token_to_id("<skip>")
    ids = [*b"ab", skip, *([skip] if stop.count("<") == 2 else []), *b"user"]
    decoder = ChatDecoder(tok, stop=[stop], include_stop=include, reasoning="think")
    *deltas, finish = decoded(decoder, ids, size)
    assert text_of(deltas) == ("ab".removesuffix("b" * (stop[0] == "b")) + rest * include)
    assert (finish.reason, finish.stop_reason) == ("stop", stop)
    assert [i for delta in [*deltas, finish] for i in delta.token_ids] == ids[: len(ids) - decoder.ignored]


def test_a_control_token_that_completes_no_stop_gives_no_text(tok):
    skip = tok.token_to_id("<skip>")
    ids = [*b"a", skip, *b"b", skip, skip, *b"ux"]
    for copied in (False, True):
        decoder = ChatDecoder(tok, stop=["<skip>us"])
        deltas = decoder.feed(ids[:4])
        if copied:
            decoder = ChatDecoder.from_state(tok, decoder.state(), stop=["<skip>us"])
        deltas = merge([*deltas, *decoder.feed(ids[4:]), *decoder.finish()])
        assert text_of(deltas) == "abux"
        assert deltas[0].token_ids == ids
    assert (
        text_of(decoded(ChatDecoder(tok, stop=["<skip>us"]), list(b"<skip>un"))) == "<skip>un"
    )  # spelled by ordinary ids


def test_stops_with_control_tokens_count_on_their_channels(tok):
    skip = tok.token_to_id("<skip>")
    ids = [*b"<think>\na", skip, *b"b</think>c", skip, *b"d"]
    for scope, thinking, answer in (("answer", "\nab", "c"), ("reasoning", "\na", ""), ("all", "\na", "")):
        decoder = ChatDecoder(tok, stop=["<skip>"], stop_scope=scope, reasoning="think")
        deltas = decoded(decoder, ids)
        assert (text_of(deltas, ReasoningDelta), text_of(deltas)) == (thinking, answer)


def test_an_end_token_ends_before_a_stop_that_spells_it(tok):
    eos = min(tok.eos_ids)
    (delta, finish) = decoded(ChatDecoder(tok, stop=["<eos>"]), [97, eos, 98])
    assert (delta.text, finish.stop_reason) == ("a", None)
    (delta, finish) = decoded(ChatDecoder(tok, stop=["<eos>"], ignore_eos=True), [97, eos, 98])
    assert (delta.text, finish.stop_reason) == ("a", "<eos>")


def test_shown_control_tokens_are_text_of_stops_too(tok):
    skip = tok.token_to_id("<skip>")
    decoder = ChatDecoder(tok, stop=["<skip>us"], skip_special_tokens=False)
    assert text_of(decoded(decoder, [97, skip, *b"un", skip, *b"us"])) == "a<skip>un"
