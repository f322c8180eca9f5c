"""Anthropic's requests as messages, tools and sampling; and answers out of deltas, however they are cut."""

import json

import pytest
from anthropic.types import Message
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.stream.events.deltas import Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta, Usage
from tokenweir.stream.events.merge import merge
from tokenweir.stream.serve.wire.anthropic.answers import MessageAnswer
from tokenweir.stream.serve.wire.anthropic.requests import parse_count, parse_message
from tokenweir.stream.serve.wire.shared.answer_format import AnsweredPrompt
from tokenweir.stream.serve.wire.shared.errors import RequestError

CASES = cases(__file__)

BASICS = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
CALL = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "wörld"}}


def user(*content):
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


def result(content, **more):
    return {"type": "tool_result", "tool_use_id": "c1", "content": content, **more}


def text(words):
    return {"type": "text", "text": words}


def history(*messages, later_system=True, keep_billing_header=False, **more):
    asked = parse_message(BASICS | {"messages": list(messages)} | more)
    return asked.history(later_system=later_system, keep_billing_header=keep_billing_header, max_items=100)


def spoken(*messages, **more):
    return [(message["role"], message["content"]) for message in history(*messages, **more).messages]


# --- history ----------------------------------------------------------------------------------------------------------


def test_blocks_are_joined_as_they_are_and_turns_by_an_empty_line():
    system = [text("Be short."), {"type": "text", "text": "\nBe kind.", "cache_control": {"type": "ephemeral"}}]
    messages = [user(text("a"), text("b")), user("c"), assistant(text("d")), assistant(text("e")), user("f")]
    assert spoken(*messages, system=system) == [
        ("system", "Be short.\nBe kind."),
        ("user", "ab\n\nc"),
        ("assistant", "d\n\ne"),
        ("user", "f"),
    ]


def test_thinking_text_and_calls_are_one_message_and_results_name_their_function():
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "somebody else's"}
    redacted = {"type": "redacted_thinking", "data": "AAAA"}
    read = history(
        user("hi"), assistant(redacted, thinking, text("I look."), CALL), user(result([text("s"), text("un")]))
    )
    call = {"name": "look", "arguments": '{"at": "wörld"}'}
    assert read.messages[1:] == [
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [{"id": "c1", "type": "function", "function": call}],
        },
        {"role": "tool", "content": "sun", "tool_call_id": "c1", "name": "look"},
    ]
    assert read.left_out == ["messages[1].content[0]"]


@pytest.mark.parametrize(("block", "expected"), CASES["results"])
def test_results(block, expected):
    assert spoken(user("hi"), assistant(CALL), user(block))[-1] == ("tool", expected)


LATER = {"role": "system", "content": "Mind the gap."}


@pytest.mark.parametrize(
    ("messages", "kept", "folded"), CASES["later_system_messages_stay_or_join_the_turn_beside_them"]
)
def test_later_system_messages_stay_or_join_the_turn_beside_them(messages, kept, folded):
    for later_system, expected in ((True, kept), (False, folded)):
        said = spoken(*messages, later_system=later_system)
        assert "|".join(f"{role}: {content}" for role, content in said) == expected


def test_a_system_message_that_clears_is_shown_until_the_user_says_more():
    once = LATER | {"clear_at": "next_user_message"}
    assert spoken(user("a"), once) == [("user", "a"), ("system", "Mind the gap.")]
    read = history(user("a"), once, assistant(text("b")), user("c"))
    assert [message["content"] for message in read.messages] == ["a", "b", "c"]
    assert read.left_out == ["messages[1]"]


@pytest.mark.parametrize(
    ("system", "shown", "left_out"), CASES["only_a_leading_block_with_only_the_billing_header_is_left_out"]
)
def test_only_a_leading_block_with_only_the_billing_header_is_left_out(system, shown, left_out):
    read = history(user("hi"), system=system)
    assert next((m["content"] for m in read.messages if m["role"] == "system"), None) == shown
    assert read.left_out == left_out
    assert history(user("hi"), system=system, keep_billing_header=True).left_out == []


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("content", [{}, {"content": None}])
def test_a_message_without_content_is_one_without_blocks(role, content):
    after = user("hi")
    assert history({"role": role, **content}, after) == history({"role": role, "content": []}, after)


def test_results_come_before_the_other_blocks_of_their_message():
    """Templates want results next to their calls, as Anthropic's own server does, and some leave out others."""
    first, second = CALL, CALL | {"id": "c2"}
    late = result("2") | {"tool_use_id": "c2"}
    given = user(text("wait"), result("1"), text("more"), late)
    ordered = user(result("1"), late, text("wait"), text("more"))
    asked = [user("hi"), assistant(first, second)]
    assert history(*asked, given) == history(*asked, ordered)
    with pytest.raises(RequestError) as refused:
        history(*asked, user(text("wait"), result([{"type": "image", "source": {"type": "file"}}])))
    assert refused.value.param == "messages[2].content[1].content[0]"


@pytest.mark.parametrize(("messages", "param", "said"), CASES["refusals_name_the_place"])
def test_refusals_name_the_place(messages, param, said):
    with pytest.raises(RequestError) as refused:
        history(*messages)
    assert refused.value.param == param
    assert said in str(refused.value)


