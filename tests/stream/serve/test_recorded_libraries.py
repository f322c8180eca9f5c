"""Recorded requests of libraries, sent again: LangChain, pydantic-ai, instructor, litellm, the AI SDK, and aider.

A case is one use, such as a tool's loop. Its answers are read by the models of the packages `openai` and `anthropic`. The
recordings say where they come from; ids that the server had given have names.
"""

import json
from functools import partial
from pathlib import Path

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from derendering import TEMPLATE
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from serving import TOK, events_in, http_of, serving

RECORDED = Path(__file__).parent / "recorded"
CLIENTS = ["aider", "ai_sdk", "instructor", "langchain", "litellm", "pydantic_ai"]
CASES = {
    f"{client}, {name}": steps
    for client in CLIENTS
    for name, steps in json.loads((RECORDED / f"{client}.json").read_text("utf-8"))["cases"].items()
}
WEATHER = {"sky": "sunny", "degrees": 21}
ARGUMENTS = {
    "weather": {"city": "Rome"},
    **dict.fromkeys(("Weather", "final_result", "json", "json_tool_call"), WEATHER),
}
"""The tools of the recordings; those of an object are named by the libraries."""
SAID = "It says weir. 🙂\n<<<<<<< SEARCH\nhi\n=======\nweir\n>>>>>>> REPLACE"


class Model:
    """An engine that keeps to a schema, calls the first tool before it has results, and answers."""

    supports = frozenset({"json_schema", "temperature", "top_p", "max_tokens", "stop"})

    async def generate(self, prompt_ids, sampling):
        self.prompt = TOK.decode(prompt_ids, skip_special_tokens=False)
        self.sampling = sampling
        if sampling.json_schema is not None:
            text = json.dumps(self.form(sampling.json_schema))
        elif (name := self.prompt.split("\n")[0]) in ARGUMENTS and "<|im_start|>tool\n" not in self.prompt:
            call = json.dumps({"name": name, "arguments": ARGUMENTS[name]})
            text = f"<think>I should look.</think>I look.<tool_call>{call}</tool_call>"
        else:
            text = f"<think>Now I know.</think>{SAID}"
        for token_id in TOK.encode(text + "<|im_end|>"):
            yield [token_id]

    def form(self, schema):
        """Return an object or a list of calls that fits the schema."""
        if schema.get("type") != "array":
            return WEATHER
        name = schema["items"]["properties"]["name"]["enum"][0]
        return [{"name": name, "arguments": ARGUMENTS[name]}]


def chat(reply):
    """Read an answer of Chat Completions; returns its text, and the calls' ids, names and arguments."""
    if isinstance(reply, list):
        state = ChatCompletionStreamState()
        for chunk in reply:
            state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
        whole = state.get_final_completion()
    else:
        whole = ChatCompletion.model_validate(reply)
    message = whole.choices[0].message
    assert whole.choices[0].finish_reason == ("tool_calls" if message.tool_calls else "stop")
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
    return message.content, calls


def responses(reply):
    """Read an answer of Responses, as `chat` does."""
    if isinstance(reply, list):
        events = [TypeAdapter(ResponseStreamEvent).validate_python(event) for event in reply]
        assert events[-1].type == "response.completed"
        whole = events[-1].response
    else:
        whole = Response.model_validate(reply)
    calls = [item for item in whole.output if item.type == "function_call"]
    return whole.output_text, [(call.call_id, call.name, json.loads(call.arguments)) for call in calls]


def messages(reply):
    """Read an answer of Messages, as `chat` does."""
    if isinstance(reply, list):
        reply = whole_message([TypeAdapter(RawMessageStreamEvent).validate_python(event) for event in reply])
    whole = Message.model_validate(reply)
    calls = [(block.id, block.name, block.input) for block in whole.content if block.type == "tool_use"]
    assert whole.stop_reason == ("tool_use" if calls else "end_turn")
    return "".join(block.text for block in whole.content if block.type == "text"), calls


def whole_message(events):
    """Join the events of a stream to the answer."""
    blocks, whole = [], events[0].message.model_dump()
    for event in events:
        match event.type:
            case "content_block_start":
                blocks.append({"input_json": ""} | event.content_block.model_dump())
            case "content_block_delta":
                field = event.delta.type.removesuffix("_delta")
                blocks[event.index][field] += getattr(event.delta, "partial_json" if field == "input_json" else field)
            case "message_delta":
                whole["stop_reason"] = event.delta.stop_reason
    assert events[-1].type == "message_stop"
    content = [block | ({"input": json.loads(block["input_json"])} if block["input_json"] else {}) for block in blocks]
    return whole | {"content": content}


READERS = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}


def said(body):
    """Yield the texts of a request in the order of its prompt."""
    for message in [{"content": body.get("system")}, *(body.get("messages") or body.get("input"))]:
        if message.get("type") == "reasoning":
            continue
        for field in ("content", "output"):
            parts = message.get(field) or ()
            for part in [{"text": parts}] if isinstance(parts, str) else parts:
                yield from said({"messages": [part]}) if part.get("type") == "tool_result" else ()
                if "text" in part:
                    yield part["text"]


async def answered(client, path, body):
    """Post a request; returns the events of a stream, or the answer."""
    reply = await client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return events_in(reply.text) if body.get("stream") else reply.json()


def expected(body):
    """Return the text and the arguments that the client is to get."""
    choice = body.get("tool_choice") or "auto"
    choice = choice.get("type") if isinstance(choice, dict) else choice
    names = [tool.get("name") or tool["function"]["name"] for tool in body.get("tools", ())]
    if choice not in ("auto", "none") and names:
        return None, ARGUMENTS[names[0]]
    if any(body.get(field) for field in ("response_format", "output_config", "text")):
        return json.dumps(WEATHER), None
    return (SAID, None) if not names or "Sunny in Rome" in json.dumps(body) else ("I look.", ARGUMENTS[names[0]])


@pytest.mark.parametrize("name", CASES)
async def test_a_library_gets_what_it_asks_for(name):
    engine, given = Model(), {}
    async with serving(engine, template=TEMPLATE) as server, http_of(server) as client:
        for step in CASES[name]:
            body = json.loads(json.dumps(step["body"]), object_hook=partial(named, given))
            text, calls = READERS[step["path"]](await answered(client, step["path"], body))
            form, arguments = expected(body)
            assert (text or None) == form
            assert [call[2] for call in calls] == ([] if arguments is None else [arguments])
            given |= {f"call_{number}": call_id for number, (call_id, *_) in enumerate(calls, 1)}
            place = 0
            for part in said(body):
                place = engine.prompt.index(part, place) + len(part)
            assert engine.sampling.temperature == body.get("temperature")


def named(given, found):
    """Return an object of a recording with the ids of calls that the server gave this time."""
    return {key: given.get(value, value) if isinstance(value, str) else value for key, value in found.items()}


def test_every_recording_is_of_the_three_interfaces():
    assert {step["path"] for steps in CASES.values() for step in steps} == READERS.keys()
    assert len(CASES) > 40
