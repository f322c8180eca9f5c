"""Thinking in the forms of other servers, and their leftovers, in messages of Chat Completions."""

import pytest

from tokenweir.stream.serve.wire.openai.chat_messages import chat_messages
from tokenweir.stream.serve.wire.shared.errors import RequestError

ENCRYPTED = {"type": "redacted_thinking", "data": "x"}
MISTRALS = {
    "type": "thinking",
    "thinking": [{"type": "text", "text": "H"}, {"type": "text", "text": "m."}],
    "closed": True,
}
ANTHROPICS = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
YES = {"type": "text", "text": "Yes."}


@pytest.mark.parametrize(
    "message",
    [
        {"content": [MISTRALS, YES]},
        {"content": [ENCRYPTED, ANTHROPICS, YES]},
        {"content": [YES, ANTHROPICS | {"thinking": "H"}, ANTHROPICS | {"thinking": "m."}]},
        {"content": "Yes.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}, {"data": "x"}]},
        {"content": "Yes.", "reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}], "reasoning": None},
        {"content": "Yes.", "thinking_blocks": [ANTHROPICS, "?"]},
        {"content": "Yes.", "reasoning_details": [{"type": "reasoning.text", "text": "else"}], "reasoning": "Hm."},
        {"content": [YES, ANTHROPICS], "reasoning_content": "Hm."},
        {"content": [{"type": "output_text", "text": "Yes."}], "thinking": "Hm."},
        {"content": "Yes.", "reasoning_details": "?", "reasoning_content": "Hm."},
    ],
)
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
