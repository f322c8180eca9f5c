"""Invariants for any ids, cuts and options: against a plain reading of the rules, one shot, slow.

`EXAMPLES=50000` draws that many examples for each test.
"""

from __future__ import annotations

import anyio
from common_prefix import common_length
from drawn_answers import CUTS, SlowPath, answers, as_deltas, cut, is_stripped, run, style_in
from full_run import EXAMPLES
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from splitting import without_blank_blocks

from tokenweir.encode.decode import DecodeStream
from tokenweir.stream.chat.stages import (
    decode_chat,
    detokenize,
    split_reasoning,
    split_tool_calls,
    stop_at,
    strip_reasoning,
    until_eos,
)
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import SCOPES
from tokenweir.stream.decode.parsers.detection import (
    as_spelled,
    find_splitter,
    read_prompt,
    shown_texts,
    unseparated_style,
)
from tokenweir.stream.decode.stops import control_tokens_in
from tokenweir.stream.events.deltas import Channel, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.events.merge import merge
from tokenweir.templates.styles.reasoning import MESSAGES

ANSWER, REASONING, TOOL_CALL = Channel
# -- the plain reading -------------------------------------------------------------------------------------------------


class Plain:
    """One answer by the rules, each applied to all of the text at once.

    Attributes:
        text: All of the text, markup and what a stop cuts off included.
        ends: Where in it each id ends; one that ends no character ends with the character after it.
        silent: The id that ended the answer and has no text, if there is one.
        pieces: What the text consists of, each as `(piece, begin, end)`.
        told: The same, with white space that is alone between markup as a part of the markup.
        hidden: Spans of control tokens that stops contain and that have no text.
        completed: Where the stop that ends the answer is complete; None if there is none.
        deltas: What goes out, without ids and without the finish.

    """

    def __init__(self, tok, ids, options):
        self.splitter, styles = find_splitter(
            tok, options["prompt_ids"], style_in(options), options["tool_style"], options["tools"]
        )
        self.begun = self.splitter is not None and self.splitter.channel is REASONING
        shown = shown_texts(tok, styles) if options["skip_special_tokens"] else {}
        hidden = control_tokens_in(tok, options["stop"], shown) if options["skip_special_tokens"] else {}
        self.decode(tok, ids, options, shown, hidden)
        self.split()
        self.search(options)

    def decode(self, tok, ids, options, shown, hidden):
        least, most = options["min_tokens"], options["max_tokens"]
        stream = DecodeStream(tok, prompt_ids=options["prompt_ids"], skip_special_tokens=options["skip_special_tokens"])
        eos = {} if options["ignore_eos"] else dict.fromkeys(tok.eos_ids)
        final = eos | {token_id: token_id for token_id in options["stop_token_ids"]}
        self.text, self.ends, self.silent, self.stop_reason, self.hidden = "", [], [], None, []
        self.floor = 0 if least == 0 else float("inf")
        ended, scope = False, SCOPES[options["stop_scope"]]
        probe = None if self.splitter is None else self.splitter.copy()
        for count, token_id in enumerate(ids[:most], 1):
            if count == least:
                self.floor = len(self.text)
            ended = count >= least and token_id in final
            self.stop_reason = final[token_id] if ended else None
            if ended and (self.stop_reason is None or not options["include_stop"]):
                self.silent = [token_id]
                break
            counts = token_id in hidden and (probe.channel if probe else ANSWER) in scope
            text = shown.get(token_id, hidden[token_id] if counts else "")
            piece = stream.flush() + text if text else stream.step(token_id)
            self.text += piece
            if probe:
                probe.feed(piece)
            if counts:
                self.hidden.append((len(self.text) - len(hidden[token_id]), len(self.text)))
            self.ends.append(len(self.text) + (not piece or stream.pending > 0))
            if ended:
                break
        long = most is not None and len(ids) >= most and not ended
        self.reason = FinishReason.LENGTH if long else FinishReason.STOP
        self.text += stream.flush()

    def split(self):
        split = [] if self.splitter is None else self.splitter.feed(self.text) + self.splitter.finish()
        self.after = ANSWER if self.splitter is None else self.splitter.channel
        self.pieces, at = [], 0
        for piece in split:
            self.pieces.append((piece, at, at + len(piece.source)))
            at += len(piece.source)
        if self.splitter is None:
            self.pieces, at = [(Plainly(self.text), 0, len(self.text))], len(self.text)
        assert at == len(self.text)
        told = without_blank_blocks([piece for piece, _, _ in self.pieces], self.begun)
        self.told = [(piece, begin, end) for piece, (_, begin, end) in zip(told, self.pieces, strict=True)]

    def search(self, options):
        """Find the stop that completes first in what stands together on one channel, and cut there."""
        stretches = []  # of text that a stop may stand in
        for piece, begin, end in self.told:
            kind = (piece.channel, piece.malformed)
            if stretches and stretches[-1][0] == kind and piece.channel in SCOPES["all"]:
                begin = stretches.pop()[1]
            stretches.append((kind, begin, end))
        matches = [
            (end, place, stop)
            for (channel, _), begin, stretch_end in stretches
            if channel in SCOPES[options["stop_scope"]]
            for place, stop in enumerate(options["stop"])
            for end in range(begin + len(stop), stretch_end + 1)
            if self.text.endswith(stop, begin, end) and end > self.floor
        ]
        self.completed, upto = None, len(self.text) + 1
        if matches:
            self.completed, _, self.stop_reason = min(matches)
            upto = self.completed - (0 if options["include_stop"] else len(self.stop_reason))
            self.reason = FinishReason.STOP
        self.deltas, whole_call = [], False
        for piece, begin, _ in self.told:
            if self.completed is not None and begin >= self.completed:
                break
            if piece.channel is TOOL_CALL:
                whole_call |= piece.complete
                call = (piece.call, piece.complete, piece.malformed)
                self.deltas.append(ToolCallDelta(piece.name, piece.text, [], 0, *call))
            elif text := self.visible(piece.text[: max(0, upto - begin)], begin):
                if piece.channel is ANSWER:
                    self.deltas.append(TextDelta(text, malformed=piece.malformed))
                elif piece.channel is REASONING and not is_stripped(options):
                    self.deltas.append(ReasoningDelta(text))
        if self.reason is FinishReason.STOP and self.stop_reason is None and whole_call:
            self.reason = FinishReason.TOOL_CALLS
        self.deltas = merge(self.deltas)
        self.upto = min(upto, len(self.text))

    def visible(self, text, begin):
        """Return the text that begins at `begin` without what is hidden."""
        return "".join(
            char for at, char in enumerate(text, begin) if not any(first <= at < last for first, last in self.hidden)
        )

    def reasoning_tokens(self, consumed):
        """Return the number of consumed ids that end in thinking or its tags, or are left where thinking has not ended."""
        total = 0
        for end in (self.ends + [self.upto + 1] * len(self.silent))[:consumed]:
            at = [piece.channel for piece, a, b in self.pieces if a < end <= min(b, self.upto)]
            total += (at[0] if at else self.after) in (REASONING, None)
        return total


