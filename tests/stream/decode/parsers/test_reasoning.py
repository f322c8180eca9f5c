from __future__ import annotations

import re
from itertools import groupby, product

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenweir.stream.decode.parsers.pieces import markup
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.reasoning import STYLES, ReasoningStyle

CASES = cases(__file__)

ANSWER, REASONING = Channel.ANSWER, Channel.REASONING
SHORT = ReasoningStyle(
    name="short", openers=("<t>", "<u>"), closers=("</t>", "<//t>"), wrappers=("<a>", "\n</a>"), enders=("<c>",)
)
CALL_FOLLOWS = re.compile(r"[ \t\r\n]{0,8}[\[{<]|[\w.\-/]{1,64}(?:\n?<|>\{)")
HOSTILE = st.lists(
    st.sampled_from(["{", "<t>", "</t>", "<u>", "<//t>", "<a>", "\n</a>", "<c>", "<", "/", "t", ">", " ", "\n", "ab"]),
    max_size=14,
)
POLICIES = st.builds(
    lambda opens_at, closer, opener, space: replace(
        SHORT, opens_at=opens_at, unmatched_closer=closer, repeated_opener=opener, after_closer=space
    ),
    st.sampled_from(["line", "start", "anywhere"]),
    st.sampled_from(["keep", "drop"]),
    st.sampled_from(["drop_first", "keep", "drop"]),
    st.sampled_from(["keep", "strip_newlines", "strip"]),
)


def whole(text, style, inside):
    """The definition, with the whole text in sight: pieces, tags on no channel."""
    out, channel, since, place, trim = [], REASONING if inside else ANSWER, 0, 0, ""
    unclosed = False
    while place < len(text):
        before = text[since:place]
        fresh = not before.strip()
        bare = not before[before.rfind("\n") + 1 :].strip()
        opener = next((tag for tag in style.openers if text.startswith(tag, place)), None)
        closer = next((tag for tag in style.closers if text.startswith(tag, place)), None)
        wrapper = next((tag for tag in style.wrappers if text.startswith(tag, place)), None)
        ender = next((tag for tag in style.enders if text.startswith(tag, place)), None)
        then = None
        if text[place] in trim:
            out.append((None, text[place]))
            text = text[:place] + text[place + 1 :]
            continue
        trim = ""
        if channel is ANSWER:
            if opener and {"line": bare, "start": fresh, "anywhere": True}[style.opens_at]:
                then = REASONING
            elif (closer and (unclosed or style.unmatched_closer == "drop")) or wrapper:
                then, unclosed = ANSWER, unclosed and not closer
        elif closer:
            then = ANSWER
        elif ender and (bare or CALL_FOLLOWS.match(text, place + len(ender))):
            channel, since, unclosed = ANSWER, place, True
        elif opener and (style.repeated_opener == "drop" or (style.repeated_opener == "drop_first" and fresh)):
            then = REASONING
        if then is None:
            out.append((channel, text[place]))
            place += 1
        else:
            tag = opener or closer or wrapper
            out.append((None, tag))
            text = text[:place] + text[place + len(tag) :]  # a tag that is cut out leaves its line as it was
            if then is not channel:
                trim = (
                    {"keep": "", "strip_newlines": "\n", "strip": " \n"}[style.after_closer] if then is ANSWER else ""
                )
                channel, since, unclosed = then, place, False
    return merged(out)


def merged(pieces):
    out = []
    for channel, run in groupby(pieces, key=lambda piece: piece[0]):
        run = list(run)
        out.append((channel, "".join(text for _, text in run)))
    return out


def split(parser, pieces):
    out = [piece for text in pieces for piece in parser.feed(text)]
    return merged((piece.channel, piece.source) for piece in out + parser.finish())


@given(HOSTILE, POLICIES, st.booleans())
def test_every_cutting_gives_what_the_whole_text_says(words, style, inside):
    text = "".join(words)
    expected = whole(text, style, inside)
    assert split(ReasoningParser(style, inside=inside), [text]) == expected
    assert split(ReasoningParser(style, inside=inside), words) == expected
    assert split(ReasoningParser(style, inside=inside), list(text)) == expected
    assert "".join(piece for _, piece in expected) == text


