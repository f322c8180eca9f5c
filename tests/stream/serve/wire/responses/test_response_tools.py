"""Namespaces and custom tools of Responses requests: shown to the model as functions, given back as what they are."""

import json

import openai
import pytest
from case_tables import cases
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from serving import WITH_TOOLS, Script, client_of, http_of, say, serving, socket_to, until

from tokenweir.stream.serve.wire.responses.requests import parse_create
from tokenweir.stream.serve.wire.shared.errors import RequestError

CASES = cases(__file__)

URL = {"type": "object", "properties": {"url": {"type": "string"}}}
READ = {"type": "function", "name": "read_page", "description": "Read.", "parameters": URL, "strict": True}
CLICK = {"type": "function", "name": "click", "parameters": URL, "defer_loading": True, "allowed_callers": ["direct"]}
NOW = {"type": "function", "name": "now", "async": True, "output_schema": {"type": "string"}}
SPACE = {"type": "namespace", "name": "mcp__browser", "description": "A browser.", "tools": [READ, CLICK]}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch"'}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edit files.", "format": GRAMMAR}
TOOLS = [NOW, SPACE, PATCH, {"type": "web_search"}]
INPUT = '*** Begin Patch\n+ print("ü")\n*** End Patch'
EVENT = TypeAdapter(ResponseStreamEvent)


