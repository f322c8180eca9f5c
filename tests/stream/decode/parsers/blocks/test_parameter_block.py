"""Calls whose arguments are tagged one by one, in every style of that grammar."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from splitting import check_passing, cut, run, split_calls, told

from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.templates.styles.grammars import ParameterStyle
from tokenweir.templates.styles.tools import TOOL_STYLES

STYLES = [style for style in TOOL_STYLES.values() if isinstance(style, ParameterStyle)]
QWEN = TOOL_STYLES["qwen3-coder"]
TYPES = {
    "text": "string",
    "count": "integer",
    "ratio": "number",
    "flag": "boolean",
    "map": "object",
    "list": "array",
    "maybe": ["string", "null"],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"properties": {name: {"type": kind} for name, kind in TYPES.items()} | {"any": {}}},
        },
    },
    {"type": "function", "function": {"name": "now"}},
]
VALUES = {
    "text": st.text(st.sampled_from('ab"\\\n é€😀<>/')),
    "count": st.integers(),
    "ratio": st.floats(allow_nan=False, allow_infinity=False),
    "flag": st.booleans(),
    "map": st.dictionaries(st.text("abc", min_size=1), st.integers() | st.text("x<>\n")),
    "list": st.lists(st.none() | st.integers() | st.text("x<")),
    "maybe": st.none() | st.text("nulx", min_size=1).filter(lambda text: text.lower() != "null"),
}


def value_text(style, value):
    """A value as a template writes it: strings as they are, everything else as JSON, or as tags if the style nests."""
    if style.nests and isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else [("item", item) for item in value]
        tag = style.nests
        return "".join(f"{tag}<{key}>{value_text(style, item)}{tag}</{key}>" for key, item in members)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write(style, *calls):
    """Calls as a model of the style writes them, in one block each."""
    texts = []
    for name, arguments in calls:
        ends = "\n" if "\n" in style.name_stops else style.name_ends[0]
        tail = f' index="1"{style.name_tail}' if style.name_tail else ""
        body = ""
        for key, value in arguments.items():
            kinds = {kind: text for text, kind in style.key_closes}
            closer = kinds.get("schema") or kinds["string" if isinstance(value, str) else "json"]
            line_end = "\n" * style.trims
            body += f"{style.key_opens}{key}{closer}{style.value_opens}{line_end}{value_text(style, value)}{line_end}"
            body += style.value_closes.replace("{}", key) + "\n"
        opener = style.opens[0] if style.opens[0] != style.call_opens else ""
        opener += "".join(style.leads) + style.call_opens
        texts.append(f"{opener}{name}{ends}{tail}{body}{style.call_closes}{''.join(style.tails)}{style.closes}")
    return "\n".join(texts)


def parser(style):
    return ToolParser(style, TOOLS)


def split(style, text):
    return split_calls(style, text, TOOLS)


def _ends_a_value(style, text):
    return any(end in "\n" + text for end in (style.value_closes, *style.value_stops))


arguments = st.fixed_dictionaries({}, optional=VALUES)


@given(st.sampled_from(STYLES), st.lists(arguments, min_size=1, max_size=3), st.lists(st.integers(0, 999), max_size=6))
def test_calls_come_back_however_they_are_cut(style, calls, places):
    calls = [{k: v for k, v in a.items() if not (isinstance(v, str) and _ends_a_value(style, v))} for a in calls]
    text = "Let me see.\n" + write(style, *(("f", call) for call in calls))
    whole = run(parser(style), [text])
    assert run(parser(style), cut(text, places)) == whole
    got = told(whole)
    assert [(name, json.loads(text), end) for name, text, end in got["calls"]] == [
        ("f", call, "complete") for call in calls
    ]
    assert got["answer"].strip() == "Let me see."


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_call_without_arguments_is_an_empty_object(style):
    assert split(style, write(style, ("now", {})))["calls"] == [("now", "{}", "complete")]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("name", ["天気", "2fa", "get-it.now"])
def test_a_name_has_any_letters(style, name):
    assert split_calls(style, write(style, (name, {})), [{"name": name}])["calls"] == [(name, "{}", "complete")]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_arguments_may_be_one_object_in_place_of_tags(style):
    written = [
        write(style, ("now", {})).replace(
            style.call_closes or style.closes, text + (style.call_closes or style.closes), 1
        )
        for text in ('\n{"a": ["</x>", 1]}\n', '{"a": 1', '{"a": tru}')
    ]
    for text, call in zip(
        written,
        [('\n{"a": ["</x>", 1]}'.strip(), "complete"), ('{"a": 1', "malformed"), ('{"a": tru}', "malformed")],
        strict=True,
    ):
        whole = run(parser(style), [text])
        assert run(parser(style), list(text)) == whole
        got = told(whole)
        assert [said[1:] for said in got["calls"]] == [call]
        assert got["answer"] == ""
    check_passing(lambda: parser(style), [written[0][:40], written[0][40:]], written[0])


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_call_cut_short_anywhere_is_never_complete_and_loses_nothing(style):
    text = write(style, ("f", {"text": 'say "hi"', "count": 3}))
    end_of_call = len(text) - (len("".join(style.tails) + style.closes) if style.call_closes else 0)
    for end in range(end_of_call):
        got = told(run(parser(style), [text[:end]]))
        assert all(state == "open" for _, _, state in got["calls"])
        if not got["calls"]:
            assert got["answer"] == text[:end]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_string_goes_out_as_it_comes(style):
    text = write(style, ("f", {"text": "abcdef"}))
    splitter, given_ = parser(style), ""
    for char in text[: text.index("abcdef") + 6]:
        given_ += "".join(piece.text for piece in splitter.feed(char))
    assert given_.endswith('"abcdef')


@given(st.sampled_from(STYLES), st.data())
def test_what_may_pass_comes_as_it_is_and_states_are_independent(style, data):
    marks = [*style.marks, "f", "text", "count", "x y", "<", "\n", '"', "\\", "é", "12"]
    words = data.draw(st.lists(st.sampled_from([mark for mark in marks if mark]), max_size=14))
    check_passing(lambda: parser(style), words, write(style, ("f", {"text": "x"})))


@given(st.sampled_from(STYLES), st.data(), st.lists(st.integers(0, 999), max_size=6))
def test_any_mixture_of_markup_is_split_the_same_however_it_is_cut(style, data, places):
    marks = [*style.marks, *(mark[:-1] for mark in style.marks), "f", "text", "count", " x ", "<", "\n", "12"]
    text = "".join(data.draw(st.lists(st.sampled_from([mark for mark in marks if mark]), max_size=14)))
    whole = run(parser(style), [text])
    assert run(parser(style), cut(text, places)) == whole
    told(whole)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_markup_that_is_mentioned_is_text_and_a_call_after_it_is_one(style):
    opener = style.opens[0] * (style.opens[0] != style.call_opens) + style.call_opens
    for mention in (f"Say `{style.opens[0]}`.", f"`{opener}f{(style.name_ends or (chr(10),))[0]}{style.name_tail}`\n"):
        got = split(style, mention + write(style, ("f", {"count": 3})) + "So.")
        assert (got["answer"], got["calls"]) == (mention + "So.", [("f", '{"count": 3}', "complete")])
        assert len(got["why"]) == 1
    said = run(parser(style), [f"Say `{style.opens[0]}`, or not."])[-1]
    assert said.source.endswith(", or not.")
    assert said.malformed is None


@pytest.mark.parametrize("style", [s for s in STYLES if s.call_opens and not s.entities], ids=lambda style: style.name)
def test_a_call_behind_one_that_is_none_is_found(style):
    opener = style.opens[0] * (style.opens[0] != style.call_opens)
    none = write(style, ("a b", {})).removesuffix(style.closes)
    got = split(style, none + write(style, ("f", {"count": 3})).removeprefix(opener))
    assert got["calls"] == [("f", '{"count": 3}', "complete")]
    assert got["answer"].startswith(none.removesuffix("".join(style.tails)))


def test_a_style_without_its_tags_is_refused():
    with pytest.raises(ValueError, match=r"^tool style 'glm': a tag of names, keys or values is empty$"):
        replace(TOOL_STYLES["glm"], key_opens="")
    with pytest.raises(ValueError, match=r"^tool style 'qwen3-coder': nothing ends a call$"):
        replace(QWEN, closes="", call_closes="")


def test_a_verbatim_value_needs_two_texts():
    with pytest.raises(ValueError, match=r"^tool style 'minicpm5': verbatim \('<',\) is no pair of texts$"):
        replace(TOOL_STYLES["minicpm5"], verbatim=("<",))