def test_a_conversation_may_have_so_many_messages_only():
    with pytest.raises(RequestError, match="max_items"):
        parse_message(BASICS).history(later_system=True, keep_billing_header=False, max_items=0)


# --- tools and sampling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("choice", "expected", "parallel"), CASES["choices_of_tools"])
def test_choices_of_tools(choice, expected, parallel):
    asked = parse_message(BASICS | {"tool_choice": choice})
    assert (asked.choice, asked.parallel_tool_calls) == (expected, parallel)


def test_tools_of_other_types_are_left_out():
    tools = [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
        {"name": "look", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}, "strict": True},
    ]
    asked = parse_message(BASICS | {"tools": tools})
    assert [tool["function"]["name"] for tool in asked.definitions()] == ["look"]
    assert history(user("hi"), tools=tools).left_out == ["tools[0]"]


@pytest.mark.parametrize(("fields", "expected"), CASES["thinking_becomes_variables_of_the_template"])
def test_thinking_becomes_variables_of_the_template(fields, expected):
    asked = parse_message(BASICS | fields)
    assert asked.template_kwargs(history(user("hi"))) == expected


def test_fields_that_change_nothing_are_accepted_and_others_refused():
    schema = {"type": "object"}
    asked = parse_message(
        BASICS
        | {
            "metadata": {"user_id": "u"},
            "cache_control": {"type": "ephemeral"},
            "service_tier": "auto",
            "context_management": {"edits": []},
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
            "stop_sequences": ["x"],
            "top_k": 0,
        }
    )
    sampling = asked.sampling()
    assert (sampling.json_schema, sampling.stop, sampling.top_k, sampling.max_tokens) == (schema, ("x",), None, None)
    for field, value in (("inference_geo", "eu"), ("speed", "fast"), ("mcp_servers", [{}])):
        with pytest.raises(RequestError, match=f"{field} is"):
            parse_message(BASICS | {field: value})
    with pytest.raises(RequestError, match="a template is never taken"):
        parse_count({"messages": BASICS["messages"], "chat_template_kwargs": {"chat_template": "x"}})


# --- answers ----------------------------------------------------------------------------------------------------------


def answer(**more):
    return MessageAnswer("m", secret=b"s", max_tokens=9, **more)


def message_of(deltas, **more):
    made = answer(**more)
    made.add(deltas, AnsweredPrompt())
    whole = json.loads(made.whole())
    Message.model_validate(whole)
    return whole


def finish(reason, completion=9, stop_reason=None):
    return Finish(reason, stop_reason, Usage(3, completion, 1))


WHOLE = [
    ReasoningDelta("I"),
    ReasoningDelta(" see."),
    TextDelta("Let me "),
    TextDelta("look."),
    ToolCallDelta("look", '{"at": ', call=0),
    ToolCallDelta("", '"a"}', call=0),
    ToolCallDelta("", "", call=0, complete=True),
    ToolCallDelta("look", "", call=1),
    ToolCallDelta("", "{}", call=1, complete=True),
    ReasoningDelta("Again."),
    TextDelta("Done."),
    finish(FinishReason.TOOL_CALLS),
]


@given(st.lists(st.integers(1, len(WHOLE)), max_size=6))
def test_merging_deltas_changes_no_message(sizes):
    deltas, at = [], 0
    for size in [*sizes, len(WHOLE)]:
        deltas += merge(WHOLE[at : at + size])
        at += size
    message = message_of(deltas)
    for block in message["content"]:
        block.pop("id", None)
    signatures = [block.pop("signature") for block in message["content"] if block["type"] == "thinking"]
    assert message["content"] == CASES["merging_deltas_changes_no_message"]
    assert len(set(signatures)) == 2
    assert (message["stop_reason"], message["usage"]["output_tokens"]) == ("tool_use", 9)


@pytest.mark.parametrize(
    ("end", "reason", "sequence"),
    [
        (finish(FinishReason.STOP), "end_turn", None),
        (finish(FinishReason.STOP, stop_reason="x"), "stop_sequence", "x"),
        (finish(FinishReason.STOP, stop_reason=7), "end_turn", None),
        (finish(FinishReason.LENGTH), "max_tokens", None),
        (finish(FinishReason.LENGTH, 8), "model_context_window_exceeded", None),
        (finish(FinishReason.TOOL_CALLS), "end_turn", None),  # without a whole call there is nothing to run
    ],
)
def test_stop_reasons(end, reason, sequence):
    message = message_of([TextDelta("a"), end])
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, sequence)


def test_a_call_whose_arguments_are_no_object_is_left_out():
    call = [ToolCallDelta("look", "[1]"), ToolCallDelta("", "", complete=True), finish(FinishReason.TOOL_CALLS)]
    message = message_of(call)
    assert (message["content"], message["stop_reason"]) == ([], "end_turn")


def test_a_call_whose_arguments_are_null_has_none():
    """Small models write so for a function without parameters."""
    call = [ToolCallDelta("look", "null"), ToolCallDelta("", "", complete=True), finish(FinishReason.TOOL_CALLS)]
    message = message_of(call)
    assert [block["input"] for block in message["content"]] == [{}]
    assert message["stop_reason"] == "tool_use"


def test_edits_of_the_context_are_answered_by_none():
    assert message_of([finish(FinishReason.STOP)], edits=True)["context_management"] == {"applied_edits": []}
    assert "context_management" not in message_of([finish(FinishReason.STOP)])