class Plainly:
    """A piece where nothing is split."""

    channel, malformed = ANSWER, None

    def __init__(self, text):
        self.source = self.text = text


# -- the invariants ----------------------------------------------------------------------------------------------------


@given(st.data(), CUTS)
def test_any_cutting_gives_what_the_rules_say(make_tok, data, places):
    tok, ids, options = data.draw(answers(make_tok))
    plain = Plain(tok, ids, options)
    decoder = data.draw(st.sampled_from([ChatDecoder, SlowPath]))(tok, **options)
    one_by_one = run(decoder, [[token_id] for token_id in ids])
    consumed = len(ids) - decoder.ignored

    *deltas, finish = one_by_one
    assert [replace(delta, token_ids=[]) for delta in deltas] == plain.deltas
    assert [token_id for delta in one_by_one for token_id in delta.token_ids] == ids[:consumed]
    assert (finish.reason, finish.stop_reason) == (plain.reason, plain.stop_reason)
    if plain.completed is None:
        assert consumed == len(plain.ends) + len(plain.silent)
    else:
        assert sum(end < plain.completed for end in plain.ends) < consumed <= len(plain.ends) + len(plain.silent)
    assert (finish.usage.prompt_tokens, finish.usage.completion_tokens) == (len(options["prompt_ids"]), consumed)
    style = options.style
    kept = (style.unmatched_closer, style.after_closer, style.after_opener) == ("keep", "keep", "keep")
    pairs_alone = kept and not (style.wrappers or style.envelope or style.enders or style.token_enders)
    if style.name not in MESSAGES and pairs_alone and options["tool_style"] is None and plain.completed is None:
        assert finish.usage.reasoning_tokens == plain.reasoning_tokens(consumed)

    for chunks in (cut(ids, places), [ids]):
        decoder.reset(options["prompt_ids"])
        assert run(decoder, chunks) == one_by_one
        assert decoder.ignored == len(ids) - consumed


