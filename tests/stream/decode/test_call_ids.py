"""Ids of calls: made by whoever asks for them, once a call, in its first delta."""

from itertools import count

import pytest
from serving import TOK

from tokenweir.stream.chat.chat import chat
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import TextDelta, ToolCallDelta
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep
from tokenweir.templates.chat_template import ChatTemplate

pytestmark = pytest.mark.anyio

CALLS = (
    '<tool_call>{"name": "look", "arguments": {"at": "a"}}</tool_call>'
    '<tool_call>{"name": "look", "arguments": {"at": "b"}}</tool_call><|im_end|>'
)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
TEMPLATE = ChatTemplate(
    "{{ tools }}{% for m in messages %}{{ m.content }}{% for call in m.tool_calls or [] %}"
    "<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}{% endfor %}"
)


def calls_of(deltas):
    return [(delta.call, delta.id) for delta in deltas if isinstance(delta, ToolCallDelta) and delta.name]


def others_of(deltas):
    return {delta.id for delta in deltas if isinstance(delta, ToolCallDelta) and not delta.name}


def decoded(**options):
    decoder = ChatDecoder(TOK, tool_style="hermes", **options)
    return [delta for token_id in TOK.encode(CALLS) for delta in decoder.feed([token_id])] + decoder.finish()


def test_a_decoder_has_ids_of_those_who_make_them():
    assert calls_of(decoded()) == [(0, ""), (1, "")]
    made = decoded(call_ids=map("id{}".format, count()).__next__)
    assert calls_of(made) == [(0, "id0"), (1, "id1")]
    assert others_of(made) == {""}
    with pytest.raises(TypeError, match="^call_ids is a str, not a function$"):
        decoded(call_ids="id")


def test_a_saved_state_does_not_depend_on_them():
    ids, made = TOK.encode(CALLS), iter("abc")
    decoder = ChatDecoder(TOK, tool_style="hermes", call_ids=made.__next__)
    first = decoder.feed(ids[: len(ids) // 2])
    again = ChatDecoder.from_state(TOK, decoder.state(), tool_style="hermes", call_ids=made.__next__)
    assert calls_of(first + again.feed(ids[len(ids) // 2 :])) == [(0, "a"), (1, "b")]


class Player:
    """An engine that gives logprobs where they are asked for."""

    def __init__(self, text):
        self.text = text

    async def generate(self, prompt_ids, sampling):
        for token_id in TOK.encode(self.text):
            yield EngineStep([token_id], [-0.5] if sampling.logprobs else None)


async def answered(text, **options):
    messages = [{"role": "user", "content": "hi"}]
    async with chat(messages, engine=Player(text), tokenizer=TOK, template=TEMPLATE, tools=[TOOL], **options) as deltas:
        return [delta async for delta in deltas]


async def test_chat_makes_an_id_for_each_call():
    ids = [call_id for _, call_id in calls_of(await answered(CALLS))]
    assert len(set(ids)) == 2 and all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
    assert calls_of(await answered(CALLS, call_ids=iter("ab").__next__)) == [(0, "a"), (1, "b")]


async def test_chat_gives_logprobs_where_the_sampling_asks():
    texts = [
        delta for delta in await answered("Hello", sampling=Sampling(logprobs=True)) if isinstance(delta, TextDelta)
    ]
    assert {logprob for delta in texts for logprob in delta.alignment.logprobs} == {-0.5}
    plain = [delta for delta in await answered("Hello") if isinstance(delta, TextDelta)]
    assert {delta.alignment for delta in plain} == {None}
    with pytest.raises(TypeError, match="logprobs=1 is neither True nor False"):
        Sampling(logprobs=1)
