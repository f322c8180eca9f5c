from __future__ import annotations

import re
from contextlib import aclosing

import anyio
import numpy as np
import pytest
from case_tables import cases
from drawn_answers import as_deltas

from tokenweir.encode.errors import EngineError, TokenIdError
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.chat.stages import (
    decode_chat,
    detokenize,
    split_reasoning,
    split_tool_calls,
    stop_at,
    until_eos,
)
from tokenweir.stream.decode.chunk import Chunk
from tokenweir.stream.decode.stops import StopStrings
from tokenweir.stream.events.deltas import Channel, Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.events.merge import merge
from tokenweir.stream.events.step import EngineStep

CASES = cases(__file__)

pytestmark = pytest.mark.anyio

ANSWER, REASONING, TOOL_CALL = Channel


class Source:
    """A source that knows whether it has been closed."""

    def __init__(self, items, error=None):
        self.items = list(items)
        self.error = error
        self.closed = 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        await anyio.lowlevel.checkpoint()
        if self.items:
            return self.items.pop(0)
        raise self.error or StopAsyncIteration

    async def aclose(self):
        self.closed += 1


async def collect(stage):
    return [item async for item in stage]


async def failed(stage, error, match):
    """Return the items of a stage that fails, and its error."""
    got = []
    with pytest.raises(error, match=match) as caught:
        async for item in stage:
            got.append(item)
    return got, caught.value


async def test_calls_travel_as_chunks(tok):
    chunks = [
        Chunk([1], '<tool_call>{"name": "f", '),
        Chunk([2], '"arguments": {"a"'),
        Chunk([3], ": 1}}</tool_call>."),
    ]
    assert await collect(split_tool_calls(Source(chunks), "hermes")) == [
        Chunk([1], "", TOOL_CALL, name="f"),
        Chunk([2], '{"a"', TOOL_CALL),
        Chunk([], ": 1}", TOOL_CALL),
        Chunk([], "", ANSWER),
        Chunk([], "", TOOL_CALL, complete=True),
        Chunk([], "", ANSWER),
        Chunk([3], ".", ANSWER),
    ]


@pytest.mark.parametrize("stage", [split_reasoning, split_tool_calls])
async def test_harmony_takes_one_stage(tok, stage):
    text = "<|channel|>analysis<|message|>a<|end|><|start|>assistant to=functions.f<|message|>{}<|call|>"
    assert as_deltas(await collect(stage(Source([Chunk([1], text)]), "harmony")))[0] == [
        ReasoningDelta("a"),
        ToolCallDelta("f", "{}", complete=True),
    ]


def test_end_tokens_that_are_no_ids():
    for wrong, message in ((9, "not one int: write [9]"), ("9", "not str"), (["9"], "eos_ids[0] must be int, not str")):
        with pytest.raises(TypeError, match=re.escape(message)):
            until_eos(Source([[9]]), wrong)


async def test_until_eos_ends_with_the_end_token_and_closes_its_source(tok):
    source = Source([5, [6, 7], np.array([8, 9, 10]), 11])
    assert await collect(until_eos(source, [9])) == [[5], [6, 7], [8], Chunk([9], "")]
    assert source.closed == 1


async def test_detokenize_gives_a_chunk_for_each_id_that_ends_a_character(tok):
    skip = tok.token_to_id("<skip>")
    chunks = await collect(detokenize(Source([[72, skip, 0xC3], 0xA9, EngineStep([skip, 0xF0])]), tok))
    assert chunks == [Chunk([72], "H"), Chunk([skip, 0xC3, 0xA9], "é"), Chunk([skip, 0xF0], "\ufffd")]


async def test_stop_at_keeps_the_text_before_and_the_ids_after(tok):
    stops = StopStrings(["ox"])
    source = Source([Chunk([1], "a b"), Chunk([2], "oxes"), Chunk([3], "never")])
    assert await collect(stop_at(source, stops)) == [Chunk([1], "a b"), Chunk([2], "")]
    assert stops.matched == "ox"
    assert source.closed == 1
    assert source.items == [Chunk([3], "never")]


