"""What holds for any ids, however they are cut, under any options: against a plain reading of the rules, one shot, slow.

`EXAMPLES=50000 pytest tests/stream/test_invariants.py` draws that many examples for each test instead of a few.
"""

from __future__ import annotations

import os
from itertools import chain, pairwise

import anyio
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.chat_decoder import SCOPES, ChatDecoder
from tokenweir.stream.detection import read_prompt, shown_tokens
from tokenweir.stream.events import Channel, FinishReason, ReasoningDelta, TextDelta, Usage
from tokenweir.stream.merge import merge
from tokenweir.stream.reasoning import ReasoningParser
from tokenweir.stream.stages import decode_chat, detokenize, split_reasoning, stop_at, strip_reasoning, until_eos
from tokenweir.templates.reasoning_styles import STYLES

ANSWER, REASONING = Channel.ANSWER, Channel.REASONING
KIND = {ANSWER: TextDelta, REASONING: ReasoningDelta}
SETTINGS = settings(
    max_examples=int(os.environ.get("EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
WORDS = ["\n", " ", "Hello", " world", "é", "👩‍👩", "日本", "User", ":", "boxes", "x", ".\n"]
STOPS = ["\n\n", "ox", "User:", "x", "\nH", "本", "es é", ".", "👩"]


# -- what is drawn -----------------------------------------------------------------------------------------------------


@st.composite
def answers(draw, make_tok):
    """A tokenizer, the ids of an answer, and options; tags and stops are whole, cut and mixed up, as ids or as bytes."""
    style = draw(st.sampled_from(list(STYLES.values())))
    special = draw(st.sampled_from([None, True, False]))
    tok = make_tok(*(AddedToken(token, special=special) for token in style.tokens if special is not None))
    tags = [*style.openers, *style.closers]
    stops = draw(st.lists(st.sampled_from([*STOPS, tags[0][:2], tags[-1][1:], tags[0] + "x"]), max_size=3))
    texts = [*tags, *tags, *WORDS, *stops, *(tag[:-1] for tag in tags), *(tag[1:] for tag in tags), tags[0][0]]
    spelled = [tok.encode(text) for text in texts] + [list(text.encode()) for text in texts]
    spelled += [[tok.token_to_id("<skip>")], [tok.token_to_id("<eos>")]]
    words = st.sampled_from(spelled) | st.lists(st.integers(0, tok.vocab_size - 1), max_size=3)
    ids = list(chain(*draw(st.lists(words, max_size=14))))
    min_tokens = draw(st.integers(0, 6))
    options = {
        "stop": stops,
        "stop_scope": draw(st.sampled_from(list(SCOPES))),
        "reasoning": draw(st.sampled_from([style, "strip", None])),
        "reasoning_style": style,
        "min_tokens": min_tokens,
        "max_tokens": draw(st.none() | st.integers(min_tokens, 40)),
        "include_stop": draw(st.booleans()),
        "ignore_eos": draw(st.booleans()),
        "stop_token_ids": draw(st.sampled_from([(), (), (65,), (260,)])),
        "skip_special_tokens": draw(st.booleans()),
        "prompt_ids": draw(st.sampled_from([[], [65, 0xF0], list(f"<skip>{tags[0]}".encode()), tok.encode(tags[0])])),
    }
    return tok, style, ids, options


def cut(ids, places):
    places = sorted({0, len(ids), *(place % (len(ids) + 1) for place in places)})
    return [ids[a:b] for a, b in pairwise(places)]


CUTS = st.lists(st.integers(0, 80), max_size=8)


def run(decoder, chunks):
    return merge([delta for chunk in chunks for delta in decoder.feed(chunk)] + decoder.finish())


def style_in(options):
    return None if options["reasoning"] is None else options["reasoning_style"]


# -- the plain reading -------------------------------------------------------------------------------------------------


class Plain:
    """One answer by the rules, each applied to all of the text at once.

    Attributes:
        text: All of the text, tags and what a stop cuts off included.
        ends: Where in it each id ends; one that ends no character ends with the character after it.
        silent: The id that ended the answer and has no text, if there is one.
        pieces: What the text consists of: `(channel, begin, end)`, with channel None for a tag.
        channel: Where the answer ends.
        upto: Where the text ends that goes out.
        completed: Where the stop that ends the answer is complete; None if there is none.

    """

    def __init__(self, tok, ids, options):
        self.decode(tok, ids, options)
        self.split(tok, options)
        self.search(options)

    def decode(self, tok, ids, options):
        least, most = options["min_tokens"], options["max_tokens"]
        shown = shown_tokens(style_in(options), tok) if style_in(options) and options["skip_special_tokens"] else {}
        stream = DecodeStream(tok, prompt_ids=options["prompt_ids"], skip_special_tokens=options["skip_special_tokens"])
        eos = {} if options["ignore_eos"] else dict.fromkeys(tok.eos_ids)
        final = eos | {token_id: token_id for token_id in options["stop_token_ids"]}
        self.text, self.ends, self.silent, self.stop_reason = "", [], [], None
        self.floor = 0 if least == 0 else float("inf")
        ended = False
        for count, token_id in enumerate(ids[:most], 1):
            if count == least:
                self.floor = len(self.text)
            ended = count >= least and token_id in final
            self.stop_reason = final[token_id] if ended else None
            if ended and (self.stop_reason is None or not options["include_stop"]):
                self.silent = [token_id]
                break
            piece = stream.flush() + shown[token_id] if token_id in shown else stream.step(token_id)
            self.text += piece
            self.ends.append(len(self.text) + (not piece or stream.pending > 0))
            if ended:
                break
        long = most is not None and len(ids) >= most and not ended
        self.reason = FinishReason.LENGTH if long else FinishReason.STOP
        self.text += stream.flush()

    def split(self, tok, options):
        pieces, self.channel = [(ANSWER, self.text)], ANSWER
        if (style := style_in(options)) is not None:
            parser = ReasoningParser(style, inside=read_prompt(tok, options["prompt_ids"], style).inside)
            pieces = parser.split(self.text) + parser.flush()
            self.channel = parser.channel
        self.pieces, at = [], 0
        for channel, piece in pieces:
            joined = self.pieces and self.pieces[-1][0] is channel is not None
            begin = self.pieces.pop()[1] if joined else at
            at += len(piece)
            self.pieces.append((channel, begin, at))

    def search(self, options):
        self.upto, self.completed = len(self.text), None
        matches = [
            (end, place, stop, channel)
            for channel, begin, piece_end in self.pieces
            if channel in SCOPES[options["stop_scope"]]
            for place, stop in enumerate(options["stop"])
            for end in range(begin + len(stop), piece_end + 1)
            if self.text.endswith(stop, begin, end) and end > self.floor
        ]
        if matches:
            self.completed, _, self.stop_reason, self.channel = min(matches)
            self.upto = self.completed - (0 if options["include_stop"] else len(self.stop_reason))
            self.reason = FinishReason.STOP

    def texts(self, strip):
        """What goes out: `(channel, text)`, neighbours of one channel joined."""
        out = []
        for channel, begin, end in self.pieces:
            text = self.text[begin : min(end, self.upto)]
            if text and channel is not None and not (strip and channel is REASONING):
                if out and out[-1][0] is channel:
                    out[-1] = (channel, out[-1][1] + text)
                else:
                    out.append((channel, text))
        return out

    def reasoning_tokens(self, consumed):
        """How many of the ids that were consumed end in thinking or in a tag, or after all that goes out of it."""
        total = 0
        for end in (self.ends + [self.upto + 1] * len(self.silent))[:consumed]:
            at = [channel for channel, begin, piece_end in self.pieces if begin < end <= min(piece_end, self.upto)]
            total += (at[0] if at else self.channel) is not ANSWER
        return total


# -- the invariants ----------------------------------------------------------------------------------------------------


@SETTINGS
@given(st.data(), CUTS)
def test_any_cutting_gives_what_the_rules_say(make_tok, data, places):
    tok, _, ids, options = data.draw(answers(make_tok))
    plain = Plain(tok, ids, options)
    decoder = ChatDecoder(tok, **options)
    one_by_one = run(decoder, [[token_id] for token_id in ids])
    consumed = len(ids) - decoder.ignored

    *deltas, finish = one_by_one
    assert [(channel, delta.text) for delta in deltas for channel in KIND if type(delta) is KIND[channel]] == (
        plain.texts(options["reasoning"] == "strip")
    )
    assert [token_id for delta in one_by_one for token_id in delta.token_ids] == ids[:consumed]
    assert (finish.reason, finish.stop_reason) == (plain.reason, plain.stop_reason)
    if plain.completed is None:
        assert consumed == len(plain.ends) + len(plain.silent)
    else:
        assert sum(end < plain.completed for end in plain.ends) < consumed <= len(plain.ends) + len(plain.silent)
    assert finish.usage == Usage(len(options["prompt_ids"]), consumed, plain.reasoning_tokens(consumed))

    for chunks in (cut(ids, places), [ids]):
        decoder.reset(options["prompt_ids"])
        assert run(decoder, chunks) == one_by_one
        assert decoder.ignored == len(ids) - consumed


@SETTINGS
@given(st.data(), CUTS)
def test_the_stages_composed_give_what_the_fused_one_gives(make_tok, data, places):
    tok, style, ids, options = data.draw(answers(make_tok))
    strip = options["reasoning"] == "strip"
    options |= {"min_tokens": 0, "max_tokens": None, "include_stop": False, "ignore_eos": False, "stop_token_ids": ()}
    options["stop_scope"] = "answer" if strip else options["stop_scope"]  # what is stripped before it has no stops
    spoken = {"prompt_ids": options["prompt_ids"], "skip_special_tokens": options["skip_special_tokens"]}
    style = style_in(options)

    async def source():
        for chunk in cut(ids, places):
            yield chunk

    async def composed():
        stage = detokenize(until_eos(source(), tok.eos_ids), tok, style=style, **spoken)
        if style is not None:
            inside = read_prompt(tok, options["prompt_ids"], style).inside
            stage = (strip_reasoning if strip else split_reasoning)(stage, style, inside=inside)
        stage = stop_at(stage, options["stop"], scope=options["stop_scope"])
        deltas, carry = [], []
        async for chunk in stage:
            carry += chunk.ids
            if chunk.text:
                deltas.append(KIND[chunk.channel](chunk.text, carry))
                carry = []
        return merge(deltas), carry

    async def fused():
        *deltas, finish = [delta async for delta in decode_chat(source(), tok, **options)]
        return merge(deltas), finish.token_ids

    deltas, rest = anyio.run(composed)
    fused_deltas, fused_rest = anyio.run(fused)
    assert deltas == fused_deltas
    # A stop that shows only with the next character, because it was held as the beginning of a tag, ends the composed
    # stages before the ids of that character reach the last of them.
    assert rest == fused_rest[: len(rest)]


@SETTINGS
@given(st.data())
def test_nothing_is_held_that_every_continuation_would_send(make_tok, data):
    """After any ids, what has been sent is the longest text with which every continuation begins.

    Where a character has begun nothing is asked, and but for one case: the stops do not know that what comes next is held as the beginning of a tag, so the beginning of
    a stop may wait for it, though neither the tag nor this text would complete the stop.
    """
    tok, style, ids, options = data.draw(answers(make_tok))
    options |= {
        "max_tokens": None,
        "prompt_ids": [],
        "skip_special_tokens": True,
        "include_stop": False,
        "stop_token_ids": (),
    }
    # One that ends with another never matches, yet its beginning is held.
    assume(not any(stop != other and stop.endswith(other) for stop in options["stop"] for other in options["stop"]))
    texts = [text.encode() for text in (*style.openers, *style.closers, *options["stop"])]
    endings = [[*text[at:], ord("Z")] for text in dict.fromkeys(texts) for at in range(len(text))]
    endings += [list(rest) for rest in (b"Z", b"\n", b"\x9f\x91\xa9", b"\x80\x80\x80", b"\xa0\x80", b"\x80", b"\xb7")]
    late = [tok.token_to_id("<skip>")] * options["min_tokens"]
    decoder, stream, sent = ChatDecoder(tok, **options), DecodeStream(tok), ""
    for fed, token_id in enumerate(ids[:10]):
        sent += on_channels(decoder.feed([token_id]))
        stream.step(token_id)
        if decoder.finished:
            return
        if stream.pending:
            continue
        outcomes = []
        for rest in endings + [[*late, *rest] for rest in endings if late]:
            branch = decoder.copy()
            outcomes.append(sent + on_channels(branch.feed(rest) + branch.finish()))
        common = os.path.commonprefix(outcomes)
        assert common.startswith(sent)
        if late_text := common[len(sent) :: 2] and common[len(sent) + 1 :: 2]:
            text = tok.decode(ids[: fed + 1])
            assert any(stop.startswith(late_text) and stop != late_text for stop in options["stop"])
            assert any(
                text.endswith(late_text + tag[:n]) for tag in style.openers + style.closers for n in range(1, len(tag))
            )


def on_channels(deltas):
    """The text, each character behind the letter of its channel."""
    letters = {TextDelta: "A", ReasoningDelta: "R"}
    return "".join(letters[type(delta)] + char for delta in deltas if type(delta) in letters for char in delta.text)
