"""Deltas to Responses events: order, numbers, and JSON that the openai package's own types accept."""

import json
import math
import re
from functools import cache
from itertools import groupby

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tokenweir.encode.errors import ProtocolError
from tokenweir.stream.events.deltas import (
    Alignment,
    Finish,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from tokenweir.stream.serve.wire.responses.events import ErrorDetail, ErrorEvent, Heartbeat, encode
from tokenweir.stream.serve.wire.responses.kept_events import event_size, merge_events
from tokenweir.stream.serve.wire.responses.requests import Reasoning, ResponseCreate
from tokenweir.stream.serve.wire.responses.response_stream import ResponseStream
from tokenweir.stream.serve.wire.responses.response_tools import FunctionTool, NamedFunction

CASES = cases(__file__)

STOP = Finish(FinishReason.STOP, usage=Usage(5, 4, 2))


@cache
def openais_validator():
    """Return a decoder of OpenAI's events that refuses any other; cached, since making one is slow."""
    return TypeAdapter(ResponseStreamEvent).validate_python


def stream(*, prompt_ids=tuple, **fields):
    request = ResponseCreate(type="response.create", **fields)
    return ResponseStream(request, model="demo", max_output_tokens=100, prompt_ids=prompt_ids)


def play(deltas, one=None):
    """All events of a response, as a client reads them."""
    one = one or stream()
    events = one.start()
    for delta in deltas:
        events += one.step(delta)
    return [json.loads(encode(event)) for event in events]


def kinds(events):
    return [event["type"].removeprefix("response.") for event in events]


def test_the_events_of_an_answer_with_thinking():
    events = play([ReasoningDelta("hm"), ReasoningDelta("m"), TextDelta("Hel"), TextDelta("lo"), STOP])
    assert kinds(events) == CASES["the_events_of_an_answer_with_thinking"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    response = events[-1]["response"]
    thinking, message = response["output"]
    assert thinking["content"] == [{"type": "reasoning_text", "text": "hmm"}]
    assert message["content"] == [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}]
    assert (thinking["status"], message["status"], response["status"]) == ("completed",) * 3
    assert response["usage"] == {
        "input_tokens": 5,
        "output_tokens": 4,
        "total_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 2},
    }


def test_a_requested_summary_is_the_thinking():
    """The AI SDK's OpenAI provider and LangChain's streams read the thinking of summaries only."""
    one = stream(reasoning=Reasoning(summary="auto"))
    events = play([ReasoningDelta("hm"), ReasoningDelta("m"), TextDelta("Hello"), STOP], one)
    assert kinds(events)[2:8] == CASES["a_requested_summary_is_the_thinking"]
    for event in events:
        openais_validator()(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    thinking = events[-1]["response"]["output"][0]
    assert (thinking["content"], thinking["summary"]) == ([], [{"type": "summary_text", "text": "hmm"}])


def test_the_request_is_repeated():
    events = play([STOP], stream(instructions="be brief", temperature=0.5, metadata={"k": "v"}, user="u"))
    for event in (events[0], events[-1]):
        response = event["response"]
        assert (response["instructions"], response["temperature"], response["metadata"]) == (
            "be brief",
            0.5,
            {"k": "v"},
        )
        assert (response["model"], response["max_output_tokens"], response["user"]) == ("demo", 100, "u")


def test_no_text_at_all():
    events = play([STOP])
    assert kinds(events) == ["created", "in_progress", "completed"]
    assert events[-1]["response"]["output"] == []


@pytest.mark.parametrize(("reason", "kind", "status", "details"), CASES["cut_short"])
def test_cut_short(reason, kind, status, details):
    one = stream()
    events = play([TextDelta("Hel"), Finish(reason)], one)
    assert kinds(events)[-4:] == ["output_text.done", "content_part.done", "output_item.done", kind]
    response = events[-1]["response"]
    assert (response["status"], response["incomplete_details"]) == (status, details)
    assert response["output"][0]["status"] == "incomplete"
    assert one.status == status


def test_fail():
    one = stream()
    one.start()
    one.step(TextDelta("Hel"))
    assert not one.finished
    events = [json.loads(encode(event)) for event in one.fail("the engine \ud800 died")]
    assert events[-1]["response"]["error"] == {"code": "server_error", "message": "the engine ? died"}
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hel"
    assert one.finished


def test_what_a_request_cannot_ask_for():
    with pytest.raises(ProtocolError, match="one answer, not answer 1"):
        stream().step(TextDelta("a", index=1))


def test_the_events_of_a_call():
    call = [
        ToolCallDelta("f", ""),
        ToolCallDelta("", '{"a":'),
        ToolCallDelta("", "1}"),
        ToolCallDelta("", "", complete=True),
    ]
    events = play([TextDelta("Hi"), *call, STOP], stream(tools=[FunctionTool("f")]))
    assert kinds(events)[5:] == CASES["the_events_of_a_call"]
    added, item = events[8]["item"], events[-1]["response"]["output"][1]
    assert added == item | {"arguments": "", "status": "in_progress"}
    assert (item["name"], item["arguments"], item["status"]) == ("f", '{"a":1}', "completed")
    assert re.fullmatch("[A-Za-z0-9]{9}", item["call_id"])
    response = events[-1]["response"]
    assert (response["tools"][0]["name"], response["tool_choice"], response["parallel_tool_calls"]) == (
        "f",
        "auto",
        True,
    )
    named = {"type": "function", "name": "f"}
    asked = {"tools": [FunctionTool("f")], "tool_choice": NamedFunction("f"), "parallel_tool_calls": False}
    response = play([STOP], stream(**asked))[-1]["response"]
    assert (response["tool_choice"], response["parallel_tool_calls"]) == (named, False)


def test_calls_follow_each_other_and_what_is_not_whole_says_so():
    deltas = [
        ToolCallDelta("f", "{}", complete=True),
        ToolCallDelta("g", "{", call=1, malformed="no JSON"),
        ToolCallDelta("", "'a'}", call=1, malformed="no JSON"),
        ToolCallDelta("h", '{"a', call=2),
        Finish(FinishReason.LENGTH),
    ]
    output = play(deltas)[-1]["response"]["output"]
    assert [(item["name"], item["arguments"], item["status"]) for item in output] == [
        ("f", "{}", "completed"),
        ("g", "{'a'}", "incomplete"),
        ("h", '{"a', "incomplete"),
    ]
    assert len({item["call_id"] for item in output} | {item["id"] for item in output}) == 6


def test_events_of_one_item_are_merged_and_have_the_last_number():
    one = stream()
    deltas = [TextDelta("a"), TextDelta("b"), ReasoningDelta("c"), ReasoningDelta("d"), TextDelta("e"), STOP]
    events = [event for delta in deltas for event in one.step(delta)]
    merged = merge_events(events)
    assert [(event.sequence_number, event.delta) for event in merged if hasattr(event, "delta")] == [
        (3, "ab"),
        (10, "cd"),
        (16, "e"),
    ]
    assert [event.sequence_number for event in merged if not hasattr(event, "delta")] == [
        event.sequence_number for event in events if not hasattr(event, "delta")
    ]
    assert merge_events(events[:3]) == events[:3]
    for event in events:  # about; nothing is encoded only to be counted
        assert 0.5 < event_size(event) / len(encode(event)) < 2


def aligned(text, *tokens):
    return TextDelta(
        text, list(range(len(tokens))), alignment=Alignment([p for _, p in tokens], [t for t, _ in tokens], 0, 0)
    )


def test_tokens_of_the_answer_with_their_logprobs():
    deltas = [
        ReasoningDelta("hm", [1], alignment=Alignment([-1.0], [b"hm"], 0, 0)),
        aligned("é", (b"\xc3", -0.5), (b"\xa9", -math.inf)),
        aligned("b", (b"b", 0)),
    ]
    one = stream(include=["message.output_text.logprobs"])
    events = [*one.start(), *(event for delta in [*deltas, STOP] for event in one.step(delta))]
    tokens = [
        {"token": "\ufffd", "logprob": -0.5, "bytes": [0xC3], "top_logprobs": []},
        {"token": "\ufffd", "logprob": -9999.0, "bytes": [0xA9], "top_logprobs": []},
        {"token": "b", "logprob": 0.0, "bytes": [0x62], "top_logprobs": []},
    ]
    for all_of_them, expected in ((events, [tokens[:2], tokens[2:]]), (merge_events(events), [tokens])):
        sent = [json.loads(encode(event)) for event in all_of_them]
        validate = openais_validator()
        assert [validate(event).type for event in sent] == [event["type"] for event in sent]
        assert [event["logprobs"] for event in sent if event["type"] == "response.output_text.delta"] == expected
        assert next(event["logprobs"] for event in sent if event["type"] == "response.output_text.done") == tokens
        assert sent[-1]["response"]["output"][1]["content"][0]["logprobs"] == tokens


def test_tokens_without_logprobs_are_refused_before_anything_is_numbered():
    one = stream(include=["message.output_text.logprobs"])
    started = len(one.start())
    with pytest.raises(
        ProtocolError, match="include asks for message.output_text.logprobs, and this model's engine gives none"
    ):
        one.step(aligned("a", (b"a", None)))
    assert one.fail("no")[0].sequence_number == started


def test_every_token_is_in_one_event_where_their_ids_are_asked_for():
    deltas = [
        ReasoningDelta("hm", [1, 2], alignment=Alignment([None, -1.0], [b"<think>", b"hm"], 0, 0)),
        TextDelta("é", [3, 4], alignment=Alignment([-0.5, -math.inf], [b"\xc3", b"\xa9"], 0, 0)),
        TextDelta("b", [5], alignment=Alignment([None], [b"b"], 0, 0)),
        ToolCallDelta("f", "", [6, 7], alignment=Alignment([-2.0, -3.0], [b"<call>", b"f"], 0, 0)),
        ToolCallDelta("", "{}", [8], complete=True, alignment=Alignment([-4.0], [b"{}"], 0, 0)),
        Finish(FinishReason.STOP, token_ids=[9], alignment=Alignment([0.0], [b"<end>"], 0, 0)),
    ]
    one = stream(return_token_ids=True, prompt_ids=lambda: (10, 11))
    events = [*one.start(), *(event for delta in deltas for event in one.step(delta))]
    for all_of_them, expected in (
        (events, [[1, 2], [3, 4], [5], [6, 7, 8], [9]]),
        (merge_events(events), [[1, 2], [3, 4, 5], [6, 7, 8], [9]]),
    ):
        sent = [json.loads(encode(event)) for event in all_of_them]
        bring = [event for event in sent if "token_ids" in event]
        assert [event["token_ids"] for event in bring] == expected
        logprobs = [logprob for event in bring for logprob in event["token_logprobs"]]
        assert logprobs == [None, -1.0, -0.5, -9999.0, None, -2.0, -3.0, -4.0, 0.0]
        assert all(event["logprobs"] == [] for event in bring if event["type"] == "response.output_text.delta")
        assert [event["prompt_token_ids"] for event in sent if "prompt_token_ids" in event] == [[10, 11]]
        assert sent[-1]["type"] == "response.completed" and "prompt_token_ids" in sent[-1]


@pytest.mark.parametrize("ending", ["fail", "cancel"])
def test_tokens_are_told_by_the_last_event_of_an_answer_that_is_cut_off(ending):
    one = stream(return_token_ids=True, prompt_ids=lambda: [10])
    one.start()
    one.step(ToolCallDelta("f", "", [1]))
    last = (one.fail("no") if ending == "fail" else one.cancel())[-1]
    assert (last.token_ids, last.token_logprobs, last.prompt_token_ids) == ([1], [None], [10])


def test_nothing_tells_of_token_ids_unless_they_are_asked_for():
    events = play([ReasoningDelta("hm", [1]), TextDelta("a", [2]), ToolCallDelta("f", "{}", [3], complete=True), STOP])
    assert not any(field.endswith(("token_ids", "token_logprobs")) for event in events for field in event)


def test_events_outside_a_response():
    error = json.loads(encode(ErrorEvent(ErrorDetail("no", "bad", "model"))))
    assert error == {
        "type": "error",
        "status": 400,
        "error": {"message": "no", "code": "bad", "param": "model", "type": "invalid_request_error"},
    }
    assert json.loads(encode(Heartbeat(15))) == {"type": "heartbeat", "interval": 15.0}


texts = st.text(min_size=1, max_size=5)
kinds_of_deltas = (
    st.builds(TextDelta, texts) | st.builds(ReasoningDelta, texts) | st.builds(ToolCallDelta, texts, texts)
)
channels = st.lists(kinds_of_deltas, max_size=8)


@given(channels, st.sampled_from(FinishReason))
def test_every_event_is_one_of_openais(deltas, reason):
    events = play([*deltas, Finish(reason)])
    validate = openais_validator()
    for event in events:
        if event.get("response", {}).get("incomplete_details") == {"reason": "cancelled"}:
            event["response"]["incomplete_details"] = None  # the extension
        validate(event)

    runs = [
        ("".join(getattr(delta, "text", "") or getattr(delta, "arguments", "") for delta in run), kind)
        for kind, run in ((k, list(r)) for k, r in groupby(deltas, key=type))
    ]
    items = events[-1]["response"]["output"]
    texts = [item["arguments"] if "arguments" in item else item["content"][0]["text"] for item in items]
    assert texts == [text for text, _ in runs]
    names = {TextDelta: "message", ReasoningDelta: "reasoning", ToolCallDelta: "function_call"}
    assert [item["type"] for item in items] == [names[kind] for _, kind in runs]
    for event in events:
        if event["type"].endswith(("_text.done", "arguments.done")):
            sent = "".join(e["delta"] for e in events if "delta" in e and e["item_id"] == event["item_id"])
            assert sent == event.get("text", event.get("arguments"))
