"""Forged states are refused, or harmless, before they cost more than their length; `forged_states.py` tries a million."""

from __future__ import annotations

import random
import sys
from contextlib import contextmanager

import msgspec
import pytest
from case_tables import cases
from forged_states import Forger, honest_states, try_forged
from full_run import share
from msgspec.structs import replace

from tokenweir.encode.errors import StateError
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.parsers.blocks import literals, nested_values
from tokenweir.stream.decode.parsers.detection import Styles, make_splitter
from tokenweir.stream.decode.parsers.saved import MAX_COUNT
from tokenweir.stream.decode.parsers.schemas import tool_schemas_of
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, first_of
from tokenweir.stream.decode.saved_state import DIGEST, MAGIC, read_state, write_state
from tokenweir.templates.styles.reasoning import STYLES
from tokenweir.templates.styles.tools import TOOL_STYLES

CASES = cases(__file__)

LONG = 300_000
MOST_CALLS = 20_000
"""Calls of functions that a forged state of any length may cost, some 5 ms."""


@contextmanager
def counted_calls():
    """Counts the calls of functions in its one item."""
    count = [0]

    def see(frame, event, argument):
        count[0] += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        yield count
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("seed", range(2))
def test_forged_states_raise_nothing_but_the_documented_error(make_tok, seed):
    rng = random.Random(seed)
    forger = Forger(rng, honest_states(rng, make_tok, 15, 20))
    for _ in range(share(2_000)):
        honest, state, ids = forger.forged()
        with counted_calls() as count:
            try_forged(honest, state, ids)
        assert count[0] < MOST_CALLS


def changed(tok, state, **options):
    """Restore a state that is changed; its content is given to `state`, which gives another."""
    decoder = ChatDecoder(tok, **options)
    saved = decoder.state()
    decoder.feed(list(b"<"))  # compiles what is compiled once
    belongs = saved[len(MAGIC) + 1 :][:DIGEST]
    return write_state(state(read_state(saved, belongs)), belongs)


STYLE_PAIRS = CASES["style_pairs"]
FIELDS = {
    "think": lambda text: ["answer", text, "", "", True, True, False, False],
    "hermes": lambda text: [[False, text, -1], None],
    "harmony": lambda text: ["header", "", text, "", "answer", "", "", -1, b"\0" * 9],
    "muse": lambda text: ["body", "", "", text, "answer", "", [[False, False, "", -1, "", 0], None]],
    "inkling": lambda text: ["header", text, "", "answer", [[False, False, "", -1, "", 0], None]],
}


@pytest.mark.parametrize(("thinking", "calls"), STYLE_PAIRS)
def test_held_text_is_bounded_before_it_is_looked_at(make_tok, thinking, calls):
    tok = make_tok(AddedToken("<think>"), AddedToken("</think>"))
    options = {"reasoning": thinking, "tool_style": calls}

    def with_held(said):
        text = "<" * LONG
        one, other = (FIELDS[name](text) if name else None for name in (thinking, calls))
        both = thinking == "think" and calls
        return replace(said, splitter=[one, FIELDS["hermes"]("")] if both else one or other)

    state = changed(tok, with_held, **options)
    with counted_calls() as count, pytest.raises(StateError):
        ChatDecoder.from_state(tok, state, **options)
    assert count[0] < 2_000


def test_held_text_is_that_which_was_given(tok):
    """It is compared before anything is fed; the core has been given nothing here."""
    options = {"reasoning": None, "tool_style": "qwen3-coder"}
    held = "<tool_call>\n<function=f>\n<parameter=a>" + "<" * LONG
    decoder = ChatDecoder(tok, **options)
    decoder.feed(list(held.encode()))
    splitter = decoder._splitter.state()
    state = changed(tok, lambda said: replace(said, splitter=splitter), **options)
    ChatDecoder.from_state(tok, ChatDecoder(tok, **options).state(), **options)  # compiles what a style needs once
    with counted_calls() as count, pytest.raises(StateError, match="other text is held than what was given"):
        ChatDecoder.from_state(tok, state, **options)
    assert count[0] < 2_000