def called(name, arguments):
    return Script(f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>", "<|im_end|>")


def calls_of(output):
    return [[item.type, item.namespace, item.name] for item in output if item.type.endswith("_call")]


def test_the_model_sees_functions():
    shown = {each["function"]["name"]: each["function"] for each in parse_create(body(TOOLS)).tool_set.definitions()}
    assert list(shown) == ["now", "mcp__browser__read_page", "mcp__browser__click", "apply_patch"]
    assert shown["mcp__browser__read_page"] == {
        "name": "mcp__browser__read_page",
        "description": "mcp__browser: A browser.\n\nRead.",
        "parameters": URL,
    }
    assert shown["mcp__browser__click"]["description"] == ""
    assert shown["apply_patch"] == {
        "name": "apply_patch",
        "description": 'Edit files.\n\nThe input is text of this grammar (lark):\nstart: "*** Begin Patch"',
        "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
    }
    assert parse_create(body([{"type": "web_search"}])).tool_set.definitions() is None


def body(tools, **more):
    return {"model": "default", "input": "hi", "tools": tools} | more


@pytest.mark.parametrize(("call", "found"), CASES["a_call_comes_back_as_what_was_asked_for_and_may_be_sent_back"])
async def test_a_call_comes_back_as_what_was_asked_for_and_may_be_sent_back(call, found):
    engine = called(*call)
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        whole = await client.responses.create(**body(TOOLS))
        stream = await client.responses.create(**body(TOOLS), stream=True)
        events = [event async for event in stream]
        async with socket_to(server) as websocket:
            await say(websocket, tools=TOOLS)
            sent = await until(websocket, "response.completed")
        (item,) = whole.output
        result = {"type": f"{item.type}_output", "call_id": item.call_id, "output": "done"}
        history = [{"role": "user", "content": "hi"}, item.to_dict(), result]
        await client.responses.create(**body(TOOLS, input=history))
        await client.responses.create(**body(TOOLS, input=[result]), previous_response_id=whole.id)
        referred = [history[0], {"type": "item_reference", "id": item.id}, result]
        await client.responses.create(**body(TOOLS, input=referred))
    last = TypeAdapter(Response).validate_python(sent[-1]["response"])
    assert calls_of(whole.output) == calls_of(events[-1].response.output) == calls_of(last.output) == [found]
    for event in sent:
        EVENT.validate_python(event)
    kinds = {event.type for event in events}
    assert ("response.custom_tool_call_input.done" in kinds) == (found[0] == "custom_tool_call")
    streamed = "".join(event.delta for event in events if event.type.endswith(("input.delta", "arguments.delta")))
    assert streamed == (INPUT if found[0] == "custom_tool_call" else json.dumps(call[1]))
    assert engine.prompts[0] == engine.prompts[1] == engine.prompts[2]
    written = json.dumps({"name": call[0], "arguments": call[1]}, ensure_ascii=False)
    for prompt in engine.prompts[3:]:
        assert f"<tool_call>{written}</tool_call>" in prompt.replace("\\u00fc", "ü")
        assert "<|im_start|>tool\ndone" in prompt
    assert engine.prompts[3] == engine.prompts[4] == engine.prompts[5]


async def test_the_response_repeats_its_tools():
    async with serving(Script("Hi", "<|im_end|>"), template=WITH_TOOLS) as server, client_of(server) as client:
        response = await client.responses.create(**body(TOOLS))
    told = [tool.to_dict() for tool in response.tools]
    assert told[0] == NOW | {"description": None, "parameters": None, "strict": None}
    assert told[1]["tools"][0] == READ | {"strict": False}
    assert told[1]["tools"][1] == CLICK | {"description": None, "strict": None}
    assert told[2] == PATCH
    assert (len(told), response.tool_choice) == (3, "auto")


class Held(Script):
    supports = frozenset({"json_schema"})


@pytest.mark.parametrize(("choice", "shown"), CASES["a_choice_names_them_by_the_names_of_the_request"])
async def test_a_choice_names_them_by_the_names_of_the_request(choice, shown):
    engine = Held("[", json.dumps({"name": shown[0], "arguments": {}}), "]", "<|im_end|>")
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        await client.responses.create(**body(TOOLS), tool_choice=choice)
    names = [json.loads(line)["function"]["name"] for line in engine.prompts[0].splitlines() if line.startswith("{")]
    assert names == shown


TWICE = [{"type": "namespace", "name": each, "tools": [READ]} for each in ("a", "b")]


@pytest.mark.parametrize(
    ("tools", "choice", "text"),
    [
        (
            [SPACE, READ | {"name": "mcp__browser__click"}],
            None,
            "two different tools have the name 'mcp__browser__click'",
        ),
        ([PATCH, READ | {"name": "apply_patch"}], None, "two different tools have the name 'apply_patch'"),
        (
            [{"type": "namespace", "name": "a__b", "tools": [READ | {"name": "c"}]}]
            + [{"type": "namespace", "name": "a", "tools": [READ | {"name": "b__c"}]}],
            None,
            "two different tools have the name 'a__b__c'",
        ),
        (
            TWICE,
            {"type": "function", "name": "read_page"},
            "tool_choice: 2 namespaces have a tool 'read_page'; name one",
        ),
        (
            TWICE,
            {"type": "allowed_tools", "tools": [{"type": "function", "name": "read_page"}]},
            r"tool_choice.tools\[0\]: 2 namespaces have a tool",
        ),
        (
            TWICE,
            {"type": "allowed_tools", "tools": [{"type": "namespace", "name": "c"}]},
            r"tool_choice.tools\[0\] names no namespace of the tools",
        ),
    ],
)
def test_a_name_that_is_not_one_tool_is_refused(tools, choice, text):
    asked = parse_create(body(tools) | ({} if choice is None else {"tool_choice": choice}))
    with pytest.raises(RequestError, match=text):
        asked.tool_set.choice(asked.tool_choice)


async def test_refusals_are_answers_of_status_400():
    twins = [SPACE, READ | {"name": "mcp__browser__click"}]
    async with serving(Script(""), template=WITH_TOOLS) as server, client_of(server) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(**body(twins))
        assert caught.value.param == "tools"
        with pytest.raises(openai.BadRequestError, match="'nothing', which is not among the 4 tools"):
            await client.responses.create(**body(TOOLS), tool_choice={"type": "function", "name": "nothing"})
        async with socket_to(server) as websocket:
            await say(websocket, tools=twins)
            assert (await until(websocket, "error"))[-1]["error"]["param"] == "tools"
        async with http_of(server) as http:
            refused = await http.post("/v1/responses/render", json=body(twins))
            assert refused.json()["error"]["param"] == "tools"


async def test_functions_of_namespaces_are_counted():
    many = [{"type": "namespace", "name": "a", "tools": [READ] * 8}]
    async with serving(Script(""), template=WITH_TOOLS, max_items=8) as server, client_of(server) as client:
        with pytest.raises(openai.BadRequestError, match="tools has 9 items"):
            await client.responses.create(**body(many))


async def test_a_custom_call_that_is_cut_off_has_the_input_so_far():
    engine = Script('<tool_call>{"name": "apply_patch", "arguments": {"input": "*** Beg')
    async with serving(engine, template=WITH_TOOLS) as server, client_of(server) as client:
        response = await client.responses.create(**body(TOOLS))
    (item,) = response.output
    assert (item.type, item.status, item.input) == ("custom_tool_call", "incomplete", "*** Beg")
