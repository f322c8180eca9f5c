from __future__ import annotations

import pytest

from tokenweir.stream.serve.wire.shared.message_builder import MessageBuilder


def talked():
    """A conversation with two calls, the second of which has the id of the first."""
    conversation = MessageBuilder()
    conversation.say("user", "Weather?")
    conversation.call("a", "weather", "{}")
    conversation.call("a", "now", "{}")
    return conversation


def test_calls_that_follow_each_other_are_one_message():
    messages = talked().end()
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert [call["function"]["name"] for call in messages[1]["tool_calls"]] == ["weather", "now"]


def test_what_a_call_gave_has_the_name_of_the_first_call_of_its_id():
    conversation = talked()
    conversation.answer("a", "sunny")
    assert conversation.end()[-1] == {"role": "tool", "content": "sunny", "tool_call_id": "a", "name": "weather"}


def test_a_conversation_that_goes_on_knows_the_calls_before_it_and_leaves_them_as_they_were():
    before = talked().end()
    conversation = MessageBuilder(before)
    conversation.answer("a", "sunny")
    conversation.call("b", "now", "{}")
    conversation.answer("b", "noon")
    assert [message.get("name") for message in conversation.end()] == [None, None, "weather", None, "now"]
    assert before == talked().end()


def test_a_result_without_its_call_stays_and_has_the_name_that_is_given():
    conversation = talked()
    conversation.answer("b", "rain")
    conversation.answer(None, "snow", "weather")
    conversation.answer("a", "sunny", "another")
    assert conversation.end()[-3:] == [
        {"role": "tool", "content": "rain", "tool_call_id": "b"},
        {"role": "tool", "content": "snow", "name": "weather"},
        {"role": "tool", "content": "sunny", "tool_call_id": "a", "name": "weather"},
    ]


@pytest.mark.parametrize(
    ("given", "text"), [(None, "{}"), ("", ""), ('{"a', '{"a'), ({"a": "é"}, '{"a": "é"}'), ([1], "[1]"), (5, "5")]
)
def test_arguments_become_text(given, text):
    conversation = MessageBuilder()
    conversation.call("a", "f", given)
    assert conversation.end()[0]["tool_calls"][0]["function"]["arguments"] == text
