"""A table of requests and their plans; messages are never looked at."""

from __future__ import annotations

import json

import pytest
from case_tables import cases
from msgspec.structs import replace

from tokenweir.encode.errors import ContextLengthError, TemplateError
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.chat.plan import MESSAGE_CHARACTERS, SHORT_PROMPT, AnswerRequest, plan_answer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.sampling import Sampling
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.styles.reasoning import style_of

CASES = cases(__file__)

PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
THINKING = (
    PLAIN + "{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}{% if think %}<think>\n{% endif %}{# </think> #}"
)
CHOOSING = THINKING + "{{ tool_choice }}{{ parallel_tool_calls }}"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
OTHER = {"type": "function", "function": {"name": "move", "parameters": {"type": "object"}}}
CHOSEN = {"type": "function", "function": {"name": "move"}}
MESSAGES = object()


class Plain:
    supports = frozenset({"temperature"})


class Constrained:
    supports = frozenset({"json_schema"})


PLAIN_ENGINE = Plain()
LONGEST = SHORT_PROMPT - MESSAGE_CHARACTERS
MOST_MESSAGES = SHORT_PROMPT // MESSAGE_CHARACTERS


def planned(source=THINKING, engine=PLAIN_ENGINE, **request):
    return plan_answer(AnswerRequest(**{"messages": MESSAGES} | request), ChatTemplate(source), engine=engine)


@pytest.mark.parametrize(
    "request_, shown, variables",
    [
        ({}, None, {}),
        ({"tools": [TOOL, OTHER]}, [TOOL, OTHER], {}),
        ({"tools": [TOOL, OTHER], "tool_choice": "auto"}, [TOOL, OTHER], {}),
        ({"tools": [TOOL], "tool_choice": "none"}, [TOOL], {"tool_choice": "none"}),
        ({"tools": [TOOL], "tool_choice": "required"}, [TOOL], {"tool_choice": "required"}),
        ({"tools": [TOOL, OTHER], "tool_choice": CHOSEN}, [OTHER], {"tool_choice": "required"}),
        ({"tools": [TOOL], "parallel_tool_calls": False}, [TOOL], {"parallel_tool_calls": False}),
        ({"template_kwargs": {"think": True}}, None, {"think": True}),
        ({"tools": [TOOL], "tool_choice": "none", "template_kwargs": {"tool_choice": 1}}, [TOOL], {"tool_choice": 1}),
    ],
)
def test_tools_and_variables(request_, shown, variables):
    plan = planned(CHOOSING, **request_)
    assert (plan.tools, plan.template_kwargs, plan.calls_as_json) == (shown, variables, False)
    assert plan.messages is MESSAGES


