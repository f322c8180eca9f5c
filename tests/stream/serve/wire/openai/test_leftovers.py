"""Thinking in the forms of other servers, and their leftovers, in messages of Chat Completions."""

import pytest
from case_tables import cases

from tokenweir.stream.serve.wire.openai.chat_messages import chat_messages
from tokenweir.stream.serve.wire.shared.errors import RequestError

CASES = cases(__file__)

ENCRYPTED = {"type": "redacted_thinking", "data": "x"}
MISTRALS = CASES["mistrals"]
YES = {"type": "text", "text": "Yes."}


@pytest.mark.parametrize("message", CASES["readable_thinking_is_shown_once"])
def test_readable_thinking_is_shown_once(message):
    expected = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    assert chat_messages([{"role": "assistant"} | message]) == [expected]


@pytest.mark.parametrize("content", [[ENCRYPTED, YES], [YES, {"type": "thinking"}], [YES, MISTRALS | {"thinking": 5}]])
def test_what_cannot_be_read_is_left_out(content):
    assert chat_messages([{"role": "assistant", "content": content}]) == [{"role": "assistant", "content": "Yes."}]


@pytest.mark.parametrize("part", [MISTRALS, ENCRYPTED])
def test_only_the_assistant_thinks(part):
    with pytest.raises(RequestError, match=r"^messages\[0\].content\[1\] is of type '(redacted_)?thinking'") as refused:
        chat_messages([{"role": "user", "content": [YES, part]}])
    assert refused.value.param == "messages[0].content[1]"