@given(HOSTILE, POLICIES)
def test_held_is_what_may_still_become_a_tag_that_counts_there(words, style):
    parser, seen, sent = ReasoningParser(style), "", ""
    for char in "".join(words):
        seen += char
        sent += "".join(piece.source for piece in parser.feed(char))
        assert sent + parser.held == seen
        if parser.held:
            completed = [
                whole(seen + tag[len(parser.held) :], style, False)
                for tag in style.openers + style.closers + style.wrappers + style.enders
                if tag.startswith(parser.held)
            ]
            completed += [
                whole(seen + tag[len(parser.held) :] + call, style, False)
                for tag in style.enders
                for call in ("{", "<", ">{")
                if tag.startswith(parser.held) or parser.held.startswith(tag)
            ]
            now = whole(seen, style, False)[-1][0]
            assert any(pieces[-1][0] is not now for pieces in completed)


def test_an_envelope_is_cut_out_and_a_mention_of_it_stays():
    def text(*parts):
        return "".join(text for channel, text in split(ReasoningParser("think-response"), parts) if channel is ANSWER)

    assert text("<think>a</think>\n<response>b</response>") == "b"
    assert text("Wrap it in <response>ok</response>") == "Wrap it in <response>ok</response>"
    assert (
        text("<response>Wrap it in <response>.</response> And </response>") == "Wrap it in <response>. And </response>"
    )


@pytest.mark.parametrize(("text", "thought", "answer"), CASES["a_label_may_follow_an_opener"])
def test_a_label_may_follow_an_opener(text, thought, answer):
    for parts in ([text], list(text)):
        pieces = split(ReasoningParser("gemma4"), parts)
        assert "".join(piece for _, piece in pieces) == text
        said = {channel: "".join(piece for on, piece in pieces if on is channel) for channel in (REASONING, ANSWER)}
        assert said == {REASONING: thought, ANSWER: answer}


def test_white_space_after_an_opener_is_cut_out_where_the_style_says_so():
    assert split(ReasoningParser("gemma4"), ["<|channel>thought", "\n", "hm<channel|>Hi<channel|>"]) == [
        (None, "<|channel>thought\n"),
        (REASONING, "hm"),
        (None, "<channel|>"),
        (ANSWER, "Hi"),
        (None, "<channel|>"),
    ]


def test_an_opener_counts_first_on_its_line_by_default():
    for text in ["<think>", "\n<think>", "Sure.\n  <think>", "<think>a</think><think>"]:
        assert ReasoningParser("think").feed(text)[-1] == markup("<think>")
    for text in ["Sure. <think>", "the `<think>` tag", "- <think>"]:
        assert ReasoningParser("think").step(text) == [(ANSWER, text)]


def test_white_space_after_the_closer():
    text = "<think>hm</think> \n\n So\n"
    for policy, answer in (("keep", " \n\n So\n"), ("strip_newlines", " \n\n So\n"), ("strip", "So\n")):
        parser = ReasoningParser(replace(STYLES["think"], after_closer=policy))
        assert "".join(piece for channel, piece in parser.step(text) if channel is ANSWER) == answer
    newlines = ReasoningParser(replace(STYLES["think"], after_closer="strip_newlines"))
    assert newlines.step("<think>hm</think>\n") == [(REASONING, "hm")]
    assert newlines.skippable is None
    assert newlines.step("\r\n So\n") == [(ANSWER, " So\n")]


def test_wrappers_of_the_answer_are_cut_out():
    """As vLLM has it for ERNIE 4.5 and Hunyuan A13B, and SGLang for Command A and Kimi K3."""
    for name, text in CASES["wrappers_of_the_answer_are_cut_out"]:
        assert split(ReasoningParser(name), list(text)) == split(ReasoningParser(name), [text])
        assert ReasoningParser(name).step(text) == [(REASONING, "hm"), (ANSWER, "So")]


def test_a_stray_closer_of_minimax_m3_goes():
    assert ReasoningParser("minimax-m3").step("</mm:think>So") == [(ANSWER, "So")]


@pytest.mark.parametrize("style", STYLES.values(), ids=lambda style: style.name)
def test_every_style_splits_its_own_tags_in_every_cutting(style):
    for opener, closer in product(style.openers, style.closers):
        text = f"{opener}hm{closer}So"
        for cut in range(len(text) + 1):
            parser = ReasoningParser(style)
            pieces = merged(parser.step(text[:cut]) + parser.step(text[cut:]) + parser.flush())
            assert pieces == [(REASONING, "hm"), (ANSWER, "So")]