async def test_stages_that_were_never_read_close_their_source_once(tok):
    source = Source([[72]])
    stage = stop_at(split_reasoning(detokenize(until_eos(source, [0]), tok), "think"), ["x"])
    await stage.aclose()
    await stage.aclose()
    assert source.closed == 1
    assert await collect(stage) == []


async def test_the_source_is_closed_before_the_last_deltas_are_read(tok):
    source = Source([list(b"ab"), list(b"xy"), list(b"cd")])
    async with aclosing(decode_chat(source, tok, stop=["x"])) as deltas:
        async for delta in deltas:
            assert source.closed == isinstance(delta, Finish)
    assert source.items == [list(b"cd")]


async def test_a_source_that_is_only_iterable_is_read_and_closed(tok):
    class Stream:
        closed = False

        async def __aiter__(self):
            yield 72
            yield 73

        async def aclose(self):
            self.closed = True

    stream = Stream()
    assert await collect(detokenize(stream, tok)) == [Chunk([72], "H"), Chunk([73], "I")]
    assert stream.closed


async def test_a_source_is_closed_even_if_its_iterator_fails_to_close(tok):
    class Stream:
        closed = False

        async def __aiter__(self):
            try:
                yield 72
                yield 73
            finally:
                raise OSError("lost")

        async def aclose(self):
            self.closed = True

    stream = Stream()
    with pytest.raises(OSError, match="lost"):
        async with aclosing(detokenize(stream, tok)) as chunks:
            await anext(chunks)
    assert stream.closed


async def test_a_failing_source_loses_nothing_that_was_decoded_before(tok):
    failure = ValueError("out of memory")
    stage = decode_chat(Source([list(b"a<"), [0xF0]], failure), tok, stop=["<x"])
    got, error = await failed(stage, EngineError, "^the engine failed: ValueError: out of memory$")
    assert error.__cause__ is failure
    assert [type(delta) for delta in got] == [TextDelta, TextDelta, Finish]
    assert "".join(delta.text for delta in got[:-1]) == "a<\ufffd"
    assert got[-1].reason is FinishReason.ERROR


async def test_composed_stages_raise_what_the_source_raised_after_what_they_hold(tok):
    failure = ValueError("lost")
    split = split_reasoning(detokenize(Source([list(b"\n<t")], failure), tok), "think")
    got, error = await failed(stop_at(split, ["<tx"]), ValueError, "^lost$")
    assert error is failure
    assert as_deltas(got)[0] == [TextDelta("\n<t", list(b"\n<t"))]


@pytest.mark.parametrize("fused", [True, False])
async def test_an_id_outside_the_vocabulary_loses_nothing_before_it(tok, fused):
    stage = (decode_chat if fused else detokenize)(Source([[72, 73, 304, 74]]), tok)
    got, _ = await failed(stage, TokenIdError, r"^token id 304 is outside the vocabulary \(0 to 303\)$")
    assert "".join(item.text for item in got if not isinstance(item, Finish)) == "HI"


@pytest.mark.parametrize(
    ("item", "named"),
    [("text", "str 'text'"), (1.5, "float 1.5"), (None, "NoneType None"), ([1, None], r"list \[1, None\]")],
)
async def test_what_is_not_ids_is_named(tok, item, named):
    source = Source([[72], item])
    got, _ = await failed(decode_chat(source, tok), EngineError, f"^the engine yielded {named}, not a token id")
    assert got[0] == TextDelta("H", [72])
    assert source.closed == 1


async def test_the_engines_finish_reason_is_that_of_finish(tok):
    assert (await collect(decode_chat(Source([EngineStep([72], finish_reason="length")]), tok)))[-1].reason == "length"
    with pytest.raises(EngineError, match="^the engine gave finish_reason 'abort'; known are stop, length, tool_calls"):
        await collect(decode_chat(Source([EngineStep([72], finish_reason="abort")]), tok))