@given(st.data(), CUTS)
def test_the_stages_composed_give_what_the_fused_one_gives(make_tok, data, places):
    tok, ids, options = data.draw(answers(make_tok))
    strip = is_stripped(options)
    options |= {"min_tokens": 0, "max_tokens": None, "include_stop": False, "ignore_eos": False, "stop_token_ids": ()}
    options["stop"] = [
        stop for stop in options["stop"] if not control_tokens_in(tok, [stop], ())
    ]  # detokenize has no stops
    options["stop_scope"] = "answer" if strip else options["stop_scope"]  # what is stripped before it has no stops
    spoken = {"prompt_ids": options["prompt_ids"], "skip_special_tokens": options["skip_special_tokens"]}
    style, tools = style_in(options) or unseparated_style(tok), options["tool_style"]
    style = None if style is None else as_spelled(tok, style)

    async def source():
        for chunk in cut(ids, places):
            yield chunk

    async def composed():
        stage = detokenize(until_eos(source(), tok.eos_ids), tok, reasoning=style, tool_style=tools, **spoken)
        if style is not None:
            inside = read_prompt(tok, options["prompt_ids"], style).inside
            stage = (strip_reasoning if strip else split_reasoning)(
                stage, style, inside=inside, tool_style=tools, tools=options["tools"]
            )
        elif tools is not None:
            stage = split_tool_calls(stage, tools, tools=options["tools"])
        stage = stop_at(stage, options["stop"], stop_scope=options["stop_scope"])
        return as_deltas([chunk async for chunk in stage])

    async def fused():
        *deltas, finish = [delta async for delta in decode_chat(source(), tok, **options)]
        return merge(deltas), finish.token_ids

    assume(not {style and style.name, tools and tools.name} & set(MESSAGES))  # both in one, and begun by the prompt
    deltas, rest = anyio.run(composed)
    fused_deltas, fused_rest = anyio.run(fused)
    assert deltas == fused_deltas
    # A stop that shows only with the next character, because it was held as the beginning of a tag, ends the composed
    # stages before the ids of that character reach the last of them.
    assert rest == fused_rest[: len(rest)]


@settings(max_examples=-(-EXAMPLES // 3))  # each tries hundreds of continuations
@given(st.data())
def test_nothing_is_held_that_every_continuation_would_send(make_tok, data):
    """After any ids, what has been sent is the longest text with which every continuation begins.

    Nothing is required inside of a character. There is one exception: the stops do not know that the next text is held as
    the beginning of a tag. So the beginning of a stop may wait for it, though neither the tag nor this text would
    complete the stop.
    """
    tok, ids, options = data.draw(answers(make_tok))
    style, stops = options.style, options["stop"]
    options |= {"max_tokens": None, "prompt_ids": [], "skip_special_tokens": True}
    options |= {"stop_token_ids": (), "tool_style": None}  # a call is held until its name is known
    # A stop that ends with another never matches, yet its beginning is held; a header of a message is held as a whole.
    assume(not any(stop != other and stop.endswith(other) for stop in stops for other in stops))
    assume(style.name not in MESSAGES)
    styles = [style, *filter(None, [unseparated_style(tok)])]
    marks = [mark for style in styles for mark in (*style.marks, *style.enders, *style.token_enders)]
    texts = [text.encode() for text in dict.fromkeys((*marks, *stops))]
    endings = [[*text[at:], ord("Z")] for text in texts for at in range(len(text))]
    endings += [
        list(rest) for rest in (b"Z", b"\n", b"{", b"\x9f\x91\xa9", b"\x80\x80\x80", b"\xa0\x80", b"\x80", b"\xb7")
    ]
    late = [tok.token_to_id("<skip>")] * options["min_tokens"]
    decoder, stream, sent = data.draw(st.sampled_from([ChatDecoder, SlowPath]))(tok, **options), DecodeStream(tok), ""
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
        common = outcomes[0][: common_length(outcomes)]
        assert common.startswith(sent)
        if waiting := common[len(sent) + 1 :: 2]:
            text = tok.decode(ids[: fed + 1], skip_special_tokens=False).replace("<skip>", "")  # tags may be special
            assert any(stop.startswith(waiting) and stop != waiting for stop in stops)
            assert any(text.endswith(waiting + mark[:n]) for mark in marks for n in range(1, len(mark)))


def on_channels(deltas):
    """The text, each character behind the letter of its channel."""
    letters = {TextDelta: "A", ReasoningDelta: "R"}
    return "".join(letters[type(delta)] + char for delta in deltas if type(delta) in letters for char in delta.text)
