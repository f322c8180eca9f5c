"""Open Responses: its compliance tests over POST, over a stream and over the socket, by its own schemas.

The one of them about image input is left out: a front end for text takes no images, and says so.
"""

import asyncio
import json

import httpx
import openresponses_types as schemas
import pytest
from pydantic import TypeAdapter
from serving import TOK, Script, say, serving, socket_to, until

from tokenweir.stream.engines.protocol import EngineStep
from tokenweir.stream.server.limits import Limits
from tokenweir.templates import ChatTemplate

EVENTS = {
    next(iter(model.model_fields["type"].annotation)).value: model
    for name, model in vars(schemas).items()
    if name.endswith("StreamingEvent") and name != "ErrorStreamingEvent"
}
TEMPLATE = ChatTemplate(
    "{% if tools %}{% for tool in tools %}{{ tool.function.name }}{% endfor %}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
CALL = '<tool_call>{"name": "get_weather", "arguments": {"location": "San Francisco, CA"}}</tool_call>'
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
HELLO = ("<think>", "hm", "</think>", "Hello!", "<|im_end|>")

TESTS = {
    "basic text": (HELLO, {"input": [{"type": "message", "role": "user", "content": "Say hello in 3 words."}]}),
    "system prompt": (
        HELLO,
        {
            "input": [
                {"type": "message", "role": "system", "content": "You are a pirate."},
                {"type": "message", "role": "user", "content": "Say hello."},
            ]
        },
    ),
    "tool calling": (
        ("I look.", CALL, "<|im_end|>"),
        {
            "input": [{"type": "message", "role": "user", "content": "What's the weather in San Francisco?"}],
            "tools": [WEATHER],
        },
    ),
    "multi-turn": (
        HELLO,
        {
            "input": [
                {"type": "message", "role": "user", "content": "My name is Alice."},
                {"type": "message", "role": "assistant", "content": "Hello Alice!"},
                {"type": "message", "role": "user", "content": "What is my name?"},
            ]
        },
    ),
    "cut short": (HELLO, {"input": "hi", "max_output_tokens": 4}),
    "what clients send": (
        HELLO,
        {
            "input": "hi",
            "store": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "k",
            "safety_identifier": "s",
            "reasoning": {"effort": "low", "summary": "auto"},
            "text": {"verbosity": "low", "format": {"type": "text"}},
            "truncation": "auto",
            "frequency_penalty": 0,
            "presence_penalty": 0,
            "service_tier": "auto",
            "metadata": {"a": "b"},
            "tools": [WEATHER, {"type": "web_search"}],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "temperature": 0.5,
            "top_p": 0.9,
        },
    ),
}
each = pytest.mark.parametrize(("parts", "body"), TESTS.values(), ids=TESTS)


def served(parts):
    return serving(
        Script(*parts),
        template=TEMPLATE,
        reasoning_events="reasoning",
        limits=Limits(send_interval=0, drain_timeout=0.2),
    )


def check_response(response, body):
    schemas.ResponseResource.model_validate(response, strict=False)
    assert {*schemas.ResponseResource.model_fields} <= {*response}
    assert response["status"] == ("incomplete" if "max_output_tokens" in body else "completed")
    assert response["output"]
    for field in ("temperature", "top_p", "metadata", "prompt_cache_key", "safety_identifier", "store"):
        assert response[field] == body.get(field, response[field])
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    assert ("tools" in body and "store" not in body) == bool(calls)
    for call in calls:
        assert json.loads(call["arguments"]) == {"location": "San Francisco, CA"}


def check_events(events, body):
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    for event in events:
        EVENTS[event["type"]].model_validate(event)
    if body["input"] == "hi":
        assert any(event["type"] == "response.reasoning.delta" for event in events)
    check_response(events[-1]["response"], body)


@each
@pytest.mark.asyncio
async def test_over_post(parts, body):
    async with served(parts) as server, httpx.AsyncClient() as http:
        reply = await http.post(f"http://127.0.0.1:{server.port}/v1/responses", json={"model": "default", **body})
    assert reply.status_code == 200, reply.text
    check_response(reply.json(), body)


@each
@pytest.mark.asyncio
async def test_as_a_stream(parts, body):
    async with served(parts) as server, httpx.AsyncClient() as http:
        reply = await http.post(f"http://127.0.0.1:{server.port}/v1/responses", json={**body, "stream": True})
    data = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
    assert data.pop() == "[DONE]"
    check_events([json.loads(event) for event in data], body)


@each
@pytest.mark.asyncio
async def test_over_the_socket(parts, body):
    async with served(parts) as server, socket_to(server) as websocket:
        await say(websocket, **body)
        last = "response.incomplete" if "max_output_tokens" in body else "response.completed"
        events = await until(websocket, last)
    check_events(events, body)


@pytest.mark.asyncio
async def test_a_conversation_and_an_error_over_the_socket():
    async with served(HELLO) as server, socket_to(server) as websocket:
        await say(websocket)
        first = (await until(websocket, "response.completed"))[-1]["response"]
        await say(websocket, input="more", previous_response_id=first["id"])
        await until(websocket, "response.completed")
        await say(websocket, previous_response_id="resp_0")
        error = (await until(websocket, "error"))[-1]
    schemas.WebSocketErrorEvent.model_validate(error)
    assert (error["status"], error["error"]["code"]) == (404, "previous_response_not_found")


@pytest.mark.asyncio
async def test_an_image_is_refused_by_name():
    content = [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]
    async with served(HELLO) as server, httpx.AsyncClient() as http:
        body = {"input": [{"type": "message", "role": "user", "content": content}]}
        reply = await http.post(f"http://127.0.0.1:{server.port}/v1/responses", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "input[0].content[0].type")


@pytest.mark.asyncio
async def test_logprobs_fit_the_schema():
    class Sure:
        async def generate(self, prompt_ids, sampling):
            for token_id in TOK.encode("Hi<|im_end|>"):
                await asyncio.sleep(0)
                yield EngineStep([token_id], logprobs=[-0.25])

    async with serving(Sure()) as server, httpx.AsyncClient() as http:
        body = {"input": "hi", "include": ["message.output_text.logprobs"]}
        reply = (await http.post(f"http://127.0.0.1:{server.port}/v1/responses", json=body)).json()
    TypeAdapter(schemas.ResponseResource).validate_python(reply)
    assert reply["output"][0]["content"][0]["logprobs"][0]["logprob"] == -0.25
