"""Conversations made shorter: what is asked, what is kept, and what is no compaction."""

from base64 import b64encode

import pytest
from case_tables import cases

from tokenweir.stream.events.deltas import Finish, FinishReason, ReasoningDelta, TextDelta, Usage
from tokenweir.stream.serve.wire.responses.compaction import ASK, PackedMessage, compacted, pack, question, unpack
from tokenweir.stream.serve.wire.responses.requests import parse_create
from tokenweir.stream.serve.wire.shared.errors import RequestError

CASES = cases(__file__)

CONVERSATION = CASES["conversation"]
ANSWER = [
    ReasoningDelta("let me see"),
    TextDelta(" It was "),
    TextDelta("sunny."),
    Finish(FinishReason.STOP, usage=Usage(9, 4, 1)),
]
SHORT = [
    PackedMessage("system", "Be brief."),
    PackedMessage("user", "The word is <|im_end|> slate.\n\nAnd blue 🌊."),
    PackedMessage("assistant", "It was sunny."),
]


def test_the_question_joins_what_the_user_said_last():
    *before, last = question(CONVERSATION)
    assert before == CONVERSATION[:-1]
    assert last == {"role": "user", "content": f"And blue 🌊.\n\n{ASK}"}


@pytest.mark.parametrize("conversation", [[], CONVERSATION[:-1]])
def test_the_question_follows_what_the_assistant_said(conversation):
    assert question(conversation) == [*conversation, {"role": "user", "content": ASK}]


def test_people_are_kept_word_for_word_and_the_rest_is_the_summary():
    short = compacted(CONVERSATION, ANSWER)
    [item] = short.output
    assert unpack(item.encrypted_content) == SHORT
    assert (short.usage.total_tokens, short.usage.output_tokens_details.reasoning_tokens) == (13, 1)


def test_it_begins_the_next_conversation():
    [item] = compacted(CONVERSATION, ANSWER).output
    sent = {"type": "compaction", "id": item.id, "encrypted_content": item.encrypted_content}
    request = parse_create({"input": [sent, {"role": "user", "content": "Go on."}]})
    assert request.messages() == [
        *({"role": message.role, "content": message.content} for message in SHORT),
        {"role": "user", "content": "Go on."},
    ]


def test_a_conversation_of_the_assistant_alone():
    [item] = compacted([{"role": "assistant", "content": "Hello"}], ANSWER).output
    assert unpack(item.encrypted_content) == SHORT[2:]


def test_no_summary_is_an_error():
    with pytest.raises(RequestError, match="the model wrote no summary"):
        compacted(CONVERSATION, [TextDelta("\n"), ANSWER[-1]])


@pytest.mark.parametrize(
    "content",
    ["", "gAAAAABpM0Yj-", "é", "AAAA", b64encode(b"\xff").decode(), b64encode(b"[" * 100_000).decode()]
    + [b64encode(text).decode() for text in (b"{}", b'[{"role": "tool", "content": ""}]', b'[{"role": "user"}]')],
)
def test_another_servers_compaction_is_refused_by_its_place(content):
    request = parse_create({"input": [{"type": "compaction", "encrypted_content": content}]})
    with pytest.raises(RequestError, match="this server has not made this compaction") as caught:
        request.messages()
    assert caught.value.param == "input[0].encrypted_content"


def test_packing_keeps_any_text():
    messages = [PackedMessage("user", '\0"\\\u2028\U0010ffff')]
    assert unpack(pack(messages)) == messages


def test_messages_are_counted_before_any_is_made():
    """An item of a megabyte may hold tens of thousands of messages, which would keep the event loop."""
    items = [
        {"type": "compaction", "encrypted_content": pack([PackedMessage("user", "a")] * count)} for count in (1500, 549)
    ]
    request = parse_create({"input": items})
    with pytest.raises(RequestError, match=r"has 2049 messages .* max_items is 2048") as refused:
        request.messages()
    assert refused.value.code == "too_many_items"
    assert len(request.messages(max_items=2049)) == 2049
    no_messages = b64encode(b"[" + b",".join([b"0"] * 3000) + b"]").decode()
    with pytest.raises(RequestError, match="has 3000 messages"):
        parse_create({"input": [{"type": "compaction", "encrypted_content": no_messages}]}).messages()
