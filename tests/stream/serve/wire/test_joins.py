"""Contents of messages: texts are joined once, whatever shape of request they come in."""

import msgspec
import pytest

from tokenweir.stream.serve.wire.anthropic.requests import parse_message
from tokenweir.stream.serve.wire.openai.chat_messages import chat_messages
from tokenweir.stream.serve.wire.responses.compaction import question
from tokenweir.stream.serve.wire.responses.requests import parse_create, parse_event
from tokenweir.stream.serve.wire.shared import contents
from tokenweir.stream.serve.wire.shared.message_builder import MessageBuilder

PIECE = "🙂" * 10


def parts(n, kind="text"):
    return [{"type": kind, "text": PIECE}] * n


def turns(role, n, **more):
    return [{"role": role, "content": PIECE, **more}] * n


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USED = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
CALLED = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a"}


def messages(given):
    asked = parse_message({"model": "m", "max_tokens": 9, "messages": given}, max_items=10_000)
    return asked.history(later_system=False, keep_billing_header=False, max_items=10_000).messages


def blocks(*given):
    return messages([{"role": "user", "content": "?"}, *given])


def responses(*items):
    return parse_create({"model": "m", "input": list(items)}, max_items=10_000).messages(max_items=10_000)


def socket(n):
    item = {"role": "user", "content": parts(n, "input_text")}
    data = msgspec.json.encode({"type": "response.create", "model": "m", "input": [item]}).decode()
    return parse_event(data, max_items=10_000).messages(max_items=10_000)


SHAPES = {
    "messages: user turns": lambda n: messages(turns("user", n)),
    "messages: assistant turns": lambda n: blocks(*turns("assistant", n)),
    "messages: later system": lambda n: blocks(*turns("system", n)),
    "messages: later system, behind an answer": lambda n: blocks(*turns("assistant", 1), *turns("system", n)),
    "messages: blocks of one turn": lambda n: messages([{"role": "user", "content": parts(n)}]),
    "messages: a tool's result": lambda n: blocks(
        USED, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": parts(n)}]}
    ),
    "messages: system": lambda n: messages([{"role": "user", "content": "?"}, {"role": "system", "content": parts(n)}]),
    "responses: parts": lambda n: responses({"role": "user", "content": parts(n, "input_text")}),
    "responses: the output of a call": lambda n: responses(CALLED, OUTPUT | {"output": parts(n, "input_text")}),
    "websocket: parts": socket,
    "chat and tokenize: parts": lambda n: chat_messages([{"role": "user", "content": parts(n)}]),
    "chat: a result's parts": lambda n: chat_messages(
        [
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "a", "content": parts(n)},
        ]
    ),
    "compact": lambda n: question(responses({"role": "user", "content": parts(n, "input_text")})),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_joining_copies_each_text_a_few_times_at_most(shape, monkeypatch):
    copied = 0
    text_part = contents.text_part

    def counted(text):
        nonlocal copied
        copied += len(text)
        return text_part(text)

    monkeypatch.setattr(contents, "text_part", counted)
    for n in (50, 200):
        copied = 0
        joined = SHAPES[shape](n)[-1]["content"]
        assert joined.count(PIECE) == n
        assert copied <= 4 * len(joined)
        assert type(joined) is str


class Counted(str):
    """A text that counts the characters that adding to it copies."""

    copied = 0

    def __add__(self, other):
        Counted.copied += len(self) + len(other)
        return Counted(str(self) + other)

    __radd__ = __add__


@pytest.mark.parametrize("n", [50, 200])
def test_thinking_is_joined_once(n):
    Counted.copied = 0
    conversation = MessageBuilder()
    for _ in range(n):
        conversation.think(Counted(PIECE))
    assert conversation.end() == [{"role": "assistant", "content": "", "reasoning_content": PIECE * n}]
    assert Counted.copied == 0
