"""Styles from a checkpoint's `response_template`; transformers' own parser is the reference."""

from __future__ import annotations

import json
import pickle

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir import ChatTemplate
from tokenweir.stream.decode.parsers.detection import Styles, make_splitter
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.response_template import NAME, reasoning_of, tool_style_of_template

CASES = cases(__file__)

parse_response = pytest.importorskip("transformers.utils.chat_parsing", reason="needs transformers 5.13").parse_response

NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}


def template(content, tool_calls=None, thinking=None):
    fields = {"thinking": thinking, "tool_calls": tool_calls, "content": content}
    return {
        "defaults": {"role": "assistant"},
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {name: field for name, field in fields.items() if field is not None},
    }


PLAIN = {"close": "<|im_end|>"}
THINK = {"open": "<think>", "close": "</think>"}


def json_call(opener, closer, name="name", arguments="arguments"):
    return lambda call: f"{opener}{json.dumps({name: call[0], arguments: call[1]})}{closer}"


def qwen_xml(call):
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in call[1].items())
    return f"<tool_call>\n<function={call[0]}>\n{parameters}</function>\n</tool_call>"


def python_call(call):
    return "<calls>[" + call[0] + "(" + ", ".join(f"{key}={value!r}" for key, value in call[1].items()) + ")]</calls>"


def harmony_call(call):
    opener = f"<|channel|>commentary to=functions.{call[0]} <|constrain|>json<|message|>"
    return f"{opener}{json.dumps(call[1])}<|call|><|start|>assistant"


# The styles that a template selects, and how an answer is written: its thinking, and a call.
WRITTEN = {
    "SmolLM3": (("think", "hermes"), "<think>\n{}\n</think>\n", json_call("<tool_call>\n", "\n</tool_call>")),
    "Qwen3-Coder": (("think", "qwen3-coder"), "<think>\n{}\n</think>\n", qwen_xml),
    "gpt-oss": (("harmony",) * 2, "<|channel|>analysis<|message|>{}<|end|><|start|>assistant", harmony_call),
    "Cohere": (
        ("cohere", "cohere"),
        "<|START_THINKING|>{}<|END_THINKING|>",
        json_call("<|START_ACTION|>[", "]<|END_ACTION|>", "tool_name", "parameters"),
    ),
    "own JSON": ((NAME, NAME), "<<hm>>{}<<so>>", json_call("<<call>>", "<<end>>", "fn", "with")),
    "own list": ((None, NAME), "", json_call("<<call>>[", "]<<end>>", "fn", "with")),
    "own Python": ((None, NAME), "", python_call),
}
SPECS = {name: template(**fields) for name, fields in CASES["fields"].items()}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}},
        },
    }
]
TEXTS = st.text(st.sampled_from("ab é.,\n"), max_size=12)
VALUES = st.fixed_dictionaries(
    {}, optional={"n": st.integers(-99, 99), "s": st.sampled_from(["x", "two words", "é\\n"])}
)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_template_selects_styles(name):
    spec, expected = SPECS[name], WRITTEN[name][0]
    thinking, calls = reasoning_of(spec), tool_style_of_template(spec)
    assert (thinking and thinking.name, calls and calls.name) == expected


@given(st.sampled_from(list(WRITTEN)), TEXTS, TEXTS, st.none() | VALUES, st.booleans())
def test_messages_are_those_of_transformers(name, thought, answer, arguments, strict):
    spec, (_, think, write) = SPECS[name], WRITTEN[name]
    opened = {"gpt-oss": "<|channel|>final<|message|>", "Cohere": "<|START_RESPONSE|>"}.get(name, "")
    text = think.format(thought) + ("" if arguments is None else write(("f", arguments)))
    text += opened + answer
    message = parse_response(text, spec, prefix="", tools=TOOLS)
    got = read(spec, text)
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", [])]
    assert got == (message.get("thinking", ""), message.get("content", ""), calls)


def read(spec, text):
    """Split an answer by the styles that a response template describes."""
    splitter = make_splitter(Styles(reasoning_of(spec), tool_style_of_template(spec)), TOOLS)
    texts, calls = {Channel.ANSWER: "", Channel.REASONING: ""}, []
    for piece in [*splitter.feed(text), *splitter.finish()]:
        if piece.channel is Channel.TOOL_CALL:
            if piece.name:
                calls.append([piece.name, ""])
            calls[-1][1] += piece.text
        elif piece.channel is not None:
            texts[piece.channel] += piece.text
    made = [(name, json.loads(arguments)) for name, arguments in calls]
    return texts[Channel.REASONING].strip(), texts[Channel.ANSWER].strip(), made


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"version": 2, "fields": {"thinking": THINK}},
        {"fields": [THINK]},
        {"fields": {"thinking": "<think>", "tool_calls": None}},
        template(PLAIN, {"open": "<a>", "close": "</a>", "content": "kv-lines"}, {"open": "<a>"}),
        template(PLAIN, {"open": "<a>", "close": ["</a>", "</b>"], "content": "json"}, {"open": "a", "close": "ab"}),
        template(PLAIN, {"open_pattern": "(a+)+b", "close": "</a>", "content": "json"}, {"open": [""], "close": 3}),
        template(
            PLAIN,
            {
                "open": "a",
                "close": "b",
                "content": "json",
                "content_args": {"x": 1},
                "transform": {"function": "{content}"},
            },
        ),
    ],
)
def test_what_is_not_described_exactly_selects_nothing(spec):
    assert (reasoning_of(spec), tool_style_of_template(spec)) == (None, None)