@pytest.mark.parametrize(
    "request_, options",
    [
        ({}, {"reasoning": style_of("think"), "tool_style": None}),
        ({"output": {"reasoning": "strip"}}, {"reasoning": replace(style_of("think"), strip=True)}),
        ({"output": {"reasoning": None}}, {"reasoning": None}),
        ({"output": {"reasoning": "cohere"}}, {"reasoning": "cohere"}),
        ({"tools": [TOOL]}, {"tool_style": "hermes", "tools": [TOOL], "parallel_tool_calls": True}),
        (
            {"tools": [TOOL], "template_kwargs": {"builtin_tools": ["python", "browser"]}},
            {
                "tools": [
                    TOOL,
                    {"name": "python"},
                    *({"name": f"browser.{name}"} for name in ("search", "open", "find")),
                ]
            },
        ),
        ({"tools": [TOOL], "output": {"tool_style": None}}, {"tool_style": None}),
        ({"tools": [TOOL], "parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        ({"messages": None, "prompt": "x"}, {"reasoning": None}),
        ({"messages": None, "prompt": [1], "output": {"reasoning": "auto"}}, {"reasoning": "auto"}),
        (
            {"sampling": Sampling(stop=("a",), stop_token_ids=(7,), min_tokens=2, ignore_eos=True)},
            {"stop": ("a",), "stop_token_ids": (7,), "min_tokens": 2, "ignore_eos": True},
        ),
    ],
)
def test_decoder_options(request_, options, make_tok):
    given = planned(**request_).decoder_options
    assert {name: given[name] for name in options} == options
    ChatDecoder(make_tok(AddedToken("<think>"), AddedToken("</think>")), **given)


def test_an_engine_that_honours_schemas_is_held_to_calls():
    plan = planned(engine=Constrained(), tools=[TOOL, OTHER], tool_choice=CHOSEN)
    assert plan.calls_as_json
    assert plan.sampling.json_schema["items"]["properties"]["name"] == {"type": "string", "enum": ["move"]}
    assert plan.decoder_options["reasoning"] is None
    assert plan.decoder_options["tool_style"] == "xlam"


@pytest.mark.parametrize(
    "request_, message",
    [
        (
            {"tools": [TOOL], "tool_choice": "required"},
            "^tool_choice='required' cannot be honoured: the engine is not ",
        ),
        (
            {"tools": [TOOL], "tool_choice": CHOSEN, "engine": Constrained()},
            "^tool_choice names 'move', which is not among ",
        ),
        (
            {
                "tools": [TOOL],
                "tool_choice": "required",
                "engine": Constrained(),
                "sampling": Sampling(grammar="root ::= x"),
            },
            "^tool_choice asks for calls, and grammar for an answer of another form$",
        ),
    ],
)
def test_choices_that_cannot_be_honoured(request_, message):
    with pytest.raises(TemplateError, match=message):
        planned(**request_)


class ThinksFirst(Constrained):
    thinks_first = True


HELD = [
    {"tools": [TOOL], "tool_choice": "required"},
    {"sampling": Sampling(json_schema={})},
    {"sampling": Sampling(grammar="root ::= x")},
]


@pytest.mark.parametrize("request_", HELD)
def test_an_answer_that_is_held_to_a_form_leaves_no_room_for_open_thinking(make_tok, request_):
    tok = make_tok(AddedToken("<think>"), AddedToken("</think>"))
    plan = planned(engine=Constrained(), **request_)
    assert plan.template_kwargs["enable_thinking"] is False
    assert tok.decode(plan.answer_opening(tok, tok.encode("<think>\n"))) == "</think>\n\n"
    assert plan.answer_opening(tok, tok.encode("<think>\na</think>")) == []
    for free in (
        planned(tools=[TOOL]),  # the model is left to its own markup
        planned(engine=ThinksFirst(), **request_),
        planned(engine=Constrained(), **request_ | {"prompt": "<think>"}),
    ):
        assert free.answer_opening(tok, tok.encode("<think>\n")) == []
        assert "enable_thinking" not in free.template_kwargs


def test_variables_of_the_request_win_over_those_that_close_the_thinking():
    plan = planned(engine=Constrained(), sampling=Sampling(json_schema={}), template_kwargs={"enable_thinking": True})
    assert plan.template_kwargs == {"enable_thinking": True, "thinking": False}


@pytest.mark.parametrize(
    "source, request_, message",
    [
        (PLAIN, {"tools": [TOOL]}, "takes no tools, and 1 are given$"),
        (PLAIN, {"tools": [TOOL], "engine": Constrained()}, r'are given; tool_choice "required" .* would be honoured$'),
        (THINKING, {"template_kwargs": {"messages": 1}}, "^a template's variable cannot be called messages$"),
    ],
)
def test_prompts_that_cannot_be_rendered(source, request_, message):
    with pytest.raises(TemplateError, match=message):
        planned(source, messages=[{"role": "user", "content": "x"}], **request_).render()


@pytest.mark.parametrize(
    "before, system",
    [
        ([], "Functions that can be called:\n"),
        ([{"role": "system", "content": "Be kind."}], "Be kind.\n\nFunctions that can be called:\n"),
    ],
)
def test_a_template_without_tools_gets_those_of_a_forced_call_in_the_system_message(before, system):
    messages = [*before, {"role": "user", "content": "x"}]
    plan = planned(PLAIN, messages=messages, tools=[TOOL], tool_choice="required", engine=Constrained())
    shown = [{"role": "system", "content": f"{system}{json.dumps(TOOL['function'])}"}, messages[-1]]
    assert plan.render().text == ChatTemplate(PLAIN).render(shown).text
    assert messages[:-1] == before


@pytest.mark.parametrize(
    "request_, short",
    [
        ({"messages": [{"role": "user", "content": "x" * LONGEST}]}, True),
        ({"messages": [{"role": "user", "content": "x" * (LONGEST + 1)}]}, False),
        ({"messages": [{"role": "user", "content": ""}] * MOST_MESSAGES}, True),
        ({"messages": [{"role": "user", "content": ""}] * (MOST_MESSAGES + 1)}, False),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, False),
        ({"messages": [{"role": "user", "content": "x"}], "tools": [TOOL]}, False),
        ({"messages": 5}, False),
    ],
)
def test_short_prompts_are_rendered_without_a_thread(request_, short):
    assert planned(**request_).is_short is short


@pytest.mark.parametrize("max_tokens, context_size, most, fitted", CASES["the_answers_length_fits_the_context"])
def test_the_answers_length_fits_the_context(max_tokens, context_size, most, fitted):
    plan = planned(sampling=Sampling(max_tokens=max_tokens))
    if not isinstance(fitted, str):
        assert plan.fit(10, context_size, most=most).max_tokens == fitted
        return
    with pytest.raises(ContextLengthError, match=f"^{fitted}"):
        plan.fit(10, context_size, most=most)
