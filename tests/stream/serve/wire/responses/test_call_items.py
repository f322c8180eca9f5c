"""Calls and results of every kind in a request's input, as the client's own types have them."""

import json
import typing

import pytest
from case_tables import cases
from openai.types.responses import ResponseFileSearchToolCall, ResponseInputItemParam
from pydantic import TypeAdapter
from serving import Script, client_of, serving

from tokenweir.stream.serve.wire.responses.requests import parse_create
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

IMAGE = "data:image/png;base64,iVBORw0KGgo="
URL = {"type": "object", "properties": {"url": {"type": "string"}}}
DONE = {"status": "completed"}

PAIRS = CASES["pairs"]
SEARCH = {"type": "file_search_call", "id": "fs_1", "queries": ["a"], **DONE}
WHOLE = CASES["whole"]
READ = {"type": "function", "name": "read", "parameters": URL, "strict": None}
OMITTED = CASES["omitted"]
TOOLS = [
    {"type": "additional_tools", "role": "developer", "tools": [READ, {"type": "web_search"}]},
    {"type": "tool_search_output", "call_id": "t1", "tools": [{"type": "namespace", "name": "crm", "tools": [READ]}]},
]
NOT_TAKEN = {"configuration_update", "compaction_trigger"}
ITEM = TypeAdapter(ResponseInputItemParam)
HI = {"role": "user", "content": "hi"}


def asked(items, **more):
    return parse_create({"model": "default", "input": [HI, *items]} | more)


def written(items):
    request = asked(items)
    assert request.left_out == []
    [_, call, result] = request.messages()
    (function,) = [each["function"] for each in call["tool_calls"]]
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    assert (result["role"], result["name"]) == ("tool", function["name"])
    return [function["name"], json.loads(function["arguments"]), result["content"]]


@pytest.mark.parametrize(("call", "output", "expected"), PAIRS)
def test_a_call_of_the_clients_tools_and_its_result_are_written(call, output, expected):
    call, output = {"call_id": "c1"} | call, ({} if output.get("id") == "c1" else {"call_id": "c1"}) | output
    for item in (call, output):
        ITEM.validate_python(item)
    assert written([call, output]) == expected


@pytest.mark.parametrize(("item", "expected"), WHOLE)
def test_a_call_that_the_provider_ran_is_written_with_its_result(item, expected):
    ITEM.validate_python(item)
    assert written([item]) == expected


@pytest.mark.parametrize("item", OMITTED, ids=lambda item: item["type"])
def test_what_has_no_result_is_left_out_and_told(item):
    ITEM.validate_python(item)
    request = asked([item, HI])
    assert (request.messages(), request.left_out) == ([HI, HI], ["input[1]"])


def test_tools_that_the_input_brings_are_shown():
    for item in TOOLS:
        ITEM.validate_python(item)
    request = asked([*TOOLS, *TOOLS])
    assert [each.shown for each in request.tool_set.shown] == ["read", "crm__read"]
    assert (request.messages(), request.left_out) == ([HI], ["input[1].tools[1]", "input[3].tools[1]"])
    again = asked(TOOLS, tools=[READ | {"description": "The request's."}, {"type": "web_search"}])
    assert [each.tool.description for each in again.tool_set.shown] == ["The request's.", None]
    assert again.left_out == ["tools[1]", "input[1].tools[1]"]


def test_every_type_of_item_is_known_or_refused_by_name():
    """A type that a later client brings is in none of the tables."""
    types = {
        value
        for item in typing.get_args(ResponseInputItemParam)
        for value in literals(typing.get_type_hints(item).get("type"))
    }
    tested = [*(item for pair in PAIRS for item in pair[:2]), *(item for item, _ in WHOLE), *OMITTED, *TOOLS]
    known = {item["type"] for item in tested} | {"message", "reasoning", "compaction", "item_reference"}
    assert types - known == NOT_TAKEN
    for kind in NOT_TAKEN:
        with pytest.raises(RequestError, match=f'^input.1..type: "{kind}" is not one of') as caught:
            asked([{"type": kind}])
        assert caught.value.param == "input[1].type"


def test_a_reference_may_lack_its_type():
    with pytest.raises(RequestError, match=r"^input\[1\]: no item 'msg_1' of a stored response"):
        asked([{"id": "msg_1"}]).messages()
    with pytest.raises(RequestError, match=r"^input\[1\]: Object missing required field `type`"):
        asked([{"id": "msg_1", "content": ""}])


def literals(kind):
    if typing.get_origin(kind) is typing.Literal:
        return set(typing.get_args(kind))
    return {value for inner in typing.get_args(kind) for value in literals(inner)}


@pytest.mark.parametrize("output", [output for _, output, _ in PAIRS], ids=lambda output: output["type"])
def test_a_result_without_its_call_stays(output):
    message = asked([{"call_id": "c1"} | output]).messages()[-1]
    assert message.keys() == {"role", "content", "tool_call_id"}
    assert message["role"] == "tool"


async def test_the_answer_tells_what_was_left_out():
    engine = Script("Hi", "<|im_end|>")
    template = ChatTemplate("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}")
    items = [HI, OMITTED[0], {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}]
    async with serving(engine, template=template) as server, client_of(server) as client:
        response = await client.responses.create(model="default", input=items, tools=[{"type": "web_search"}])
        plain = await client.responses.create(model="default", input=[HI])
        rendered = await client.post(
            "/responses/render", cast_to=object, body={"model": "default", "input": items, "tools": []}
        )
    assert response.left_out == ["tools[0]", "input[1]", "input[2].encrypted_content"]
    assert rendered["left_out"] == ["input[1]", "input[2].encrypted_content"]
    assert not hasattr(plain, "left_out")
    assert engine.prompts[0] == engine.prompts[1]


@pytest.mark.parametrize("kind", ["function_call_output", "custom_tool_call_output"])
@pytest.mark.parametrize(("output", "shown"), CASES["a_result_may_be_missing_or_of_the_parts_of_messages"])
def test_a_result_may_be_missing_or_of_the_parts_of_messages(kind, output, shown):
    result = {"type": kind, "call_id": "c", **output}
    assert parse_create({"model": "m", "input": [result]}).messages()[-1]["content"] == shown


def test_fields_that_are_null_in_a_response_may_come_back():
    found = {"file_id": "f1", "filename": None, "text": None, "score": None, "attributes": None}
    item = json.loads(ResponseFileSearchToolCall.model_validate(SEARCH | {"results": [found]}).model_dump_json())
    assert written([item]) == ["file_search", {"queries": ["a"]}, ":\n\n"]
    nothing = {"type": "computer_call", "call_id": "c1", "action": None, "actions": None}
    screen = {"type": "computer_call_output", "call_id": "c1", "output": {"image_url": IMAGE}}
    assert written([nothing, screen])[:2] == ["computer", {"actions": []}]
