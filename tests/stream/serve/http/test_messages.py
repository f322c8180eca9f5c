"""Anthropic's Messages API over HTTP, by its unmodified client; bodies and events are checked by the client's own models."""

import asyncio
import json

import anthropic
import pytest
from anthropic import Anthropic
from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent
from anthropic.types.shared import ErrorResponse
from case_tables import cases
from pydantic import TypeAdapter
from serving import CALL, TOK, WITH_TOOLS, Endless, Script, anthropic_of, eventually, http_of, serving

from tokenweir.encode.errors import EngineError
from tokenweir.stream.serve.limits.limits import Limits

CASES = cases(__file__)

HI = [{"role": "user", "content": "hi"}]
BASICS = {"model": "default", "max_tokens": 100}
THINKING = ("<think>", "Let me see.", "</think>", "Hello wörld 🙂!", "<|im_end|>")
TOOL = {"name": "weather", "description": "Look outside.", "input_schema": {"type": "object", "properties": {}}}
SAMPLING = {"temperature": 0, "top_k": 3}
EVENT = TypeAdapter(RawMessageStreamEvent)
HEADER = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197.8a4; cch=1a2b3;"}


async def posted(server, body, path="", **headers):
    async with http_of(server) as client:
        return await client.post(f"/v1/messages{path}", json=body, headers=headers)


def events_of(text):
    """The events of a stream, each of which the client's models accept, in the protocol's order."""
    events = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        EVENT.validate_python(event)
        events.append(event)
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    opened = None
    for event in events[1:-2]:
        match event["type"]:
            case "content_block_start":
                assert opened is None
                opened = event["index"]
            case "content_block_delta":
                assert event["index"] == opened
            case "content_block_stop":
                assert event["index"] == opened
                opened = None
            case other:
                pytest.fail(f"{other} in the middle of a stream")
    starts = [event["index"] for event in events if event["type"] == "content_block_start"]
    assert opened is None and starts == list(range(len(starts)))
    return events


# --- answers ----------------------------------------------------------------------------------------------------------


async def test_a_message_with_thinking():
    engine = Script(*THINKING)
    async with serving({"demo": engine}) as server, anthropic_of(server) as client:
        message = await client.messages.create(model="demo", max_tokens=100, messages=HI, extra_body=SAMPLING)
    Message.model_validate(message.to_dict())
    thinking, text = message.content
    assert (thinking.type, thinking.thinking, text.type, text.text) == (
        "thinking",
        "Let me see.",
        "text",
        "Hello wörld 🙂!",
    )
    assert len(thinking.signature) == 64
    assert (message.stop_reason, message.stop_sequence, message.model) == ("end_turn", None, "demo")
    assert message.usage.input_tokens == len(TOK.encode(engine.prompts[0]))
    assert message.usage.output_tokens_details.thinking_tokens > 2
    assert (engine.sampling.max_tokens, engine.sampling.temperature, engine.sampling.top_k) == (100, 0, 3)