async def test_a_source_that_fails_while_it_is_closed_is_an_engine_failure_after_the_finish(tok):
    class Stubborn(Source):
        async def aclose(self):
            raise OSError("connection lost")

    stage = decode_chat(Stubborn([[72, tok.token_to_id("<eos>")]]), tok)
    got, _ = await failed(stage, EngineError, "^the engine failed: OSError: connection lost$")
    assert got[-1].reason is FinishReason.STOP


async def test_what_the_reader_throws_in_is_not_the_engines_failure(tok):
    source = Source([[72], [73]])
    deltas = decode_chat(source, tok)
    assert await anext(deltas) == TextDelta("H", [72])
    with pytest.raises(KeyError):
        await deltas.athrow(KeyError("reader"))
    assert source.closed == 1


async def test_stages_refuse_what_is_not_theirs(tok):
    with pytest.raises(TypeError, match="^this stage takes chunks, such as detokenize gives, not int 72$"):
        await collect(split_reasoning(Source([72]), "think"))
    with pytest.raises(TypeError, match="list"):
        await collect(detokenize([72], tok))


def test_options_are_refused_before_anything_is_read(tok):
    with pytest.raises(ValueError, match="stop string 0 of 1 is empty"):
        decode_chat(Source([]), tok, stop=[""])
    with pytest.raises(ValueError, match="unknown reasoning style 'deep'"):
        split_reasoning(Source([]), "deep")
    with pytest.raises(ValueError, match="^stop_scope must be one of answer, reasoning, all, not 'both'$"):
        stop_at(Source([]), ["x"], stop_scope="both")
    with pytest.raises(TypeError, match="^prompt_ids must be a sequence of int, not str$"):
        detokenize(Source([]), tok, prompt_ids="x")


async def test_logprobs_of_engine_steps_go_with_their_ids(make_tok):
    tok = make_tok(AddedToken("<think>"), AddedToken("</think>"))
    opener, closer, end = (tok.token_to_id(token) for token in ("<think>", "</think>", "<eos>"))
    steps = [
        EngineStep([opener, 97], [-1.0, -2.0]),
        EngineStep(np.array([closer, 0xC3]), np.array([-3.0, -4.0])),
        [0xA9],
        EngineStep([98, end, 99], [-5.0, -6.0, -7.0]),
    ]
    deltas = merge(await collect(decode_chat(Source(steps), tok, reasoning="think", alignment=True)))
    assert [(type(d), d.token_ids, d.alignment.logprobs, d.alignment.char_start) for d in deltas] == [
        (ReasoningDelta, [opener, 97], [-1.0, -2.0], 0),
        (TextDelta, [closer, 0xC3, 0xA9, 98], [-3.0, -4.0, None, -5.0], 0),
        (Finish, [end], [-6.0], 2),
    ]
    assert b"".join(deltas[1].alignment.token_bytes) == "</think>éb".encode()


@pytest.mark.parametrize(
    ("options", "items", "reason", "completion", "thinking"), CASES["usage_counts_what_was_consumed"]
)
async def test_usage_counts_what_was_consumed(make_tok, options, items, reason, completion, thinking):
    tok = make_tok(AddedToken("<think>"), AddedToken("</think>"))
    error = OSError("gone") if reason == "error" else None
    source = Source([tok.encode(item) for item in items], error)
    deltas = []
    try:
        async for delta in decode_chat(source, tok, reasoning="think", prompt_ids=[65, 66], **options):
            deltas.append(delta)
    except EngineError:
        assert error is not None
    usage = deltas[-1].usage
    assert deltas[-1].reason == reason
    assert (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens) == (2, completion, thinking)
    assert sum(len(delta.token_ids) for delta in deltas) == completion
