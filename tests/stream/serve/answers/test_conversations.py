"""Conversations as bytes: put together, private or not, and evicted."""

import msgspec
import pytest

from tokenweir.stream.prompts.cache.ledger import ENTRY_BYTES, Ledger
from tokenweir.stream.serve.answers.conversations import EMPTY, Conversations, decoded, encoded
from tokenweir.stream.serve.wire.responses.response_object import (
    FunctionCallItem,
    MessageItem,
    OutputText,
    ReasoningItem,
)
from tokenweir.stream.serve.wire.shared.logprobs import Logprob

ONE = [{"role": "user", "content": "a \u2028 \U0001f30a"}]
TWO = [{"role": "assistant", "content": ""}, {"role": "user", "content": "]["}]


@pytest.mark.parametrize("before", [[], ONE, TWO])
@pytest.mark.parametrize("after", [[], ONE, TWO])
def test_what_was_encoded_before_is_not_encoded_again(before, after):
    data = encoded(after, encoded(before))
    assert data == msgspec.json.encode(before + after)
    assert decoded(data) == before + after
    assert encoded([]) == EMPTY


def test_a_private_conversation_is_found_by_its_connection_only():
    ledger = Ledger(10_000)
    conversations = Conversations(ledger, 1000)
    conversations.keep("a", "resp_1", b"[1]", private=True)
    conversations.keep("a", "resp_2", b"[2]")
    assert conversations.find("a", "resp_1") is None
    assert conversations.find("a", "resp_1", private=True) == b"[1]"
    assert conversations.find("a", "resp_2") == conversations.find("a", "resp_2", private=True) == b"[2]"
    assert conversations.find("b", "resp_2", private=True) is None
    assert conversations.all() == [("a", "resp_2", b"[2]", [])]
    conversations.forget("a", "resp_2")
    conversations.forget("a", "resp_1")
    assert conversations.find("a", "resp_1", private=True) is None and conversations.find("a", "resp_2")
    assert ledger.bytes == ENTRY_BYTES + 3


def test_the_same_response_is_counted_once():
    ledger = Ledger(10_000)
    conversations = Conversations(ledger, 1000)
    conversations.keep("a", "resp_1", b"x" * 10, private=True)
    conversations.keep("a", "resp_1", b"y" * 20)
    assert ledger.bytes == ENTRY_BYTES + 20
    conversations.keep("a", "resp_1", b"z" * 1001)  # too long: nothing is left to continue
    assert ledger.bytes == 0 and conversations.find("a", "resp_1") is None


def test_what_is_evicted_is_not_found():
    conversations = Conversations(Ledger(3 * (ENTRY_BYTES + 10)), 1000)
    for number in range(4):
        conversations.keep("b", f"resp_{number}", b"x" * 10)
    conversations.keep("a", "resp_a", b"x" * 10)
    assert [name for _, name, *_ in conversations.all()] == ["resp_2", "resp_3", "resp_a"]


def test_items_of_stored_answers_are_found_by_their_client_until_they_go():
    conversations = Conversations(Ledger(10_000), 1000)
    message = MessageItem("msg_1", "completed", [OutputText("Hi", logprobs=[Logprob("Hi", -0.5, [72, 105], [])])])
    call = FunctionCallItem("fc_1", "completed", "c", "f", "{}")
    conversations.keep("a", "resp_1", b"[]", items=[message, call])
    conversations.keep("a", "resp_2", b"[]", private=True, items=[ReasoningItem("rs_1", "completed", [])])
    assert conversations.item("a", "msg_1") == MessageItem("msg_1", "completed", [OutputText("Hi")])
    assert conversations.item("a", "fc_1") == call
    assert conversations.item("a", "rs_1") is conversations.item("b", "msg_1") is None
    conversations.delete("a", "resp_1")
    assert conversations.item("a", "msg_1") is None and not conversations._items


def test_items_count_and_go_with_what_is_evicted():
    conversations = Conversations(Ledger(10_000), 1000)
    for number in range(100):
        item = MessageItem(f"msg_{number}", "completed", [OutputText("x" * 100)])
        conversations.keep("a", f"resp_{number}", b"[]", items=[item])
    assert conversations.item("a", "msg_0") is None and conversations.item("a", "msg_99") is not None
    assert len(conversations._items) == len(conversations.all()) < 10