async def test_a_stream_has_the_events_of_the_protocol_in_its_order():
    async with serving(Script(*THINKING)) as server:
        answer = await posted(server, BASICS | {"messages": HI, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_of(answer.text)
    kinds = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert kinds == ["thinking", "text"]
    assert "".join(delta.get("thinking", "") for delta in deltas) == "Let me see."
    assert "".join(delta.get("text", "") for delta in deltas) == "Hello wörld 🙂!"
    assert [delta["type"] for delta in deltas].count("signature_delta") == 1
    assert events[0]["message"]["usage"]["input_tokens"] > 0
    assert events[-2]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert events[-2]["usage"]["output_tokens"] > 5


async def test_the_synchronous_client():
    def ask(port):
        with Anthropic(base_url=f"http://127.0.0.1:{port}", api_key="k", max_retries=0) as client:
            whole = client.messages.create(**BASICS, messages=HI)
            with client.messages.stream(**BASICS, messages=HI) as stream:
                joined = "".join(stream.text_stream)
                final = stream.get_final_message()
            counted = client.messages.count_tokens(model="default", messages=HI)
            return whole, joined, final, counted

    async with serving(Script(*THINKING)) as server:
        whole, joined, final, counted = await asyncio.to_thread(ask, server.port)
    assert joined == whole.content[1].text == "Hello wörld 🙂!"
    assert [block.to_dict() for block in final.content] == [block.to_dict() for block in whole.content]
    assert final.content[0].signature == whole.content[0].signature
    assert counted.input_tokens == whole.usage.input_tokens == final.usage.input_tokens


async def test_the_tool_runner_goes_on_without_a_thread():
    """The client asks for a thread first, and sends whole conversations where the error has the code that it knows."""

    @anthropic.beta_async_tool
    async def weather(city: str) -> str:
        """Look outside."""
        return f"Sunny in {city}"

    engine = Script(CALL, "<|im_end|>")
    async with serving(engine, template=WITH_TOOLS) as server, anthropic_of(server) as client:
        runner = client.beta.messages.tool_runner(**BASICS, messages=HI, tools=[weather])
        messages = []
        async for message in runner:
            messages.append(message)
            engine.parts = ("It is.", "<|im_end|>")
        with pytest.raises(anthropic.BadRequestError, match="send the whole conversation") as refused:
            await client.beta.messages.create(**BASICS, messages=HI, extra_body={"thread": {"type": "create"}})
    assert [message.stop_reason for message in messages] == ["tool_use", "end_turn"]
    assert len(engine.prompts) == 2
    assert engine.prompts[1].startswith(engine.prompts[0])
    assert "<|im_start|>tool\nSunny in Rome<|im_end|>" in engine.prompts[1]
    assert refused.value.body["error"]["details"] == {"error_code": "thread_unsupported_request", "param": "thread"}


async def test_a_call_that_was_cut_off_is_in_the_stream_and_not_in_the_message():
    engine = Script('<tool_call>{"name": "weather", "arguments": {"city": "Ro')
    body = BASICS | {"messages": HI, "tools": [TOOL], "max_tokens": len(TOK.encode(engine.parts[0]))}
    async with serving(engine, template=WITH_TOOLS) as server:
        streamed = events_of((await posted(server, body | {"stream": True})).text)
        whole = Message.model_validate((await posted(server, body)).json())
    assert streamed[1]["content_block"]["name"] == "weather"
    assert streamed[-2]["delta"]["stop_reason"] == whole.stop_reason == "max_tokens"
    assert whole.content == []


async def test_a_stop_sequence_ends_the_message_and_is_told():
    async with serving(Script("one two three", "<|im_end|>")) as server, anthropic_of(server) as client:
        message = await client.messages.create(**BASICS, messages=HI, stop_sequences=["two", "three"])
    assert (message.content[0].text, message.stop_reason, message.stop_sequence) == ("one ", "stop_sequence", "two")


async def test_more_tokens_than_the_context_has_left_are_no_error():
    class Small(Script):
        context_size = 60

    long = "on and " * 60
    async with serving({"small": Small(long), "default": Script(long)}) as server, anthropic_of(server) as client:
        full = await client.messages.create(model="small", max_tokens=20_000, messages=HI)
        cut = await client.messages.create(model="default", max_tokens=7, messages=HI)
    assert (full.stop_reason, cut.stop_reason) == ("model_context_window_exceeded", "max_tokens")
    assert full.usage.input_tokens + full.usage.output_tokens == 60
    assert cut.usage.output_tokens == 7


async def test_an_answer_goes_on_with_the_assistants_last_message():
    engine = Script("B)", "<|im_end|>")
    asked = [*HI, {"role": "assistant", "content": "The answer is ("}]
    async with serving(engine, template=WITH_TOOLS) as server, anthropic_of(server) as client:
        message = await client.messages.create(**BASICS, messages=asked)
    assert message.content[0].text == "B)"
    assert engine.prompts[0].endswith("<|im_start|>assistant\nThe answer is (")


async def test_signatures_are_of_the_text_and_the_server():
    body = BASICS | {"messages": HI}

    async def signature(server, **more):
        (block, *_) = (await posted(server, body | more)).json()["content"]
        return block["thinking"], block["signature"]

    async with serving(Script(*THINKING)) as one, serving(Script(*THINKING)) as other:
        first, again, elsewhere = await signature(one), await signature(one), await signature(other)
        omitted = await signature(one, thinking={"type": "adaptive", "display": "omitted"})
    assert first == again and first[1] != elsewhere[1]
    assert omitted == ("", first[1])


# --- counts and headers -----------------------------------------------------------------------------------------------


async def test_counted_tokens_are_those_of_the_prompt():
    engine = Script("Hello", "<|im_end|>")
    body = {"model": "default", "messages": HI, "system": [{"type": "text", "text": "Be short."}], "tools": [TOOL]}
    async with serving(engine, template=WITH_TOOLS) as server:
        counted = (await posted(server, body, "/count_tokens")).json()
        answered = (await posted(server, body | {"max_tokens": 9})).json()
    MessageTokensCount.model_validate(counted)
    assert counted == {"input_tokens": answered["usage"]["input_tokens"]}
    assert engine.started == 1


@pytest.mark.parametrize("keep", [False, True])
async def test_the_billing_header_is_left_out_and_told(keep):
    engine = Script("Hello", "<|im_end|>")
    body = BASICS | {"messages": HI, "system": [HEADER, {"type": "text", "text": "Be short."}]}
    counted_body = {name: value for name, value in body.items() if name != "max_tokens"}
    async with serving(engine, keep_billing_header=keep) as server:
        whole = (await posted(server, body)).json()
        start = events_of((await posted(server, body | {"stream": True})).text)[0]["message"]
        counted = (await posted(server, counted_body, "/count_tokens")).json()
        rendered = (await posted(server, body, "/render")).json()
    assert ("billing" in engine.prompts[0]) is keep
    expected = None if keep else ["system[0]"]
    assert [told.get("left_out") for told in (whole, start, counted, rendered)] == [expected] * 4


async def test_what_is_rendered_is_what_the_engine_is_sent():
    engine = Script("Hello", "<|im_end|>")
    body = BASICS | {"messages": HI, "stop_sequences": ["x"], "stream": True, "temperature": 0.5}
    async with serving(engine) as server:
        rendered = (await posted(server, body | {"cache_salt": "s", "priority": 2}, "/render")).json()
        await posted(server, body)
    assert TOK.decode(rendered["token_ids"], skip_special_tokens=False) == engine.prompts[0]
    assert rendered["sampling_params"] == {"max_tokens": 100, "temperature": 0.5, "stop": ["x"]}
    assert (rendered["model"], rendered["stream"], rendered["stream_options"]) == (
        "default",
        True,
        {"include_usage": True},
    )
    assert rendered["cache_salt"] != "s" and rendered["priority"] == 2


async def test_keys_of_both_headers_are_taken():
    async with serving(Script("Hello", "<|im_end|>"), api_key="secret") as server:
        body = BASICS | {"messages": HI}
        assert (await posted(server, body, **{"x-api-key": "secret"})).status_code == 200
        assert (await posted(server, body, authorization="Bearer secret")).status_code == 200
        both = {"x-api-key": "another service's", "authorization": "Bearer secret"}
        assert (await posted(server, body, **both)).status_code == 200
        wrong = await posted(server, body, **{"x-api-key": "guess"})
        none = await posted(server, body)
        async with anthropic_of(server, api_key="guess") as client:
            with pytest.raises(anthropic.AuthenticationError, match="the API key is wrong"):
                await client.messages.create(**body)
    for answer in (wrong, none):
        assert answer.status_code == 401
        assert answer.headers["x-should-retry"] == "false"
        assert ErrorResponse.model_validate(answer.json()).error.type == "authentication_error"


async def test_the_version_of_the_protocol():
    async with serving(Script("Hello", "<|im_end|>")) as server:
        old = await posted(server, BASICS | {"messages": HI}, **{"anthropic-version": "2023-01-01"})
        good = await posted(server, BASICS | {"messages": HI}, **{"anthropic-version": "2023-06-01"})
        new = await posted(server, BASICS | {"messages": HI}, **{"anthropic-version": "2026-10-21"})
    assert old.status_code == 400 and "2023-06-01 and 2026-10-21" in old.json()["error"]["message"]
    assert (good.status_code, new.status_code) == (200, 200)


# --- errors and limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "status", "kind", "message"), CASES["errors_have_the_form_of_the_protocol"])
async def test_errors_have_the_form_of_the_protocol(body, status, kind, message):
    async with serving(Script("Hello")) as server:
        answer = await posted(server, body)
    told = ErrorResponse.model_validate(answer.json())
    assert (answer.status_code, told.error.type) == (status, kind)
    assert message in told.error.message
    assert answer.json()["error"]["details"]["error_code"]


async def test_other_paths_keep_openais_form():
    async with serving(Script("Hello")) as server:
        under = await posted(server, {}, "/nothing")
        async with http_of(server) as client:
            beside = await client.post("/v1/messagesque", json={})
    assert under.json()["type"] == "error" and under.status_code == 404
    assert "type" not in beside.json() and beside.json()["error"]["code"] == "not_found"


async def test_an_engine_that_fails_in_the_middle_ends_the_stream_with_an_error_event():
    engine = Script("Hello", EngineError("secret path"))
    async with serving(engine) as server, anthropic_of(server) as client:
        answer = await posted(server, BASICS | {"messages": HI, "stream": True})
        with pytest.raises(anthropic.InternalServerError):
            await client.messages.create(**BASICS, messages=HI)
        with pytest.raises(anthropic.APIStatusError, match="the engine failed"):
            async for _ in await client.messages.create(**BASICS, messages=HI, stream=True):
                pass
    name, data = answer.text.strip().split("\n\n")[-1].split("\n")
    assert name == "event: error"
    told = ErrorResponse.model_validate_json(data.removeprefix("data: "))
    assert told.error.type == "api_error" and "secret path" not in told.error.message


async def test_rates_and_places_hold_for_messages_too():
    limits = Limits(max_requests_per_minute=1, drain_timeout=0.2)
    async with serving(Script("Hello", "<|im_end|>"), limits=limits) as server, anthropic_of(server) as client:
        await client.messages.create(**BASICS, messages=HI)
        with pytest.raises(anthropic.RateLimitError) as refused:
            await client.messages.count_tokens(model="default", messages=HI)
    assert int(refused.value.response.headers["retry-after"]) > 0
    engine = Endless()
    limits = Limits(max_generations=1, drain_timeout=0.2)
    async with serving(engine, limits=limits) as server, anthropic_of(server) as client:
        async with client.messages.stream(**BASICS | {"max_tokens": 8000}, messages=HI) as stream:
            await anext(aiter(stream))
            with pytest.raises(anthropic.APIStatusError) as full:
                await client.messages.create(**BASICS, messages=HI)
        await eventually(lambda: engine.closed)  # the client has gone
    assert (full.value.status_code, full.value.type) == (503, "overloaded_error")


async def test_silence_is_filled_with_ping_events():
    script = Script(0.06, "<think>", 0.06, "a", "</think>", 0.06, "b", "<|im_end|>")
    async with serving(script, heartbeat=0.01) as server:
        reply = await posted(server, BASICS | {"messages": HI, "stream": True})
        events = reply.text.split("\n\n")
        assert events.count('event: ping\ndata: {"type":"ping"}') >= 4
        assert ": keep-alive" not in reply.text
        events_of("\n\n".join(event for event in events if "ping" not in event))
        async with anthropic_of(server) as client, client.messages.stream(**BASICS, messages=HI) as stream:
            assert await stream.get_final_text() == "b"


async def test_models_are_listed_for_both_clients():
    async with serving({"demo": Script("Hello")}) as server, anthropic_of(server) as client:
        listed = [model async for model in client.models.list()]
    assert [(model.id, model.type, model.display_name) for model in listed] == [("demo", "model", "demo")]
