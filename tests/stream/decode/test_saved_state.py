from __future__ import annotations

from copy import copy

import msgspec
import pytest
from case_tables import cases
from drawn_answers import CUTS, answers, cut
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenweir.encode.errors import StateError, TokenIdError
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.saved_state import DIGEST, MAGIC, read_state, write_state
from tokenweir.stream.events.deltas import Delta

CASES = cases(__file__)

SHORT = {"stop": ["ox"], "reasoning": "think", "tool_style": "hermes"}
CALL = '<think>hm</think>So <tool_call>{"name": "f", "arguments": {"a": [1, '


def saved(tok, text, **options):
    decoder = ChatDecoder(tok, **options)
    decoder.feed(list(text.encode()))
    return decoder.state()


@given(st.data(), CUTS)
def test_saving_restoring_and_copying_at_every_cut_changes_nothing(make_tok, data, places):
    """A copy does not change with its original either."""
    tok, ids, options = data.draw(answers(make_tok))
    other = data.draw(st.sampled_from([b"", b"<think>x", b'"}]{,']))
    options |= {
        "alignment": data.draw(st.booleans()),
        "thinking_budget": data.draw(st.sampled_from([None, None, 3])),
        "byte_fallback": data.draw(st.sampled_from(["eager", "huggingface"])),
    }
    logprobs = data.draw(st.booleans())
    decoder, restored = ChatDecoder(tok, **options), ChatDecoder(tok, **options)
    del options["prompt_ids"]
    for chunk in cut(ids, places):
        values = [-0.5 * token_id for token_id in chunk] if logprobs else None
        restored = ChatDecoder.from_state(tok, restored.state(), **options)
        copied, decoder = decoder, decoder.copy()
        copied.feed(list(other))
        assert restored.feed(chunk, values) == decoder.feed(chunk, values)
        assert restored.state() == decoder.state()
        assert (restored.finished, restored.channel) == (decoder.finished, decoder.channel)
        assert restored.thinking_spent == decoder.thinking_spent
    restored = ChatDecoder.from_state(tok, restored.state(), **options)
    assert restored.finish() == decoder.finish()
    assert ChatDecoder.from_state(tok, restored.state(), **options).feed([65]) == []
    assert restored.ignored == decoder.ignored


def test_a_state_does_not_grow_with_the_output(tok):
    long = saved(tok, "ab c\n" * 20_000, **SHORT)
    assert len(long) < len(saved(tok, "ab c\n", **SHORT)) + 16
    assert len(long) < 512
    calls = CALL + "1]}}</tool_call>" + '<tool_call>{"name": "f", "arguments": {}}</tool_call>' * 2_000
    assert len(saved(tok, calls, **SHORT, alignment=True)) < 1024
    assert len(saved(tok, CALL + "[" * 100, **SHORT)) < 1024


def test_what_is_held_is_saved(tok):
    for text, waiting in (("xo", "o"), ("a <tool_c", "<tool_c"), ("\n<thi", "\n<thi")):
        finished = ChatDecoder.from_state(tok, saved(tok, text, **SHORT), **SHORT).finish()
        assert finished[0].text == waiting


def test_deltas_that_wait_after_an_error_are_saved(tok):
    decoder = ChatDecoder(tok, **SHORT)
    with pytest.raises(TokenIdError):
        decoder.feed([65, 66, 99_999])
    (delta,) = ChatDecoder.from_state(tok, decoder.state(), **SHORT).feed([])
    assert (delta.text, delta.token_ids) == ("AB", [65, 66])


def test_a_copy_reads_again_what_came_as_an_iterator(tok):
    decoder = ChatDecoder(tok, stop=iter(["ox"]), eos_ids=iter([66]), stop_token_ids=iter([67]))
    for copied in (copy(decoder), decoder.copy(), copy(copy(decoder))):
        assert copied.state() == decoder.state()


def test_only_the_functions_may_differ(tok):
    spent = []
    options = SHORT | {"thinking_budget": 9}
    state = saved(tok, "<think>", **options)
    restored = ChatDecoder.from_state(tok, state, **options, on_thinking_spent=spent.append, call_ids=str)
    restored.feed(list(b"abc"))
    assert spent == [0]


@pytest.mark.parametrize("other", CASES["a_state_of_other_options_is_refused"])
def test_a_state_of_other_options_is_refused(tok, other):
    with pytest.raises(StateError, match="another tokenizer or other options"):
        ChatDecoder.from_state(tok, saved(tok, CALL, **SHORT), **(SHORT | other))


def test_a_state_of_another_tokenizer_is_refused(tok, think_tok):
    with pytest.raises(StateError, match="another tokenizer or other options"):
        ChatDecoder.from_state(think_tok, saved(tok, CALL, **SHORT), **SHORT)


def test_every_damaged_byte_is_noticed(tok):
    state = saved(tok, CALL, **SHORT)
    for place in range(len(state)):
        damaged = state[:place] + bytes([state[place] ^ 0x10]) + state[place + 1 :]
        with pytest.raises(StateError):
            ChatDecoder.from_state(tok, damaged, **SHORT)
        with pytest.raises(StateError):
            ChatDecoder.from_state(tok, state[:place], **SHORT)
    with pytest.raises(StateError, match="of version 1, which another release of tokenweir wrote; this is version 5"):
        ChatDecoder.from_state(tok, MAGIC + b"\1" + state[4:], **SHORT)
    with pytest.raises(StateError, match="no state of a decoder"):
        ChatDecoder.from_state(tok, "text", **SHORT)


@given(st.data())
def test_a_forged_state_is_refused_or_harmless(tok, data):
    """With a check that is right: whatever stands in it, it is refused, or what follows ends."""
    text = data.draw(
        st.sampled_from(["", "xo", CALL, CALL + '"a\\u1', "<think>hm\n</thi", "é"[:1], 'a <tool_call>{"x": ['])
    )
    state = saved(tok, text, **SHORT)
    belongs = state[len(MAGIC) + 1 :][:DIGEST]
    said = read_state(state, belongs)
    core = data.draw(mutated(said.core))
    rest = data.draw(mutated(msgspec.msgpack.encode([said.splitter, said.router])))
    try:
        splitter, router = msgspec.msgpack.decode(rest, type=tuple[object, object])
    except (msgspec.MsgspecError, ValueError):
        splitter, router = said.splitter, said.router
    forged = replace(said, core=core, splitter=splitter, router=router)
    try:
        decoder = ChatDecoder.from_state(tok, write_state(forged, belongs), **SHORT)
    except StateError:
        return
    for token_id in b'1"}]}}</tool_call>\xe4\xbd\xa0<think>x</think>oxo':
        decoder.feed([token_id])
    decoder.copy().finish()


@st.composite
def mutated(draw, data):
    """Some bytes, a few of them other ones."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, max(0, len(changed) - 1)))
        changed[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
    return bytes(changed)


def test_deltas_round_trip_as_json(tok):
    decoder = ChatDecoder(tok, **SHORT, alignment=True)
    given = decoder.feed(list((CALL + "2]}}</tool_call> x").encode()), None) + decoder.finish()
    assert {delta.__struct_config__.tag for delta in given} == {"text", "reasoning", "tool_call", "finish"}
    for delta in given:
        assert msgspec.json.decode(msgspec.json.encode(delta), type=Delta) == delta
