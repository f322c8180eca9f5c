"""Jobs of chat completions: words of other APIs for the same request."""

import pytest

from tokenweir.stream.serve.answers.job import chat_job
from tokenweir.stream.serve.wire.openai.chat import parse_chat

HI = [{"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "weather"}}]


def job(**fields):
    return chat_job(parse_chat({"messages": HI, **fields}), "demo")


def test_any_is_mistrals_word_for_required():
    assert job(tools=TOOLS, tool_choice="any") == job(tools=TOOLS, tool_choice="required")


@pytest.mark.parametrize("thinks", [True, False])
def test_enable_thinking_is_a_variable_of_the_template(thinks):
    asked = {"enable_thinking": thinks, "thinking": thinks}
    assert job(enable_thinking=thinks).template_kwargs == asked
    assert job(enable_thinking=thinks, chat_template_kwargs={"thinking": "own"}).template_kwargs["thinking"] == "own"
    assert job(enable_thinking=None) == job()
    assert job(enable_thinking=False, reasoning_effort="high").template_kwargs["enable_thinking"] is False
