"""Open Responses: its compliance tests over POST, over a stream and over the socket, by its own schemas.

The one of them about image input is in `test_media.py`, over a double of an engine that takes images. Others refuse them.
"""

import json

import openresponses_types as schemas
import pytest
from case_tables import cases
from pictures import data_url, png
from pydantic import BaseModel, TypeAdapter
from serving import WITH_TOOLS, Script, Sure, events_in, http_of, say, serving, socket_to, until

CASES = cases(__file__)

EVENTS = {
    next(iter(model.model_fields["type"].annotation)).value: model
    for name, model in vars(schemas).items()
    if name.endswith("StreamingEvent") and name != "ErrorStreamingEvent"
}
HELLO = ("<think>", "hm", "</think>", "Hello!", "<|im_end|>")

TESTS = CASES["tests"]
each = pytest.mark.parametrize(("parts", "body"), TESTS.values(), ids=TESTS)


def served(parts):
    return served_by(Script(*parts))


def served_by(engine):
    return serving(
        engine,
        template=WITH_TOOLS,
        reasoning_events="reasoning",
        send_interval=0,
    )


def check_nulls(value):
    """In the schemas what is not required may be missing, and may not be null; the generated models take both."""
    if isinstance(value, BaseModel):
        for name in value.model_fields_set:
            given = getattr(value, name)
            assert given is not None or type(value).model_fields[name].is_required(), name
            check_nulls(given)
    elif isinstance(value, list):
        for item in value:
            check_nulls(item)


def check_response(response, body):
    check_nulls(schemas.ResponseResource.model_validate(response, strict=False))
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
        check_nulls(EVENTS[event["type"]].model_validate(event))
    if "tools" in body and "store" not in body:
        called = [event["type"] for event in events if event.get("item", {}).get("type") == "function_call"]
        assert called == ["response.output_item.added", "response.output_item.done"]
        parts = {event["type"] for event in events}
        assert parts >= {f"response.function_call_arguments.{part}" for part in ("delta", "done")}
    if body["input"] == "hi":
        kind = "reasoning_summary_text" if "reasoning" in body else "reasoning"
        assert any(event["type"] == f"response.{kind}.delta" for event in events)
    check_response(events[-1]["response"], body)


@each
async def test_over_post(parts, body):
    async with served(parts) as server, http_of(server) as http:
        reply = await http.post("/v1/responses", json={"model": "default", **body})
    assert reply.status_code == 200, reply.text
    check_response(reply.json(), body)


@each
async def test_as_a_stream(parts, body):
    async with served(parts) as server, http_of(server) as http:
        reply = await http.post("/v1/responses", json={**body, "stream": True})
    assert reply.text.endswith("data: [DONE]\n\n")
    check_events(events_in(reply.text), body)


@each
async def test_over_the_socket(parts, body):
    async with served(parts) as server, socket_to(server) as websocket:
        await say(websocket, **body)
        last = "response.incomplete" if "max_output_tokens" in body else "response.completed"
        events = await until(websocket, last)
    check_events(events, body)


async def answered(websocket, **event):
    """Say something without `store`, and have the response to it, all its events checked."""
    await say(websocket, store=False, **event)
    events = await until(websocket, "response.completed")
    check_events(events, {"input": "hi", "store": False})
    return events[-1]["response"]


async def refused(websocket, **event):
    await say(websocket, store=False, **event)
    error = (await until(websocket, "error"))[-1]
    schemas.WebSocketErrorEvent.model_validate(error)
    return error["status"], error["error"]["code"]


NOT_FOUND = (404, "previous_response_not_found")


async def test_sequential_responses_and_a_continuation_over_the_socket():
    engine = Script(*HELLO)
    async with served_by(engine) as server, socket_to(server) as websocket:
        await answered(websocket, input="Reply with exactly: first")
        second = await answered(websocket, input="Remember the code word: cobalt.")
        third = await answered(websocket, input="What is the code word?", previous_response_id=second["id"])
    assert third["previous_response_id"] == second["id"]
    assert "first" not in engine.prompts[2] and "cobalt" in engine.prompts[2]


async def test_what_is_not_stored_is_gone_with_its_socket():
    async with served(HELLO) as server:
        async with socket_to(server) as websocket:
            first = await answered(websocket)
            async with socket_to(server) as other:
                assert await refused(other, previous_response_id=first["id"]) == NOT_FOUND
        async with socket_to(server) as websocket:
            assert await refused(websocket, previous_response_id=first["id"]) == NOT_FOUND
            await answered(websocket)


async def compact(server, **body):
    async with http_of(server) as http:
        return await http.post("/v1/responses/compact", json=body)


async def test_a_compacted_conversation_begins_a_new_one_over_the_socket():
    said = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "The code word is slate."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "OK."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Compress this."}]},
    ]
    engine = Script(*HELLO)
    async with served_by(engine) as server, socket_to(server) as websocket:
        reply = await compact(server, model="default", input=said, prompt_cache_key="k")
        assert reply.status_code == 200, reply.text
        compacted = reply.json()
        check_nulls(schemas.CompactResource.model_validate(compacted, strict=False))
        assert [item["type"] for item in compacted["output"]] == ["compaction"]
        await answered(websocket, input=[*compacted["output"], {"role": "user", "content": "Go on."}], tools=[])
    assert "slate" in engine.prompts[1] and "Hello!" in engine.prompts[1] and "OK." not in engine.prompts[1]


async def test_compacting_wants_a_model():
    async with served(HELLO) as server:
        reply = await compact(server, input="hi")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "model")


async def test_an_image_is_refused_by_name():
    content = [{"type": "input_image", "image_url": data_url(png())}]
    async with served(HELLO) as server, http_of(server) as http:
        body = {"input": [{"type": "message", "role": "user", "content": content}]}
        reply = await http.post("/v1/responses", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "messages[0].content[0]")


async def test_logprobs_fit_the_schema():
    async with serving(Sure()) as server, http_of(server) as http:
        body = {"input": "hi", "include": ["message.output_text.logprobs"], "top_logprobs": 2}
        reply = (await http.post("/v1/responses", json=body)).json()
    TypeAdapter(schemas.ResponseResource).validate_python(reply)
    assert reply["output"][0]["content"][0]["logprobs"][0]["logprob"] == -0.25
    assert [top["logprob"] for top in reply["output"][0]["content"][0]["logprobs"][0]["top_logprobs"]] == [-0.25, -2.0]
