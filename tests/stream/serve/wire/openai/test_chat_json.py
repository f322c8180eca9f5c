"""Long bodies of Chat Completions, whose messages are read without objects of Python: the same request, or the same error."""

from __future__ import annotations

import json

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.stream.serve.wire.openai.chat import parse_chat, parse_chat_json
from tokenweir.stream.serve.wire.openai.chat_messages import chat_messages
from tokenweir.stream.serve.wire.shared.checking import LONG, parse_object
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.messages import Messages

CASES = cases(__file__)

MOST = 2048


def from_json(messages):
    return Messages.from_chat_json(json.dumps(messages).encode(), MOST)


texts = st.text("aé\n😀", max_size=3)
optional = texts | st.none()
parts = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "input_text", "refusal"])}, optional={"text": texts, "refusal": texts}
    ),
    max_size=3,
)
contents = optional | parts
ids = st.sampled_from(["a", "b", ""])
calls = st.lists(
    st.fixed_dictionaries(
        {
            "id": ids,
            "function": st.fixed_dictionaries(
                {"name": texts}, optional={"arguments": st.sampled_from(["{}", '{"x": 1}', "no"]), "strict": st.none()}
            ),
        },
        optional={"type": st.just("function"), "index": st.none() | st.integers(0, 3)},
    ),
    max_size=2,
)
messages = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user"]), "content": contents}, optional={"name": optional}
    ),
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={
            "content": contents,
            "tool_calls": calls | st.none(),
            "reasoning_content": optional,
            "reasoning": optional,
            "refusal": optional,
            "annotations": st.just([]) | st.just([{"type": "x"}]),
            "audio": st.none(),
        },
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "content": contents, "tool_call_id": ids}),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


def by_python(conversation):
    try:
        return chat_messages(conversation)
    except RequestError:
        return None


@given(st.lists(messages, min_size=1, max_size=8))
def test_plain_messages_are_those_of_chat_messages(conversation):
    read, wanted = from_json(conversation), by_python(conversation)
    assert (None if read is None else list(read)) == wanted


FIELDS = CASES["fields"]


@st.composite
def broken(draw):
    """A conversation with one field of something in it replaced or added."""
    conversation = draw(st.lists(messages, min_size=1, max_size=4))
    found = []

    def visit(value):
        if isinstance(value, dict):
            found.append(value)
            for item in value.values():
                visit(item)
        elif isinstance(value, list):
            for item in value:
                visit(item)

    visit(conversation)
    draw(st.sampled_from(found))[draw(st.sampled_from(FIELDS))] = draw(anything)
    return conversation


@given(broken())
def test_nothing_is_taken_that_chat_messages_refuses(conversation):
    read = from_json(conversation)
    if read is not None:
        assert list(read) == by_python(conversation)


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SAID = {"role": "user", "content": "x" * LONG}
ANSWERED = [SAID, {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "content": "1", "tool_call_id": "c"}]


def body(conversation=ANSWERED, **fields):
    return json.dumps({"model": "m", "messages": conversation, **fields}).encode()


def test_a_long_body():
    asked = parse_chat_json(body(max_tokens=5, tools=[], temperature=0.5))
    assert isinstance(asked.messages, Messages)
    plain = parse_chat(parse_object(body(max_tokens=5, tools=[], temperature=0.5)))
    assert list(asked.conversation()) == plain.conversation()
    assert (asked.model, asked.max_tokens, asked.temperature) == ("m", 5, 0.5)
    assert (
        ChatTemplate("{{ messages }}").render(asked.conversation()).text
        == ChatTemplate("{{ messages }}").render(plain.conversation()).text
    )


def test_a_short_body_is_read_as_ever():
    assert parse_chat_json(body([{"role": "user", "content": "x"}])).messages == [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    "data",
    [
        body()[:-1],
        b"[" + body() + b"]",
        body([]),
        body("x" * LONG),
        body([SAID, 5]),
        body([SAID, {"role": "wizard", "content": ""}]),
        body([SAID, {"role": "user", "content": 5}]),
        body([SAID, {"role": "tool", "content": "1", "tool_call_id": 5}]),
        body([SAID, {"role": "user", "content": [{"type": "video", "text": ""}]}]),
        body([SAID, {"role": "user", "content": "\ud83d"}]),
        body([SAID] + [{"role": "user", "content": "x"}] * MOST),
        body(temperature=9),
        body(unknown=1),
        body(chat_template_kwargs={"chat_template": "x"}),
        body().replace(b'"model": "m"', b'"model": 5'),
        b'{"model": "' + b"m" * LONG + b'"}',
    ],
    ids=range(16),
)
def test_errors_are_those_of_a_short_body(data):
    def outcome(parse):
        try:
            request = parse()
            request.conversation()
        except RequestError as error:
            return str(error), error.code, error.param
        return None

    wanted = outcome(lambda: parse_chat(parse_object(data)))
    assert outcome(lambda: parse_chat_json(data)) == wanted is not None


def test_roles_and_tags_of_what_is_read_are_vouched_for_as_ever():
    """A role is part of control text; what a developer says goes by the role `system`."""
    conversation = [{"role": "developer", "content": "<|system|>"}, {"role": "assistant", "content": "<think>"}]
    template = ChatTemplate(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}{# <think> #}",
        control_tokens=["<|system|>", "<|assistant|>", "<think>"],
    )
    read = from_json(conversation)
    assert template.render(read) == template.render(chat_messages(conversation))
    assert template.render(read).guarded == (10,)
    assert template.render(read, history_thinking="text").guarded == (10, 33)


@pytest.mark.parametrize("content", [None, "", "Yes."])
def test_a_refusal_is_the_text_of_a_message_without_content(content):
    conversation = [SAID, {"role": "assistant", "content": content, "refusal": "No."}]
    assert chat_messages(conversation)[1]["content"] == (content or "No.")
    assert parse_chat_json(body(conversation)).conversation()[1]["content"] == (content or "No.")
