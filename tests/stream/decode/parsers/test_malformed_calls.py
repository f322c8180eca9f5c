"""Calls that models write wrongly, or that are cut short: nothing of their markup reaches the answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from splitting import cut, run, told, without_blank_blocks

from tokenweir import ChatDecoder, ParameterStyle, ReasoningDelta, TextDelta, Tokenizer, ToolCallDelta
from tokenweir.stream.decode.parsers.detection import Styles, make_splitter
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.tools import tool_style_of

TOK = Tokenizer.default()
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "tags": {"type": "array"}, "d": {"type": "object"}},
}
WEATHER = {"name": "get_weather", "parameters": {"type": "object", "properties": {"days": {"type": "integer"}}}}
DAYS = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "d": {"type": "object"}},
    },
}
TOOLS = [{"name": "get_weather", "parameters": PARAMETERS}, {"name": "now", "parameters": {"type": "object"}}]


def splitter(calls, thinking=None, tools=TOOLS, inside=False):
    styles = Styles(style_of(thinking) if thinking else None, tool_style_of(calls))
    return make_splitter(styles, tools, inside=inside)


def split(style, text, **options):
    """Split an answer whole, character by character and in pairs, which must be the same."""
    whole = run(splitter(style, **options), [text])
    assert run(splitter(style, **options), list(text)) == whole
    assert run(splitter(style, **options), cut(text, range(0, len(text), 2))) == whole
    return told(whole)


def calls_of(got):
    return [(name, json.loads(arguments)) for name, arguments, end in got["calls"] if end == "complete"]


def test_the_recorded_cases(data):
    for case in json.loads(data("parser-cases/malformed.json").read_text()):
        tools = [] if case["id"] == "pythonic-code-without-schemas" else case["tools"]
        options = {"thinking": case["thinking"], "tools": tools, "inside": case["inside"]}
        got, expected = split(case["calls_style"], case["text"], **options), case["expected"]
        assert got["answer"].strip() == expected["content"].strip(), case["id"]
        assert got["thinking"].strip() == expected["reasoning"].strip(), case["id"]
        if expected["calls"] == [["get_weather", None]]:  # cut short
            assert [(name, end) for name, _, end in got["calls"]] == [("get_weather", "open")], case["id"]
        else:
            assert [list(call) for call in calls_of(got)] == expected["calls"], case["id"]


# -- every style -------------------------------------------------------------------------------------------------------

SAMPLES = {
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "A", "tags": ["b"]}}\n</tool_call>',
    "mistral": '[TOOL_CALLS]get_weather[ARGS]{"city": "A", "tags": ["b"]}',
    "kimi-k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city": "A", "tags": ["b"]}<|tool_call_end|><|tool_calls_section_end|>',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
    '{"city": "A", "tags": ["b"]}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "cohere": '<|START_ACTION|>[{"tool_name": "get_weather", "parameters": {"city": "A", "tags": ["b"]}}]<|END_ACTION|>',
    "apertus": '<|tools_prefix|>[{"get_weather": {"city": "A", "tags": ["b"]}}]<|tools_suffix|>',
    "gemma4": '<|tool_call>call:get_weather{city:<|"|>A<|"|>,tags:[<|"|>b<|"|>]}<tool_call|>',
    "lfm2": "<|tool_call_start|>[get_weather(city='A', tags=['b'])]<|tool_call_end|>",
    "olmo3": "<function_calls>get_weather(city='A', tags=['b'])</function_calls>",
    "qwen3-coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\nA\n</parameter>\n"
    '<parameter=tags>\n["b"]\n</parameter>\n</function>\n</tool_call>',
    "glm": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>A</arg_value>\n<arg_key>tags</arg_key>\n"
    '<arg_value>["b"]</arg_value>\n</tool_call>',
    "harmony": ' to=functions.get_weather<|channel|>commentary json<|message|>{"city": "A", "tags": ["b"]}<|call|>',
}
WHOLE = ("get_weather", {"city": "A", "tags": ["b"]})
PARTS = ["{", "}", "[", "]", "(", ")", '"', "'", ",", ":", "\\", "<", "x", " ", "\n", "null", "</", "`"]


def value_of(text):
    """Return the place of the first value."""
    return text.rindex("A", 0, text.index("tags"))


@pytest.mark.parametrize("style", SAMPLES)
def test_a_sample_is_a_call(style):
    got = split(style, SAMPLES[style])
    assert (calls_of(got), got["answer"], got["why"]) == ([WHOLE], "", [])


@given(st.sampled_from(list(SAMPLES)), st.data())
def test_a_call_that_has_begun_shows_no_markup_however_it_goes_on(style, data):
    text = SAMPLES[style]
    place = data.draw(st.integers(value_of(text), len(text)))
    removed = data.draw(st.integers(0, 3))
    added = "".join(data.draw(st.lists(st.sampled_from(PARTS), max_size=3)))
    broken = text[:place] + added + text[place + removed :]
    whole = run(splitter(style), [broken])
    assert run(splitter(style), cut(broken, data.draw(st.lists(st.integers(0, 300), max_size=6)))) == whole
    got = told(whole)
    assert got["calls"][0][0] == "get_weather"
    calls = tool_style_of(style)
    for mark in (*calls.opens, calls.closes, calls.call_opens, calls.call_closes, "<|call|>", "<|message|>"):
        # Without its slash, a closing tag may be another opening one.
        assert not mark or mark not in got["answer"] or broken.count(mark) > text.count(mark)


@pytest.mark.parametrize("style", [style for style in SAMPLES if style != "glm" and tool_style_of(style).closes])
@pytest.mark.parametrize("junk", ["(", "*", "{", "So (a) [b]\n"])
def test_text_before_the_closing_tag_is_answer_and_the_tag_is_markup(style, junk):
    text = SAMPLES[style]
    place = text.rindex(tool_style_of(style).closes)
    got = split(style, f"{text[:place]}{junk}{text[place:]}Done.")
    assert (calls_of(got), got["answer"].strip()) == ([WHOLE], f"{junk}Done.")


@given(st.sampled_from(list(SAMPLES)), st.data())
def test_a_call_cut_short_adds_nothing_to_the_answer(style, data):
    text = SAMPLES[style]
    end = data.draw(st.integers(value_of(text), len(text)))
    got = told(run(splitter(style), [text[:end]]))
    assert got["answer"] == ""
    assert [name for name, *_ in got["calls"]] == ["get_weather"]
    assert got["why"] == []


@pytest.mark.parametrize("style", ["hermes", "mistral", "kimi-k2", "deepseek", "cohere", "apertus", "harmony"])
@pytest.mark.parametrize("brace", ["}", "}}", "\n}"])
def test_braces_too_many_are_markup(style, brace):
    end = SAMPLES[style].rindex("}") + 1
    got = split(style, SAMPLES[style][:end] + brace + SAMPLES[style][end:])
    assert (calls_of(got), got["answer"].strip(), got["why"]) == ([WHOLE], "", [])


@pytest.mark.parametrize("style", ["hermes", "cohere", "apertus"])
def test_an_object_without_its_last_brace_is_a_call(style):
    end = SAMPLES[style].rindex("}")
    got = split(style, SAMPLES[style][:end] + SAMPLES[style][end + 1 :])
    assert (calls_of(got), got["answer"], got["why"]) == ([WHOLE], "", [])


@pytest.mark.parametrize(
    ("style", "text", "calls"),
    [
        ("mistral", "[TOOL_CALLS]now[ARGS]", [("now", "", "open")]),
        ("mistral", "[TOOL_CALLS]now[ARGS][TOOL_CALLS]now[ARGS]{}", [("now", "{}", "complete")] * 2),
        ("functionary", "<function=now></function>", [("now", "{}", "complete")]),
        ("harmony", " to=functions.now<|message|><|call|>", [("now", "{}", "complete")]),
        (
            "plamo3",
            (
                "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>now"
                "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:end_tool_arguments:plamo|>"
                "<|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>"
            ),
            [("now", "{}", "complete")],
        ),
    ],
)
def test_empty_arguments_are_an_empty_object(style, text, calls):
    got = split(style, text)
    assert (got["calls"], got["answer"]) == (calls, "")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{'a', 'b'}", ["a", "b"]),
        ("{1, 2,}", [1, 2]),
        ("{'a'}", ["a"]),
        ("{(1, 2), 'x'}", [[1, 2], "x"]),
        ("{}", {}),
        ("{'a': {1}}", {"a": [1]}),
        ("[{'a, b': 1}, {'c, d'}]", [{"a, b": 1}, ["c, d"]]),
    ],
)
def test_sets_of_python_are_lists(value, expected):
    got = split("lfm2", f"<|tool_call_start|>[get_weather(tags={value})]<|tool_call_end|>So.")
    assert (calls_of(got), got["answer"]) == ([("get_weather", {"tags": expected})], "So.")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('tags:["a","b\\n"]', {"tags": ["a", "b\n"]}),
        ("tags:['a, b', \"c: d\"]", {"tags": ["a, b", "c: d"]}),
        ('d:{"a":"x","b":1}', {"d": {"a": "x", "b": 1}}),
        ('"city":"Paris","d":{"k":["v"]}', {"city": "Paris", "d": {"k": ["v"]}}),
        ("city:'Paris'", {"city": "Paris"}),
        ("city:'tis the season,days:3", {"city": "'tis the season", "days": 3}),
        ('city:"Old" Town,days:3', {"city": '"Old" Town', "days": 3}),
        ('city:"' + "x" * 3000 + '"', {"city": "x" * 3000}),
        ('city:<|"|>say "hi", x<|"|>', {"city": 'say "hi", x'}),
    ],
)
def test_gemma_may_write_json(written, expected):
    got = split("gemma4", f"<|tool_call>call:get_weather{{{written}}}<tool_call|>So.")
    assert (calls_of(got), got["answer"], got["why"]) == ([("get_weather", expected)], "So.", [])


@pytest.mark.parametrize(("style", "closer"), [("gemma4", "<tool_call|>"), ("hermes", "</tool_call>")])
def test_the_end_of_a_block_may_stand_twice(style, closer):
    got = split(style, SAMPLES[style] + closer + closer + "Done." + closer)
    assert (calls_of(got), got["answer"]) == ([WHOLE], "Done." + closer)
    got = split(style, SAMPLES[style] + "\n" + closer + "\n" + closer + "\nDone.")
    assert (calls_of(got), got["answer"]) == ([WHOLE], "\nDone.")
    got = split(style, SAMPLES[style] + "\n" + closer[:-1])
    assert (calls_of(got), got["answer"]) == ([WHOLE], "\n" + closer[:-1])


@pytest.mark.parametrize(("style", "closer"), [("kimi-k2", "<|tool_call_end|>"), ("qwen3-coder", "</function>")])
def test_the_end_of_a_call_may_stand_behind_the_block(style, closer):
    text = SAMPLES[style].replace(closer, "")
    got = split(style, text + closer + "Done.")
    assert (calls_of(got), got["answer"]) == ([WHOLE], "Done.")


def test_a_block_of_code_behind_one_with_a_call_stays():
    call = 'Action:\n```json\n[{"tool_name": "now", "parameters": {}}]\n```'
    got = split("command-r-plus", call + "\n```py\nx\n```")
    assert (got["calls"], got["answer"]) == ([("now", "{}", "complete")], "\n```py\nx\n```")


SWALLOWED = {
    "qwen3-coder": ("<parameter=tags>", "<parameter=tags"),
    "glm": ("<arg_key>tags</arg_key>", "<arg_key>tags"),
}


@pytest.mark.parametrize("style", SWALLOWED)
def test_a_name_of_a_parameter_without_its_end_takes_no_text_behind_the_call(style):
    whole, broken = SWALLOWED[style]
    text = SAMPLES[style].replace(whole, broken)
    for end in (text, text.replace('["b"]', "")):
        got = split(style, end + "\nSo.\n" + SAMPLES[style])
        assert (calls_of(got), got["answer"].strip()) == ([WHOLE], "So.")
        assert got["calls"][0][::2] == ("get_weather", "malformed")


@pytest.mark.parametrize("style", ["glm", "iquest-q1", "hunyuan-v3-preview"])
@pytest.mark.parametrize("line_end", ["", "\n"])
def test_the_next_parameter_ends_a_value_without_its_closing_tag(style, line_end):
    calls = tool_style_of(style)
    opener, name_end = (
        "".join((calls.opens[0], calls.call_opens)),
        "".join(calls.name_ends[:1]) if style != "glm" else "",
    )
    pairs = (("city", "A < <arg_key> b"), ("days", "3"), ("tags", '["<arg_key>x</arg_key>"]'))
    tags = [f"<arg_key>{key}</arg_key>\n<arg_value>{value}" for key, value in pairs]
    closers = calls.call_closes + calls.closes
    got = split(style, f"{opener}get_weather{name_end}{line_end.join(tags)}</arg_value>{closers}So.")
    expected = {"city": "A < <arg_key> b", "days": 3, "tags": ["<arg_key>x</arg_key>"]}
    assert (calls_of(got), got["answer"], got["why"]) == ([("get_weather", expected)], "So.", [])


def test_tags_of_several_first_characters_are_the_same_on_the_fast_path():
    style = ParameterStyle(
        name="own",
        opens=("{call}",),
        closes="{/call}",
        name_stops=("[",),
        key_opens="[key]",
        key_closes=(("[/key]", "schema"),),
        value_opens="<value>",
        value_closes="</value>",
    )
    for end in (
        "3 {/call}",
        "3\n[key]city[/key]<value>B b</value>{/call}",
        "3 [key]city[/key]<value>B b[key]d[/key]<value>{}{/call}",
    ):
        text = f"{{call}}get_weather[key]days[/key]<value>{end}So."
        expected = told(run(make_splitter(Styles(None, style), [DAYS]), [text]))
        decoder = ChatDecoder(TOK, tool_style=style, tools=[DAYS])
        deltas = [delta for token_id in TOK.encode(text) for delta in decoder.feed([token_id])] + decoder.finish()
        assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == expected["answer"]
        arguments = "".join(delta.arguments for delta in deltas if isinstance(delta, ToolCallDelta))
        assert arguments == expected["calls"][0][1]


@pytest.mark.parametrize("style", ["glm", "minimax-m2", "deepseek-v3.2", "minicpm5", "seed-oss"])
def test_the_end_of_a_call_ends_a_number_without_its_closing_tag(style):
    calls = tool_style_of(style)
    begin = calls.opens[0] if calls.call_opens in ("", calls.opens[0]) else calls.opens[0] + calls.call_opens
    name_end = "" if style == "glm" else calls.name_ends[0]
    text = f"{begin}get_weather{name_end}{calls.key_opens}days{calls.key_closes[-1][0]}{calls.value_opens}3\n"
    got = split(style, f"{text}{calls.call_closes}{calls.closes}So.", tools=[WEATHER])
    assert (calls_of(got), got["answer"]) == ([("get_weather", {"days": 3})], "So.")


@pytest.mark.parametrize(
    "text",
    [
        "<|tool_call_start|>get_weather(city='A', tags=['b'])]<|tool_call_end|>",
        "<|tool_call_start|>[get_weather(city='A', tags=['b'])]]<|tool_call_end|>",
        "<|tool_call_start|>[get_weather(city='A', tags=['b']))]<|tool_call_end|>",
        "<|tool_call_start|>[get_weather (city='A', tags=['b'])]<|tool_call_end|>",
        "<|tool_call_start|>[get_weather\n(city='A', tags=['b'])\n]<|tool_call_end|>",
    ],
)
def test_brackets_of_calls_in_python(text):
    got = split("lfm2", text + "So.")
    assert (calls_of(got), got["answer"], got["why"]) == ([WHOLE], "So.", [])


@pytest.mark.parametrize(
    "arguments",
    ["city='A'", "city='A']", "city='A', tags=['b'", "city='A', tags=['b')]", "d={'a': 'b'", "days=3", "days=[3"],
)
def test_a_call_in_python_without_its_brackets_ends_with_its_block(arguments):
    got = split("lfm2", f"<|tool_call_start|>[get_weather({arguments}<|tool_call_end|>So.")
    assert (got["calls"][0][::2], got["answer"]) == (("get_weather", "malformed"), "So.")


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("lfm2", "<|tool_call_start|>[get_weather(city='A', tags=['b'])]"),
        ("lfm2", "<|tool_call_start|>get_weather(city='A', tags=['b'])"),
        ("minicpm4", "<|tool_call_start|>\n```python\nget_weather(city='A', tags=['b'])\n```"),
    ],
)
def test_a_block_of_calls_in_python_may_lack_its_end(style, text):
    for prose in ("\nHere it is.", "\nDone.", "\nDone (twice)."):
        got = split(style, text + prose)
        assert (calls_of(got), got["answer"]) == ([WHOLE], prose)
    got = split(style, f"{text}\n{text}\nSo.")
    assert (calls_of(got), got["answer"].strip()) == ([WHOLE] * 2, "So.")


@pytest.mark.parametrize("call", ["call: get_weather{", "call:get_weather {", "call:\n get_weather\n{"])
def test_white_space_round_a_name_in_gemma(call):
    got = split("gemma4", SAMPLES["gemma4"].replace("call:get_weather{", call) + "So.")
    assert (calls_of(got), got["answer"], got["why"]) == ([WHOLE], "So.", [])


@pytest.mark.parametrize("space", [" ", "\n"])
def test_white_space_before_arguments_in_mistral(space):
    for text in (SAMPLES["mistral"], SAMPLES["mistral"].replace("[ARGS]", "")):
        got = split("mistral", text.replace("{", space + "{"))
        assert (calls_of(got), got["answer"], got["why"]) == ([WHOLE], "", [])


@pytest.mark.parametrize("style", ["gemma4", "functiongemma"])
@pytest.mark.parametrize("value", ["3", "a few", "[3"])
def test_a_call_without_its_brace_ends_with_its_block(style, value):
    calls = tool_style_of(style)
    got = split(style, f"{calls.opens[0]}call:get_weather{{days:{value}{calls.closes}So.")
    assert (got["calls"][0][::2], got["answer"]) == (("get_weather", "malformed"), "So.")


OPENED = {
    **{style: SAMPLES[style] for style in SAMPLES if style != "harmony"},
    "granite": '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "A", "tags": ["b"]}}]',
    "sarashina": "<|tool_calls|>[{'name': 'get_weather', 'arguments': {'city': 'A', 'tags': ['b']}}]",
    "dots": '<dots_function_call>[{"name": "get_weather", "arguments": {"city": "A", "tags": ["b"]}}]</dots_function_call>',
    "hunyuan-v3-preview": "<tool_calls>\n<tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>A</arg_value>"
    '<arg_key>tags</arg_key><arg_value>["b"]</arg_value></tool_call></tool_calls>',
}


@pytest.mark.parametrize("space", ["", "\n"])
@pytest.mark.parametrize("style", OPENED)
def test_the_beginning_of_a_block_may_stand_twice(style, space):
    calls = tool_style_of(style)
    opener = next(mark for mark in calls.opens if OPENED[style].startswith(mark))
    for mark in filter(None, (opener, calls.call_opens)):
        if mark[-1] in '="' or mark not in OPENED[style]:
            continue
        got = split(style, "Now. " + OPENED[style].replace(mark, mark + space + mark, 1) + "So.")
        assert (calls_of(got), got["answer"], got["why"]) == ([WHOLE], "Now. So.", [])


@pytest.mark.parametrize("style", ["hermes", "glm", "lfm2", "qwen3-coder"])
def test_the_answer_may_repeat_the_beginning_that_the_prompt_ends_with(style):
    opener = tool_style_of(style).opens[0]
    for space in ("", "\n"):
        pieces = run(ToolParser(style, TOOLS, opener=opener), list(space + SAMPLES[style] + "So."))
        got = told(pieces)
        assert (calls_of(got), got["answer"], got["why"]) == ([WHOLE], "So.", [])


@pytest.mark.parametrize("style", ["hermes", "glm", "lfm2", "kimi-k2", "hunyuan-v3-preview", "sarashina"])
def test_a_doubled_beginning_without_a_call_is_text(style):
    opener = tool_style_of(style).opens[0]
    for text in (f"{opener}{opener}", f"{opener}\n{opener} is twice here.", f"{opener * 5} and so on."):
        got = split(style, text)
        assert (got["answer"], got["calls"]) == (text, [])


def test_a_block_of_code_hides_tags_of_thinking():
    for fence in ("```", "````md", "  ```"):
        text = f"So:\n{fence}\n<think>\nx\n</think>\n{fence.strip('md')}\n<think>y</think>z"
        got = split("hermes", text, thinking="think")
        assert (got["thinking"], got["answer"]) == ("y", text.replace("<think>y</think>", ""))
    got = split("hermes", "`````\n```\n<think>\n`````\n<think>y</think>z", thinking="think")
    assert (got["thinking"], got["answer"]) == ("y", "`````\n```\n<think>\n`````\nz")


@given(
    st.lists(
        st.sampled_from(["`", "``", "```", "````", "\n", " ", "\u3000", "a", "<think>", "</think>", "<tool_call>"])
    )
)
def test_blocks_of_code_do_not_depend_on_the_cutting(parts):
    text = "".join(parts)
    assert run(splitter("hermes", "think"), list(text)) == run(splitter("hermes", "think"), [text])


FENCED = [
    "`",
    "```",
    "```py\n",
    "\n",
    "\n```\n",
    " ",
    "\u3000",
    "words in a row ",
    "<think>",
    "\n<think>",
    "</think>",
    "<tool_call>",
]


@given(st.lists(st.sampled_from(FENCED), max_size=14), st.sampled_from([None, "hermes"]))
def test_blocks_of_code_are_the_same_on_the_fast_path(parts, calls):
    """The core passes text without markup by itself, and must stop where a code block may begin or end."""
    text = "".join(parts)
    decoder = ChatDecoder(TOK, reasoning="think", tool_style=calls, tools=TOOLS)
    deltas = [delta for token_id in TOK.encode(text) for delta in decoder.feed([token_id])] + decoder.finish()
    styles = Styles(style_of("think"), tool_style_of(calls) if calls else None)
    expected = told(without_blank_blocks(run(make_splitter(styles, TOOLS), [text])))
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == expected["answer"]
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == expected["thinking"]


def test_code_in_brackets_is_no_call_unless_it_names_a_tool():
    text = "```python\nprint([f(a=1) for x in y])\n```"
    assert split("pythonic", text, tools=[])["answer"] == text
    got = split("pythonic", "Now. [get_weather(city='A')]")
    assert (calls_of(got), got["answer"]) == ([("get_weather", {"city": "A"})], "Now. ")


# -- how much is held back ---------------------------------------------------------------------------------------------


def most_held(style, text, **options):
    parser, most = splitter(style, **options), 0
    for char in text:
        parser.feed(char)
        most = max(most, len(parser.held))
    return most


@pytest.mark.parametrize(
    ("style", "opener"),
    [
        ("harmony", "<|channel|>commentary"),
        ("kimi-k2", "<|tool_call_begin|>"),
        ("plamo3", "<|plamo:begin_tool_request:plamo|>"),
    ],
)
def test_a_mention_of_markup_is_held_for_a_few_words(style, opener):
    text = f"<|message|>The text {opener} is what begins a call, and more words follow it. " + "words " * 300
    assert most_held(style, text) <= len(opener) + 12
    assert split(style, text)["calls"] == []


WITHOUT_TAGS = {
    "llama3": '{"name": "get_weather", "parameters": %s}',
    "xlam": '[{"name": "get_weather", "arguments": %s}]',
}


@pytest.mark.parametrize("style", WITHOUT_TAGS)
@pytest.mark.parametrize(
    "arguments",
    [
        '{"city": "Z\nürich", "days": 3}',
        '{"city": Zürich, "d": {"a": 1}}',
        "{'city': 'Bern', 'tags': [1, {2}]}",
        "{city: 3}",
    ],
)
@pytest.mark.parametrize("behind", ["", "\n", "\nBye {you}.", " So it is."])
def test_a_known_call_without_tags_that_breaks_is_no_answer(style, arguments, behind):
    call = WITHOUT_TAGS[style] % arguments
    got = split(style, call + behind)
    assert (got["answer"].strip(), len(got["calls"])) == (behind.strip(), 1)
    assert got["calls"][0][0] == "get_weather" and got["calls"][0][2] != "complete"
    assert got["calls"][0][1].startswith(arguments)
    shown = split(style, call + behind, tools=[])
    assert shown["answer"].strip().endswith(behind.strip())  # without tools it may be JSON that is no call


def test_a_long_array_goes_out_as_it_comes():
    value = json.dumps([{"text": "</x> é", "n": n} for n in range(200)])
    text = f"<tool_call>\n<function=get_weather>\n<parameter=tags>\n{value}\n</parameter>\n</function>\n</tool_call>"
    assert most_held("qwen3-coder", text) <= 1100
    assert calls_of(split("qwen3-coder", text)) == [("get_weather", {"tags": json.loads(value)})]
    python = str(json.loads(value))
    assert calls_of(split("qwen3-coder", text.replace(value, python))) == [("get_weather", {"tags": json.loads(value)})]


def test_a_long_array_that_breaks_is_malformed():
    value = json.dumps(list(range(500)))[:-1] + ", }"
    text = f"<tool_call>\n<function=get_weather>\n<parameter=tags>\n{value}\n</parameter>\n</function>\n</tool_call>"
    got = split("qwen3-coder", text + "So.")
    assert [end for *_, end in got["calls"]] == ["malformed"]
    assert got["answer"] == "So."
