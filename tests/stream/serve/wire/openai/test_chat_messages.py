"""Messages of Chat Completions as messages for a chat template."""

import pytest

from tokenweir.stream.serve.wire.openai.chat_messages import chat_messages
from tokenweir.stream.serve.wire.shared.errors import RequestError


def test_a_call_of_another_servers_custom_tool_is_that_of_a_function():
    call = {"id": "c1", "type": "custom", "custom": {"name": "apply_patch", "input": '"ü"\n'}}
    messages = chat_messages(
        [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "ok"}]
    )
    (made,) = messages[0]["tool_calls"]
    assert made["function"] == {"name": "apply_patch", "arguments": '{"input": "\\"ü\\"\\n"}'}
    assert messages[1]["name"] == "apply_patch"


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_call_without_its_tool_is_refused_by_name(kind):
    call = {"id": "c1", "type": kind, "other": {}}
    with pytest.raises(RequestError, match=f"Object missing required field `{kind}`") as caught:
        chat_messages([{"role": "assistant", "tool_calls": [call]}])
    assert caught.value.param.startswith("messages")
