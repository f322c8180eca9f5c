"""The input of custom tools, read from JSON arguments that arrive in pieces."""

import json

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.stream.serve.wire.responses.custom_input import CustomInput

CASES = cases(__file__)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n\t🙂é/'))


def read(arguments, cuts=()):
    reader, out = CustomInput(), []
    for start, end in zip([0, *cuts], [*cuts, len(arguments)], strict=True):
        out.append(reader.feed(arguments[start:end]))
    return "".join(out), reader.finish()


@given(TEXTS, st.booleans(), st.data())
def test_any_text_comes_back_however_it_is_cut(text, is_ascii, data):
    arguments = json.dumps({"input": text}, ensure_ascii=is_ascii)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(arguments)))))
    assert read(arguments, cuts) == (text, "")


@given(TEXTS)
def test_increments_come_as_soon_as_they_are_certain(text):
    reader = CustomInput()
    assert reader.feed('{ "input"\n: "') == ""
    for char in text:
        assert reader.feed(json.dumps(char)[1:-1]) == char
    assert (reader.feed('"}'), reader.finish()) == ("", "")


@pytest.mark.parametrize(("arguments", "text"), CASES["a_text_in_the_argument_is_streamed"])
def test_a_text_in_the_argument_is_streamed(arguments, text):
    for size in (1, 3, len(arguments)):
        assert read(arguments, range(size, len(arguments), size)) == (text, "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        *CASES["of_other_arguments_nothing_is_lost"],
        ("[" * 10_000, "[" * 10_000),
    ],
)
def test_of_other_arguments_nothing_is_lost(arguments, text):
    for size in (1, 4, max(1, len(arguments))):
        streamed, rest = read(arguments, range(size, len(arguments), size))
        assert streamed + rest == text


def test_a_long_input_of_escapes_is_read_in_linear_time():
    text = '\\"\n' * 200_000
    assert read(json.dumps({"input": text})) == (text, "")
    blanks = " " * 1_000_000
    assert read(f'{{"input"{blanks}: "a"}}', range(1000, 1_000_000, 1000)) == ("a", "")
