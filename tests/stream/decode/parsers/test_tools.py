"""Tool calls of every style. What vLLM's and SGLang's published tests of their parsers say is restated here; where this
project decides otherwise, the test says so."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from splitting import check_passing, cut, run, told
from splitting import split_calls as split

from tokenweir.stream.decode.parsers.base import MAX_HEADER
from tokenweir.stream.decode.parsers.blocks.json_block import JsonBlock
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.tools import TOOL_STYLES

WEATHER = '{"city": "Tōkyō \\"}\\u00e9", "days": [1, {"x": null}]}'
MAX_HELD = JsonBlock.MAX_HELD
STYLES = [style for style in TOOL_STYLES.values() if style.grammar == "json" and style.name != "harmony"]
"""Others have tests of their own: test_parameter_block.py, test_literal_block.py."""


def write(style, *calls):
    """Write calls, each a name and the text of its arguments, as a model of the style does."""
    objects = [call_object(style, name, arguments) for name, arguments in calls]
    match style.name:
        case "deepseek":
            return block(style, [f"{name}<｜tool▁sep｜>{arguments}" for name, arguments in calls])
        case "kimi-k2":
            return block(
                style,
                [
                    f"functions.{name}:{number} <|tool_call_argument_begin|>{arguments}"
                    for number, (name, arguments) in enumerate(calls)
                ],
            )
        case "plamo3":
            return block(
                style,
                [
                    f"<|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|>"
                    "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
                    f"{arguments}<|plamo:end_tool_arguments:plamo|>"
                    for name, arguments in calls
                ],
            )
        case "mirothinker":
            head = "\n<server_name>it</server_name>\n<tool_name>{}</tool_name>\n<arguments>\n{}\n</arguments>"
            return style.opens[0] + "".join(head.format(*call) for call in calls) + style.closes
        case "step-audio-2":
            return "".join(f"{style.opens[0]}{name}\n{arguments}{style.closes}" for name, arguments in calls)
        case "yandexgpt":
            return "\n".join(f"{style.opens[0]}{name}\n{arguments}" for name, arguments in calls)
        case "solar-open":
            return "".join(
                f"{style.opens[0]}id-{number}<|tool_call:name|>{name}<|tool_call:args|>{arguments}{style.closes}"
                for number, (name, arguments) in enumerate(calls)
            )
        case "granite-20b-fc":
            return "".join(f"{style.opens[0]} {text}\n" for text in objects)
        case "functionary-v3.2":
            return "".join(f">>>{name}\n{arguments}" for name, arguments in calls)
        case "functionary":
            return "".join(f"<function={name}>{arguments}</function>" for name, arguments in calls)
        case "llama3":
            return style.opens[0] + "; ".join(objects)
    if style.call_opens:
        return block(style, objects)
    if style.lists and style.name != "hermes":
        return f"{style.opens[0].removesuffix('[')}[{', '.join(objects)}]{style.closes}"
    return "\n".join(f"{style.opens[0]}\n{text}\n{style.closes}" for text in objects)


def call_object(style, name, arguments):
    if not style.name_keys:
        return f'{{"{name}": {arguments}}}'
    return f'{{"{style.name_keys[0]}": "{name}", "{style.argument_keys[0]}": {arguments}}}'


def block(style, texts):
    return style.opens[0] + "".join(style.call_opens + text + style.call_closes for text in texts) + style.closes


def answer(text):
    return {"answer": text, "thinking": "", "calls": [], "why": []}


def test_a_call_cut_short_before_its_arguments_has_its_name():
    got = split("hermes", '<tool_call>{"name": "f", "arguments')
    assert (got["calls"], got["answer"]) == ([("f", "", "open")], "")


# -- every style -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_calls_come_with_the_name_first_and_the_arguments_as_written(style):
    text = "Let me see.\n" + write(style, ("get_weather", WEATHER), ("now", "{}"))
    got = split(style, text)
    assert got["calls"] == [("get_weather", WEATHER, "complete"), ("now", "{}", "complete")]
    assert got["answer"].rstrip() == "Let me see."
    assert got["why"] == []


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("name", ["天気", "été_2", "get-it.now"])
def test_a_name_has_any_letters(style, name):
    assert split(style, write(style, (name, "{}")))["calls"] == [(name, "{}", "complete")]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_arguments_go_out_as_they_come(style):
    text = write(style, ("get_weather", WEATHER))
    parser, taken = ToolParser(style), ""
    end = text.index(WEATHER) + len(WEATHER)
    for place, char in enumerate(text[:end]):
        taken += "".join(piece.text for piece in parser.feed(char) if piece.channel is Channel.TOOL_CALL)
        assert taken == text[text.index(WEATHER) : place + 1]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_call_cut_short_anywhere_is_never_complete(style):
    text = write(style, ("get_weather", WEATHER))
    whole = text.index(WEATHER) + len(WEATHER) + (0 if style.header and not style.lists else 1)
    for end in range(len(text)):
        got = told(run(ToolParser(style), [text[:end]]))
        if end < whole:
            assert all(state == "open" and WEATHER.startswith(args) for _, args, state in got["calls"])
        if not got["calls"]:  # nothing is lost
            assert got["answer"] == text[:end]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_arguments_that_are_no_json_break_the_call_and_later_calls_live(style):
    text = write(style, ("bad", '{"a": 1,}'))
    got = split(style, text + "\n" + write(style, ("good", "{}")))
    name, arguments, end = got["calls"][0]
    assert (name, end) == ("bad", "malformed")
    assert got["calls"][1:] == [("good", "{}", "complete")]
    assert got["why"] == ["'}' cannot stand here in the JSON"]
    if style.doubtful:  # perhaps no call
        assert (arguments, got["answer"][0]) == ('{"a": 1,', "}")
    else:
        assert arguments.startswith('{"a": 1,}')
        assert got["answer"].strip() == ""


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_mention_in_a_sentence_comes_out_as_text(style):
    for text in (f"the text {style.opens[0]} begins a call", f"{style.opens[0]}", f"{style.opens[0][:-1]}"):
        got = split(style, text)
        assert (got["answer"], got["calls"]) == (text, [])


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("mention", ["Say `{}`.\n", "{}:\n", "{} {} "])
def test_a_call_after_a_mention_is_one(style, mention):
    mention = mention.replace("{}", style.opens[0])
    got = split(style, mention + write(style, ("f", '{"a": 1}')))
    assert got["calls"] == [("f", '{"a": 1}', "complete")]
    assert got["answer"].rstrip() == mention.rstrip()


WORDS = {
    style.name: [
        *style.opens,
        style.opens[0][:-1],
        *filter(None, (style.closes, style.call_opens, style.call_closes)),
        *style.tails,
        *"{}[],;: \n<",
        '"name"',
        '"tool_name": "f"',
        '"arguments": ',
        '{"name": "f", "arguments": ',
        '{"a": 1}',
        "word",
        write(style, ("f", '{"b": 2}')),
        write(style, ("f", '{"b": 2}'))[len(style.opens[0]) :],
    ]
    for style in STYLES
}


@given(st.sampled_from(STYLES), st.data())
def test_every_cutting_gives_the_same_pieces(style, data):
    words = data.draw(st.lists(st.sampled_from(WORDS[style.name]), max_size=8))
    text = "".join(words)
    whole = run(ToolParser(style), [text])
    assert run(ToolParser(style), list(text)) == whole
    assert run(ToolParser(style), cut(text, data.draw(st.lists(st.integers(0, 200), max_size=4)))) == whole
    for name, arguments, state in told(whole)["calls"]:
        assert name
        if state == "complete":
            json.loads(arguments)


@given(st.sampled_from(STYLES), st.data())
def test_what_may_pass_comes_as_it_is_and_copies_and_states_are_independent(style, data):
    words = data.draw(st.lists(st.sampled_from([*WORDS[style.name], "so it is", "line\n"]), max_size=8))
    check_passing(lambda: ToolParser(style), words, '{"')


# -- what the peers' tests say, one style after the other --------------------------------------------------------------


def test_a_second_word_in_a_header_may_not_pass():
    """The white space before it waits, and the word shows that there is no header."""
    check_passing(lambda: ToolParser(TOOL_STYLES["solar-open"]), ["<|tool_call:begin|>", '"arguments": ', "}"], '{"')


def test_text_without_calls_passes():
    for style in STYLES:
        text = "Nothing of this has to do with tools; 1 < 2 and [a] is no call."
        assert split(style, text) == answer(text)


def test_hermes():
    one = '<tool_call>\n{"name": "final_answer", "arguments": {"trigger": true}}\n</tool_call>'
    assert split("hermes", one)["calls"] == [("final_answer", '{"trigger": true}', "complete")]
    assert split("qwen3", one.removesuffix("\n</tool_call>"))["calls"][0][2] == "complete"  # it ends with the answer
    assert split("hermes", one.removesuffix("}\n</tool_call>"))["calls"][0][2] == "open"
    two = '<tool_call>{"name": "s", "arguments": {"q": "a"}}</tool_call>' * 2
    assert [call[1] for call in split("hermes", two)["calls"]] == ['{"q": "a"}'] * 2
    assert split("hermes", "Sure." + two)["answer"] == "Sure."


def test_arguments_written_as_a_string_are_passed_on_as_one():
    """vLLM takes JSON out of such a string; it is passed on here as it was written, and is JSON all the same."""
    text = '<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>'
    assert split("hermes", text)["calls"] == [("f", '"{\\"a\\": 1}"', "complete")]


def test_a_call_without_arguments_has_empty_ones():
    assert split("hermes", '<tool_call>{"name": "f"}</tool_call>')["calls"] == [("f", "{}", "complete")]


def test_arguments_before_the_name_wait_for_it():
    text = '[TOOL_CALLS] [{"arguments":{"name": "John Doe"}, "name": "get_age"}]'
    assert split("mistral", text)["calls"] == [("get_age", '{"name": "John Doe"}', "complete")]
    pieces = ToolParser("mistral").feed(text)
    assert [(piece.name, piece.text) for piece in pieces[:2]] == [("get_age", ""), ("", '{"name": "John Doe"}')]
    assert pieces[0].source == text[: text.index(', "name": "get_age"') + len(', "name": "get_age"')]


def test_a_name_that_does_not_come_is_not_waited_for_for_ever():
    text = '<tool_call>{"arguments": {"a": "' + "x" * MAX_HELD
    parser = ToolParser("hermes")
    pieces = [piece for start in range(0, len(text), 999) for piece in parser.feed(text[start : start + 999])]
    assert pieces[0].source == text[:MAX_HELD]
    assert pieces[0].malformed == f"no name comes within {MAX_HELD} characters"
    assert not parser.held
    assert told(run(ToolParser("hermes"), [text]))["answer"] == text


def test_llama3():
    parameters = '{"query": "test {value} [complex]", "nested": {"inner": "more {brackets}"}}'
    text = f'{{"name": "searchTool", "parameters": {parameters}}}'
    assert split("llama3", text)["calls"] == [("searchTool", parameters, "complete")]
    assert split("llama3", text.replace("parameters", "arguments"))["calls"] == [("searchTool", parameters, "complete")]
    for separator in ("; ", ";", " ; ", ";\n", "\n"):
        assert len(split("llama3", separator.join([text] * 3))["calls"]) == 3
    for rest in (" I used {searchTool} for this.", ' The arguments were {"query": "test"}'):
        got = split("llama3", text + rest)
        assert (len(got["calls"]), got["answer"]) == (1, rest)
    tagged = split("llama3", "<|python_tag|>" + text)
    assert (tagged["calls"], tagged["answer"]) == ([("searchTool", parameters, "complete")], "")


def test_llama3_objects_that_are_no_calls_are_answers():
    for text in (
        '{"parameters": {}}',
        '{"name": "toolWithoutParams"}',
        '{"name": "Bob", "age": 3}',
        "{hello",
        '{"name": "x", "age',
        '{"name": 1, "parameters": {}}',
        '{"a": {"name": "f", "parameters": {}}}',
    ):
        assert split("llama3", text) == answer(text)


def test_llama3_calls_may_stand_after_prose():
    text = 'Here is the result: {"name": "getOpenIncidentsTool", "parameters": {}} More?'
    got = split("llama3", text)
    assert (got["answer"], got["calls"]) == (
        "Here is the result:  More?",
        [("getOpenIncidentsTool", "{}", "complete")],
    )


@pytest.mark.parametrize(
    "text",
    [
        'Write {"name": "Bob", "age": 3} or {"name": 1}.',
        'It is {"calls": [{"name": "f", "parameters": {}}], "name": "f"} then.',
        '{"a": {"name": "f", "parameters": {}}}',
        'Call it as {"name": "unknown", "parameters": {"x": {"name": "f", "parameters": {}}}}.',
        "int main() { return {1}; } // {",
        '{"name": "f"',
    ],
)
def test_llama3_objects_that_are_no_calls(text):
    got = split("llama3", text, [{"name": "f"}])
    assert got == answer(text)


def test_llama3_arguments_that_are_no_json():
    """vLLM gives the whole text as content; the name has gone out here before that is known."""
    got = split("llama3", '{"name": "invalidTool", "parameters": {invalid json}')
    assert got["calls"] == [("invalidTool", "{", "malformed")]
    assert got["answer"] == "invalid json}"


def test_mistral():
    for text in (
        '[TOOL_CALLS][{"name": "add", "arguments":{"a": 3.5, "b": 4}}]',
        '[TOOL_CALLS] [{"name": "add", "arguments":{"a": 3.5, "b": 4}}]',
        '[TOOL_CALLS]add{"a": 3.5, "b": 4}',
        '[TOOL_CALLS]add[ARGS]{"a": 3.5, "b": 4}',
        '[TOOL_CALLS]add[CALL_ID]a1B2c3D4e[ARGS]{"a": 3.5, "b": 4}',
    ):
        assert split("mistral", text)["calls"] == [("add", '{"a": 3.5, "b": 4}', "complete")]
        twice = split("mistral", "Hello" + text * 2)  # vLLM refuses a list after a list
        assert (len(twice["calls"]), twice["answer"]) == (2, "Hello")
    trailing = split("mistral", '[TOOL_CALLS] [{"name": "f", "arguments": {}}]\nextra trailing data')
    assert (len(trailing["calls"]), trailing["answer"]) == (1, "\nextra trailing data")


def test_mistral_markup_that_begins_no_call():
    """vLLM searches on for a list behind other words; here the text comes out, and nothing is searched in it."""
    got = split("mistral", "[TOOL_CALLS] not json at all")
    assert (got["answer"], got["calls"]) == ("[TOOL_CALLS] not json at all", [])
    assert got["why"] == ["'not' is no name before arguments"]
    long = "[TOOL_CALLS]" + "x" * 2 * MAX_HEADER
    assert split("mistral", long)["why"] == [f"there are no arguments within {MAX_HEADER} characters"]


def test_deepseek_v3_and_r1():
    text = (
        "ok<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        '{"location": "Paris"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n'
        "{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )
    got = split("deepseek-v3", text)
    assert got["calls"] == [("get_weather", '{"location": "Paris"}', "complete"), ("now", "{}", "complete")]
    assert (got["answer"], got["why"]) == ("ok", [])


def test_deepseek_v31_whose_function_is_called_function():
    text = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    assert split("deepseek", text)["calls"] == [("function", "{}", "complete")]


def test_kimi_k2():
    call = '<|tool_call_begin|>{} <|tool_call_argument_begin|>{{\n  "html": "<div>"\n}}<|tool_call_end|>'
    begin, end = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
    for shown in ("functions.get_weather:0", "get_weather:0"):
        assert split("kimi-k2", begin + call.format(shown) + end)["calls"][0][0] == "get_weather"
    # vLLM takes the function of a bare number from the tools' schemas, which are not known here.
    got = split("kimi-k2", "a" + begin + call.format("0") + call.format("functions.good:1") + end)
    assert [name for name, *_ in got["calls"]] == ["good"]
    assert got["answer"] == "a" + begin + call.format("0")


def test_qwen25_coder():
    text = '<tools>\n{"name": "f", "arguments": {"a": 1}}\n</tools>'
    assert split("qwen25-coder", text)["calls"] == [("f", '{"a": 1}', "complete")]
    listed = '<tools>[{"name": "f", "parameters": {}}, {"name": "g", "arguments": {}}]</tools>So.'
    got = split("qwen25-coder", listed)
    assert (got["calls"], got["answer"]) == ([("f", "{}", "complete"), ("g", "{}", "complete")], "So.")


def test_step_audio():
    got = split("step_audio_2", 'So.<tool_call>function\nforecast\n{"at": "Bern"}</tool_call>')
    assert (got["calls"], got["answer"]) == ([("forecast", '{"at": "Bern"}', "complete")], "So.")
    assert split("step_audio_2", "a <tool_call>function\nof many words")["calls"] == []


def test_rwkv():
    text = '**Tool Call:**\n```json\n{"name": "f", "arguments": {"a": "```"}}\n```\n'
    got = split("rwkv", text * 2)
    assert (got["calls"], got["answer"].strip()) == ([("f", '{"a": "```"}', "complete")] * 2, "")


def test_built_in_tools_of_llama():
    got = split("llama31", '<|python_tag|>brave_search.call(query="x (y)")')
    assert (got["calls"], got["answer"]) == ([("brave_search", '{"query": "x (y)"}', "complete")], "")
    got = split("llama31", 'Now. {"name": "f", "parameters": {"a": 1}}', [{"name": "f"}])
    assert (got["calls"], got["answer"]) == ([("f", '{"a": 1}', "complete")], "Now. ")
    for text in ("<|python_tag|>print(1)", "<|python_tag|>x = search(query=1)"):
        assert split("llama31", text)["answer"] == text


@pytest.mark.parametrize("opener", ["<|tool_calls|>", ""])
def test_sarashina(opener):
    tools = [{"name": "look"}, {"name": "now"}]
    calls = "[{'name': 'look', 'arguments': {'at': 'Bern]}', 'n': [1, None]}}, {'name': \"now\"}]"
    got = split("sarashina", f"{opener}{calls} So.", tools)
    assert [(name, json.loads(arguments)) for name, arguments, _ in got["calls"]] == [
        ("look", {"at": "Bern]}", "n": [1, None]}),
        ("now", {}),
    ]
    assert (got["answer"], got["why"]) == (" So.", [])


def test_sarashina_lists_that_are_no_calls():
    for text in (
        "[1] A note.",
        "[{'name': 'unknown', 'arguments': {}}]",
        "[{'a': 1}]",
        "[{'name': 'look', 'argu",
        "[]",
    ):
        assert split("sarashina", text, [{"name": "look"}]) == answer(text)
    got = split("sarashina", "<|tool_calls|>[{'name': f(), 'arguments': {}}] So.")
    assert (got["calls"], got["answer"][-4:]) == ([], " So.")
    long = "<|tool_calls|>[{'name': 'f', 'arguments': {'a': '" + "\\'" * MAX_HELD
    assert told(run(ToolParser("sarashina"), [long]))["answer"] == long


SARASHINA = [
    "<|tool_calls|>",
    "[",
    "]",
    "{'name': 'f', 'arguments': {",
    "}",
    "}}",
    ",",
    "'",
    '"',
    "\\",
    " ",
    "x",
    "{'name': 'g'}",
]


@given(st.lists(st.sampled_from(SARASHINA), max_size=12), st.lists(st.integers(0, 200), max_size=4))
def test_sarashina_does_not_depend_on_the_cutting(parts, places):
    text = "".join(parts)
    whole = run(ToolParser("sarashina"), [text])
    assert run(ToolParser("sarashina"), cut(text, places)) == whole
    assert run(ToolParser("sarashina"), list(text)) == whole


@given(st.lists(st.sampled_from(SARASHINA), max_size=12))
def test_sarashina_states_are_independent(words):
    check_passing(lambda: ToolParser("sarashina"), words, "[{'")


def test_cohere():
    text = (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "search", "parameters": {"q": "x"}},\n'
        '    {"tool_call_id": "1", "tool_name": "now", "parameters": {}}\n]<|END_ACTION|>'
    )
    assert split("cohere", text)["calls"] == [("search", '{"q": "x"}', "complete"), ("now", "{}", "complete")]


def test_objects_one_to_a_line():
    text = '<tool_calls>\n{"name": "a", "arguments": {}}\n{"name": "b", "arguments": {}}\n</tool_calls>'
    assert [name for name, *_ in split("minimax-m1", text)["calls"]] == ["a", "b"]


# -- malformed calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "named"), [("<x", False), ("Tx", False), ("[T", True), ("tx", True), ("-x", True)])
def test_the_name_goes_out_if_a_value_begins_however_soon_it_breaks(value, named):
    before, after = '<tool_call>{"name": "f", "arguments": ', f"{value}}}</tool_call>"
    whole = run(ToolParser("hermes"), [before + after])
    assert any(piece.name for piece in whole) is named
    for place in range(len(after) + 1):
        assert run(ToolParser("hermes"), [before, after[:place], after[place:]]) == whole
        assert run(ToolParser("hermes"), [before + after[:place], after[place:]]) == whole


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (
            '{"id": "a", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}',
            [("f", '{"a": 1}', "complete")],
        ),
        ('{"function": {"arguments": {"a": 1}, "name": "f"}, "type": "x"}', [("f", '{"a": 1}', "complete")]),
        ('[{"function": {"name": "f"}}, {"name": "g"}]', [("f", "{}", "complete"), ("g", "{}", "complete")]),
        ('{"name": "f", "function": {"name": "g"}, "arguments": {}}', [("f", "{}", "complete")]),
        ('{"function": {"function": {"name": "f"}}}', []),
        ('{"function": {}}', []),
        ('{"function": {"name": "f", "arguments": {}}', [("f", "{}", "complete")]),
    ],
)
def test_a_call_may_be_the_object_of_a_client(text, calls):
    assert split("hermes", f"<tool_call>{text}</tool_call>")["calls"] == calls


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<tool_call>word</tool_call>", "'w' stands where a call should begin"),
        ("<tool_call>[1]</tool_call>", "'1' stands where a call should begin"),
        ("<tool_call>{}</tool_call>", "the object has no name"),
        ('<tool_call>{"name": 1}</tool_call>', "the name is not a string"),
        ('<tool_call>{"name": ""}</tool_call>', "the name '' is empty or has a lone surrogate"),
        ('<tool_call>{"name": "\\ud800"}</tool_call>', r"the name '\ud800' is empty or has a lone surrogate"),
        ('<tool_call>{"name": "f", "name": "g"}</tool_call>', "the name came before"),
        ("<tool_call>{'name': 1}</tool_call>", '"\'" cannot stand here in the JSON'),
        ('<tool_call>{"name": "f', "the answer ends inside a tool call"),
        ('<tool_call>{"' + "k" * 1024, "the key is longer than 1024 characters"),
    ],
)
def test_what_is_no_call_comes_out_with_the_reason(text, reason):
    got = split("hermes", text)
    assert (got["answer"], got["calls"]) == (text, [])
    assert got["why"] == [reason]


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("1,}}", "'}' cannot stand here in the JSON"),
        ('"a\n"}}', r"'\n' cannot stand here in a string"),
        ("[" * 128 + "]" * 128 + "}}", "the JSON is nested more than 128 levels deep"),
        ('1}, "arguments": {}}', "the arguments came before"),
        ('1}, "name": "g"}', "the name came before"),
        ("1} x}", "'x' cannot stand here in the JSON"),
    ],
)
def test_a_call_that_breaks_after_its_name_says_so_and_keeps_its_rest(rest, reason):
    text = '<tool_call>{"name": "f", "arguments": {"a": ' + rest + "</tool_call> So"
    got = split("hermes", text)
    assert [(name, state) for name, _, state in got["calls"]] == [("f", "malformed")]
    assert got["calls"][0][1].endswith(rest[-1])
    assert got["why"] == [reason]
    assert got["answer"] == " So"
    pieces = run(ToolParser("hermes"), [text])
    assert pieces[-1].source == " So"
    assert pieces[-1].malformed is None


def test_text_after_a_call_in_its_block_is_text_and_tags_are_markup():
    got = split("hermes", '<tool_call>{"name": "f", "arguments": {}} so</tool_call>')
    assert got["calls"] == [("f", "{}", "complete")]
    assert (got["answer"], got["why"]) == (" so", ["'s' stands after a call"])


def test_white_space_between_blocks_stays():
    text = write(TOOL_STYLES["hermes"], ("f", "{}"), ("g", "{}"))
    assert split("hermes", text)["answer"] == "\n"


def test_white_space_has_an_end():
    text = "[TOOL_CALLS]" + " " * 2 * MAX_HELD
    parser = ToolParser("mistral")
    parser.feed(text)
    assert not parser.held
    assert told(run(ToolParser("mistral"), [text[:9], text[9:]]))["answer"] == text


def test_apertus_where_the_name_is_the_key_of_the_arguments():
    got = split("apertus", 'So.<|tools_prefix|>[{"f": {"a": 1}}, {"g": {}}]<|tools_suffix|>')
    assert got["calls"] == [("f", '{"a": 1}', "complete"), ("g", "{}", "complete")]
    got = split("apertus", '<|tools_prefix|>[{"f": {"a": 1}, "g": 2}]<|tools_suffix|>')
    assert (got["calls"], got["why"]) == ([("f", '{"a": 1}2}]', "malformed")], ["the arguments came before"])
    got = split("apertus", "<|tools_prefix|>[{}]<|tools_suffix|>")
    assert (got["calls"], got["why"]) == ([], ["the object has no name"])


def opened(style, opener, text):
    """Split what follows a prompt that ends with an opening text."""
    whole = run(ToolParser(style, opener=opener), [text])
    assert run(ToolParser(style, opener=opener), list(text)) == whole
    return told(whole)


def test_functionary_where_the_prompt_has_begun_with_the_recipient():
    def read(text):
        return opened("functionary-v3.2", ">>>", text)

    assert read("all\nType >>> x\n>>> all\n") == answer("Type >>> x\n>>> all\n")
    assert read("al") == answer("al")
    got = read('all\nSo.>>>f\n{"a": 1}>>>g\n{}')
    assert (got["answer"], got["calls"]) == ("So.", [("f", '{"a": 1}', "complete"), ("g", "{}", "complete")])
    assert read('all_of\n{"a": 1}')["calls"] == [("all_of", '{"a": 1}', "complete")]
    assert read("python\nimport sys") == answer("python\nimport sys")  # code is no JSON


@pytest.mark.parametrize(
    ("style", "opener", "text"),
    [
        ("hermes", "<tool_call>", '\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'),
        ("qwen3-coder", "<function=", "f>\n<parameter=a>\n1\n</parameter>\n</function>"),
        ("gemma4", "<|tool_call>", "call:f{a:1}<tool_call|>"),
    ],
)
def test_a_block_that_the_prompt_has_begun(style, opener, text):
    got = opened(style, opener, text)
    assert [(name, json.loads(arguments), state) for name, arguments, state in got["calls"]] == [
        ("f", {"a": 1}, "complete")
    ]
    assert opened(style, opener, "I cannot.")["answer"] == "I cannot."


LIST = '[{"name": "f", "arguments": {"a": 1}}]'


@pytest.mark.parametrize(
    "text", [LIST, f"```json\n{LIST}\n```", f"[TOOL_CALLS]{LIST}", f"<tool_call>{LIST}</tool_call>", f" \n{LIST}\n"]
)
def test_the_forms_of_xlam(text):
    got = split("xlam", text)
    assert (got["answer"].strip(), got["calls"], got["why"]) == ("", [("f", '{"a": 1}', "complete")], [])


@pytest.mark.parametrize(
    "text",
    [
        '```json\n[{"x": "a<tool_call>b"}]\n```',
        '```json\n{"name": "Bob", "arguments": 1}\n```',
        '```json\n[{"name": "Bob"}, {"name": "Al"}]\n```\nSo.',
        "```json\n[]\n```",
        "[]",
        "[1, 2]",
        "```json",
        "```js\nf()\n```",
        '[{"name": "Bob"}]',
    ],
)
def test_what_may_be_no_call_is_text_and_no_broken_call(text):
    assert split("xlam", text) == answer(text)


def test_a_module_of_python_begins_no_call():
    text = "import functools\n\n@functools.cache\ndef f(): ..."
    assert split("phi4-functools", text) == answer(text)
    assert split("phi4-functools", 'functools[{"name": "f"}]')["calls"] == [("f", "{}", "complete")]


def test_kimi_k2_with_text_between_calls():
    def call(number):
        return f"<|tool_call_begin|>functions.f:{number}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"

    section, end = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
    for text in (
        f"{section}{call(0)}\nNow.\n{call(1)}{end}",
        f"{section}{call(0)}{end}\nNow.\n{section}{call(1)}{end}",
    ):
        got = split("kimi-k2", text)
        assert (got["answer"], got["calls"]) == ("\nNow.\n", [("f", "{}", "complete")] * 2)