def test_it_is_the_first_source_of_a_folders_styles(tmp_path):
    config = {"chat_template": "{{ '<think>' }}<tool_call>", "response_template": SPECS["own JSON"]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    chat = pickle.loads(pickle.dumps(ChatTemplate.from_file(tmp_path)))
    assert (chat.reasoning.name, chat.tool_style.name) == (NAME, NAME)
    config["response_template"] = SPECS["Cohere"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    chat = ChatTemplate.from_file(tmp_path)
    assert (chat.reasoning, chat.tool_style) == ("cohere", "cohere")
    del config["response_template"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    chat = ChatTemplate.from_file(tmp_path)
    assert (chat.reasoning, chat.tool_style) == ("think", "hermes")


TRL = {
    "qwen3_template": ("think", "hermes"),
    "qwen3_5_template": ("think", "qwen3-coder"),
    "glm4moe_template": ("think", "glm"),
    "llama3_template": (None, None),
    "gptoss_template": ("harmony", None),
    "lfm2_2_5_template": ("think", None),
    "nemotron_3_template": (None, "qwen3-coder"),
    "gemma4_template": ("gemma4", "gemma4"),
}
"""The styles that TRL's response templates select. Others are found by the chat template or the vocabulary."""


@pytest.mark.parametrize("name", TRL)
def test_trls_templates_select_the_style_of_their_calls(data, name):
    spec = json.loads(data("fidelity-4/response-templates/trl-1.16.json").read_text())[name]
    reasoning, tools = reasoning_of(spec), tool_style_of_template(spec)
    assert (reasoning and reasoning.name, tools and tools.name) == TRL[name]


@pytest.mark.parametrize(("template_name", "response", "thinking", "calls"), CASES["pairs"])
def test_a_chat_template_and_its_response_template_agree(data, template_name, response, thinking, calls):
    source = data(f"fidelity-4/templates/{template_name}.jinja").read_text()
    spec = json.loads(data("fidelity-4/response-templates/trl-1.16.json").read_text())[response]
    chat = ChatTemplate(source, response_template=spec)
    name = lambda style: getattr(style, "name", style)
    assert (name(chat.reasoning), name(chat.tool_style)) == (thinking, calls)


def calls_between(opener, closer, parameter="<parameter=(?P<key>[^>]+)>(?P<value>.*?)</parameter>"):
    return template(
        PLAIN,
        {
            "open_pattern": opener,
            "close": closer,
            "repeats": True,
            "content": "xml-inline",
            "content_args": {"tag_pattern": parameter, "value_parser": {"name": "text"}},
            "transform": NAMED,
        },
    )


INVOKED = '<parameter name="(?P<key>[^"]+)">(?P<value>.*?)</parameter>'
ESCAPED = "(?P<key>\\w+):<escape>(?P<value>.*?)<escape>"
ARG = "<arg_key>(?P<key>[^<]+)</arg_key><arg_value>(?P<value>.*?)</arg_value>"


@pytest.mark.parametrize(
    ("spec", "style"),
    [
        (calls_between("<function=(?P<name>[^>]+)>", "</function>"), "qwen3-coder"),
        (calls_between("<seed:tool_call>\\s*<function=(?P<name>[^>]+)>", "</seed:tool_call>"), "seed-oss"),
        (calls_between('<invoke name="(?P<name>[^"]+)">', "</invoke>", INVOKED), None),
        (calls_between("<minimax:tool_call>", "</minimax:tool_call>", INVOKED), "minimax-m2"),
        (calls_between("<tool_call>(?P<name>[^<]+)", "</tool_call>", ARG), "glm"),
        (calls_between("<tool_calls>", "</tool_calls>", ARG), "hunyuan-v3-preview"),
        (calls_between("<start_function_call>call:(?P<name>\\w+)", "<end_function_call>", ESCAPED), "functiongemma"),
        (calls_between("<start_function_call>call:(?P<name>\\w+)", "<end_function_call>"), None),
    ],
)
def test_the_opening_text_of_a_call_inside_a_block_shows_no_style(spec, style):
    found = tool_style_of_template(spec)
    assert (found and found.name) == style
