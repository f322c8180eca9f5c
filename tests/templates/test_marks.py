"""Methods of marked text: the result is that of the plain text, and marks stay behind their characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.templates import limits
from tokenweir.templates.marks import MARK, atoms, call_method, find_marked, recased, sliced, unmarked

TEXT = st.text("ab<> \n\r/ß", max_size=12)
SHORT = st.text("ab< \n", min_size=1, max_size=2)
CALLS = st.one_of(
    st.tuples(st.sampled_from(["split", "rsplit"]), st.tuples(st.none() | SHORT, st.integers(-1, 3))),
    st.tuples(st.sampled_from(["split", "rsplit", "strip", "lstrip", "rstrip", "title", "capitalize"]), st.just(())),
    st.tuples(st.just("splitlines"), st.tuples(st.booleans())),
    st.tuples(st.sampled_from(["partition", "rpartition", "removeprefix", "removesuffix"]), st.tuples(SHORT)),
    st.tuples(st.sampled_from(["strip", "lstrip", "rstrip"]), st.tuples(SHORT)),
    st.tuples(st.sampled_from(["startswith", "endswith", "find", "rfind", "count"]), st.tuples(SHORT)),
    st.tuples(st.just("replace"), st.tuples(SHORT, TEXT, st.integers(-1, 2))),
)


@pytest.fixture(autouse=True, scope="module")
def _budget():
    with limits.budget():
        yield


@st.composite
def marked_texts(draw):
    return "".join(c + MARK * draw(st.integers(0, 1)) for c in draw(TEXT))


@given(marked_texts(), CALLS)
def test_methods_are_blind_to_marks(text, call):
    name, arguments = call
    assert unmarked(call_method(name, text, arguments, {})) == getattr(unmarked(text), name)(*arguments)


@given(marked_texts(), SHORT)
def test_what_is_cut_keeps_its_marks(text, separator):
    """Joined again, the pieces are the text as it was, but for the marks of the separators."""
    pieces = call_method("split", text, (separator,), {})
    rest = text
    for number, piece in enumerate(pieces):
        if number:
            gap = sliced(rest, slice(0, len(separator)))
            assert unmarked(gap) == separator
            rest = rest[len(gap) :]
        assert rest.startswith(piece)
        rest = rest[len(piece) :]
    assert rest == ""


@given(marked_texts(), st.integers(-13, 13), st.integers(-13, 13), st.sampled_from([None, 1, 2, -1]))
def test_slices(text, start, stop, step):
    place = slice(start, stop, step)
    assert unmarked(sliced(text, place)) == unmarked(text)[place]
    assert "".join(atoms(text)) == text


def test_marks_of_replaced_text_go_with_it():
    assert call_method("replace", f"<{MARK}a<{MARK}", ("<", "-"), {}) == "-a-"
    assert call_method("replace", f"a<{MARK}b", ("b", f">{MARK}"), {}) == f"a<{MARK}>{MARK}"


def test_keywords():
    assert call_method("split", f"a<{MARK}b<c", (), {"sep": "<", "maxsplit": 1}) == ["a", "b<c"]
    assert call_method("splitlines", f"a<{MARK}\r\nb", (), {"keepends": True}) == [f"a<{MARK}\r\n", "b"]


def test_unmarked_reaches_into_data():
    marked = {f"<{MARK}k": [f"a{MARK}", (1, f"b{MARK}")]}
    assert unmarked(marked) == {"<k": ["a", (1, "b")]}


def test_keys_are_found_whatever_marks_they_have():
    assert find_marked({"x": 1, f"t{MARK}ype": 2}, "type") == f"t{MARK}ype"
    assert find_marked({"type": 2}, f"t{MARK}ype") == "type"
    assert find_marked({"x": 1}, "type") is None


def test_text_that_grows_when_its_case_changes_loses_its_marks():
    """Which the comparison of the two renderings would notice where it mattered."""
    assert recased(f"a{MARK}b", "Ab") == f"A{MARK}b"
    assert recased(f"ß{MARK}", "SS") == "SS"
