from __future__ import annotations

import ast
import json
import warnings

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.stream.decode.parsers.blocks.literals import (
    LONGEST_ESCAPE,
    find_escape,
    json_of_argument,
    json_of_container,
    json_of_escape,
    json_of_word,
)

CASES = cases(__file__)

CONTAINERS = frozenset({"object", "array"})
TEXT = st.text(max_size=6)
SCALARS = st.none() | st.booleans() | st.integers() | TEXT | st.floats(allow_nan=False, allow_infinity=False)


@given(st.text(st.sampled_from("abfnrtvxuU01789f'\"\\ \n"), min_size=1, max_size=LONGEST_ESCAPE))
def test_an_escape_means_what_it_means_to_python(text):
    escape, longer = find_escape("\\" + text, 0)
    if not escape or longer or escape[1] in "uU":
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of escapes that it does not know
        assert json.loads(f'"{json_of_escape(escape)}"') == ast.literal_eval(f'"{escape}"')


@pytest.mark.parametrize(
    ("escape", "meant"),
    [(r"\u00e9", "é"), (r"\U0001F600", "😀"), (r"\ud83d", "\ufffd"), (r"\U00110000", "\ufffd"), (r"\q", r"\q")],
)
def test_characters_by_number(escape, meant):
    assert find_escape(escape + "z", 0) == (escape, False)
    assert json.loads(f'"{json_of_escape(escape)}"') == meant


@pytest.mark.parametrize("text", ["\\", "\\x4", "\\u00", "\\U0001F60", "\\1", "\\12"])
def test_more_text_may_complete_an_escape(text):
    assert find_escape(text, 0)[1]
    assert not find_escape(text + " " * LONGEST_ESCAPE, 0)[1]


@pytest.mark.parametrize(("word", "value"), CASES["a_word_is_a_constant_or_a_number_or_neither"])
def test_a_word_is_a_constant_or_a_number_or_neither(word, value):
    assert json_of_word(word) == value


@given(
    st.recursive(
        st.lists(SCALARS, max_size=4) | st.dictionaries(TEXT, SCALARS, max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=8,
    )
)
def test_a_container_as_python_writes_it_is_json(value):
    written = json_of_container(repr(value), CONTAINERS)
    assert written is not None
    assert json.loads(written) == value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        *CASES["what_is_no_container_is_none"],
        ("[" * 100_000, None),
    ],
)
def test_what_is_no_container_is_none(text, written):
    assert json_of_container(text, CONTAINERS) == written


def test_the_schema_says_whether_a_container_can_be():
    assert json_of_argument("[None]", frozenset({"array"})) == "[null]"
    assert json_of_argument("[None]", frozenset({"object"})) == '"[None]"'
    assert json_of_argument("[None]", frozenset({"string"})) == '"[None]"'
    assert json_of_argument("[None]", frozenset()) == '"[None]"'
    assert json_of_argument("[null]", frozenset({"array"}), tagged=True) == "[null]"