def test_a_long_value_that_was_given_is_held_and_restored(tok):
    """An honest state has no bound on a value that need not be a string, and costs its length."""
    options = {"reasoning": None, "tool_style": "qwen3-coder"}
    value = "<" * 100_000
    decoder = ChatDecoder(tok, **options)
    decoder.feed(list(f"<tool_call>\n<function=f>\n<parameter=a>{value}".encode()))
    with counted_calls() as count:
        restored = ChatDecoder.from_state(tok, decoder.state(), **options)
        deltas = restored.feed(list(b"</parameter>\n</function>\n</tool_call>")) + restored.finish()
    assert count[0] < 5_000
    assert "".join(delta.arguments for delta in deltas[:-1]) == f'{{"a": "{value}"}}'.removeprefix('{"a": ')


@pytest.mark.parametrize("forge", [
    lambda said: replace(said, prompt_tokens=-1),
    lambda said: replace(said, ignored=MAX_COUNT + 1),
    lambda said: replace(said, router=[*said.router[:5], 1 << 63, []]),
    lambda said: replace(said, router=[*said.router[:6], [["text", "x", [1 << 40], 0]]]),
    lambda said: replace(said, aligner=[[0.5] * 9, {}]),
    lambda said: replace(said, splitter=[said.splitter[0], [[False, "", MAX_COUNT + 1], None]]),
    lambda said: replace(said, splitter=[["answer", "<thi", "", "", True, True, False, False], said.splitter[1]]),
    lambda said: replace(said, splitter=[said.splitter[0], [[False, "", -1], [["", "", "", -1, "done", *([False] * 6)], []]]]),
])  # fmt: skip
def test_contradictions_are_seen_when_a_state_is_loaded(tok, forge):
    options = {"reasoning": "think", "tool_style": "hermes", "alignment": True}
    with pytest.raises(StateError):
        ChatDecoder.from_state(tok, changed(tok, forge, **options), **options)


def test_a_code_block_is_open_in_the_answer_only(tok):
    def in_code(said):
        (_, *fields, _, ticks), *rest = said.splitter
        return replace(said, splitter=[["reasoning", *fields, 3, ticks], *rest])

    options = {"reasoning": "think", "tool_style": "hermes"}
    with pytest.raises(StateError, match="code block"):
        ChatDecoder.from_state(tok, changed(tok, in_code, **options), **options)


def test_a_name_is_held_before_a_call_only(tok):
    options = {"reasoning": None, "tool_style": "inkling"}
    splitter = ["call", "f", "", "answer", [[False, False, "", -1, "", 0], None]]
    core = ChatDecoder(tok, **options)
    core._detok.step(ord("f"))
    state = changed(tok, lambda said: replace(said, splitter=splitter, core=core._detok.state()), **options)
    with pytest.raises(StateError, match="a function's name is held, and no call"):
        ChatDecoder.from_state(tok, state, **options)


@pytest.mark.parametrize(("thinking", "calls"), STYLE_PAIRS)
@pytest.mark.parametrize("unit", ["<", "<|", "</", "["])
def test_text_without_markup_is_scanned_at_once(thinking, calls, unit):
    """However often a character comes with which markup may begin."""
    found = [0, 0]
    for place, length in enumerate((MAX_HEADER, 3 * MAX_HEADER)):
        splitter = make_splitter(Styles(thinking and STYLES[thinking], calls and TOOL_STYLES[calls]))
        with counted_calls() as count:
            splitter.feed(unit * (length // len(unit)))
        found[place] = count[0]
    assert found[1] <= found[0] + 50


def test_searches_for_names_that_a_model_has_written_are_not_kept_for_ever():
    assert first_of.cache_info().maxsize is not None


def test_a_value_with_more_elements_than_are_read_is_a_string():
    schema, most = tool_schemas_of({"f": {"type": "array"}}).arguments("f"), nested_values.MAX_TAGS // 2
    for count in (most, most + 1):
        text = "<item>1</item>" * count
        value = msgspec.json.decode(nested_values.nested_json(text, schema, ""))
        assert value == ([1] * count if count == most else text)


def test_a_longer_container_than_is_read_is_a_string():
    for length in (literals.MAX_CONTAINER, literals.MAX_CONTAINER + 3):
        text = "[None" + ",'a'" * ((length - 6) // 4) + "]"
        text += " " * (length - len(text))
        value = msgspec.json.decode(literals.json_of_argument(text, frozenset({"array"})))
        assert isinstance(value, str) == (length > literals.MAX_CONTAINER)
