from __future__ import annotations

import pytest

from tokenweir.templates.styles.shown import shown_reasoning, shown_tools, style_of_answer


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("List of tools: <|tool_list_start|>[", "lfm2"),
        ("List of tools: [", "lfm2"),
        ("<tool_call>", "hermes"),
        ("]<]minimax[>[<tool_call>", "minimax-m3"),
        ("<tool_call> <function= <parameter=", "qwen3-coder"),
        ('{"name": function name, "parameters": dictionary of argument name and its value}', "llama3"),
        ("Respond in this format:\n>>>${recipient}\n${content}", "functionary-v3.2"),
        ("in the format of [func_name1(params_name1=params_value1), func_name2(params)]", "pythonic"),
        ("<|start|>assistant to=NAME<|message|><atem:function_calls>", "muse"),
        ("make calls in a single JSON array: \n\n[", "xlam"),
        ("nothing of the kind", None),
    ],
)
def test_a_text_shows_its_style(text, style):
    assert shown_tools(text) == style


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("{{- '<|start|>assistant to=self<|message|>' + message['reasoning_content'] -}}", "muse"),
        ("{{ '[|assistant|]<thought>\n' }}", "thought"),  # EXAONE Deep
        ("{{ '<think>' if thinking else '<thought>' }}", "think"),
    ],
)
def test_a_text_shows_its_thinking(text, style):
    assert shown_reasoning(text) == style


def test_without_tools_only_markup_of_every_answer_is_looked_for():
    assert style_of_answer("hermes", [{}]) == "hermes"
    assert style_of_answer(None, [{}]) == "auto"
    assert style_of_answer("hermes", None) is style_of_answer(None, None) is None
    assert style_of_answer("functionary-v3.2", None) == "functionary-v3.2"
