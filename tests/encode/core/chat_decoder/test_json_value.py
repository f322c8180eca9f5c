from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode._core import JsonValue

MAX_DEPTH = 128

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
NEARLY = st.lists(st.sampled_from([*'{}[],:"\\01-.eEtu \n\x01', "true", "null", '"a"', '{"a":', "\\u00"]), max_size=9)


def follow(text, cuts=()):
    """Return what a value reports for a text that comes in pieces: where it ends, whether it is done, what is wrong."""
    value, end, begin = JsonValue(), 0, 0
    for cut in [*sorted(cuts), len(text)]:
        taken = value.feed(text[begin:cut])
        end += taken
        if taken < cut - begin:
            break
        begin = cut
    value.finish()
    return end, value.done, value.error


def parses(text):
    try:
        json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


@given(VALUES, st.booleans(), st.sampled_from([None, 2]), st.lists(st.integers(0, 99), max_size=4))
def test_what_json_writes_is_done_in_every_cutting(value, ascii_only, indent, cuts):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    places = {cut % (len(text) + 1) for cut in cuts}
    assert follow(text, places) == follow(text, range(len(text))) == (len(text), True, None)


@given(NEARLY, st.lists(st.integers(0, 99), max_size=3))
def test_done_means_that_it_parses_and_nothing_else_does(words, cuts):
    text = "".join(words)
    end, done, error = follow(text, {cut % (len(text) + 1) for cut in cuts})
    assert (end, done, error) == follow(text)
    assert done is (error is None)
    if done:
        assert parses(text[:end])
    else:
        assert not parses(text)


@given(NEARLY, st.integers(0, 99))
def test_a_copy_goes_on_by_itself(words, cut):
    text = "".join(words)
    value, whole = JsonValue(), JsonValue()
    place = value.feed(text[: cut % (len(text) + 1)])
    branch = value.copy()
    value.feed('"]}')
    assert whole.feed(text) == branch.feed(text, place)
    assert (whole.done, whole.error) == (branch.done, branch.error)


def test_places_are_characters():
    value = JsonValue()
    assert value.feed('日本 {"é": "👩"} 日', 3) == 13
    assert value.done
    assert JsonValue().feed('日本["é"', 2) == 6


@pytest.mark.parametrize("text", ["1", "-0.5e+3", "[0, 1]", ' {"a" : [ ] , "b":{}}', '"\\u00e9\\n"', "false"])
def test_whole_values(text):
    assert follow(text) == (len(text), True, None)


def test_a_value_ends_where_something_else_begins():
    for text, end in [("{} {}", 2), ("12, 3", 2), ("true]", 4), ('"a"b', 3), ("[1]]", 3)]:
        assert follow(text) == (end, True, None)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{'a'", '"\'" cannot stand here in the JSON'),
        ('{"a" 1', "'1' cannot stand here in the JSON"),
        ('{"a":1,}', "'}' cannot stand here in the JSON"),
        ("[1}", "'}' cannot stand here in the JSON"),
        ('"a\n', r"'\\n' cannot stand here in a string"),
        ('"\\x', "'x' cannot stand here in a JSON escape"),
        ('"\\u00g', "'g' cannot stand here in a JSON escape"),
        ("01", None),
        ("NaN", "'N' cannot stand here in the JSON"),
        ('{"a": 1', "the JSON is not closed"),
        ("-", "the JSON is not closed"),
        ("", "the JSON is not closed"),
        ("[é]", "'é' cannot stand here in the JSON"),
        ("['", '"\'" cannot stand here in the JSON'),
        ("[" * (MAX_DEPTH + 1), f"the JSON is nested more than {MAX_DEPTH} levels deep"),
    ],
)
def test_what_is_wrong_is_named(text, error):
    assert follow(text)[2] == (error and error.replace(r"\\", "\\"))
