"""Recorded requests of unmodified clients, sent again: Codex CLI, the Agents SDK of OpenAI, Claude Code, and the AI SDK.

The recordings say where they come from. Ids that the server had given are replaced by those that it gives now.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from derendering import TEMPLATE
from serving import TOK, events_in, http_of, serving, socket_to

RECORDED = Path(__file__).parent / "recorded"
SAID = "It says weir. 🙂"


def recorded(name):
    return json.loads((RECORDED / f"{name}.json").read_text("utf-8"))


class Turns:
    """An engine that thinks and calls a tool in the first turn, and answers in the second."""

    def __init__(self, tool, arguments):
        call = json.dumps({"name": tool, "arguments": arguments})
        self.turns = [
            f"<think>I should look.</think>I look.<tool_call>{call}</tool_call><|im_end|>",
            f"<think>Now I know.</think>{SAID}<|im_end|>",
        ]
        self.prompts = []

    async def generate(self, prompt_ids, sampling):
        self.prompts.append(TOK.decode(prompt_ids, skip_special_tokens=False))
        for token_id in TOK.encode(self.turns[(len(self.prompts) - 1) % 2]):
            yield [token_id]


async def posted(server, path, body):
    """The last object of an answer: what a stream ends with, or the whole."""
    async with http_of(server, "/v1") as client:
        answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    if not body.get("stream"):
        return answer.json()
    assert answer.text.endswith("data: [DONE]\n\n")
    return events_in(answer.text)


def kinds(response):
    return [item["type"] for item in response["output"]]


def check_codex(engine):
    """The last prompt has everything that the client said, in its order."""
    said = [
        "<|im_start|>system\nYou are a coding agent in a terminal.",
        "<skills_instructions>",
        "<permissions instructions>",
        "<|im_start|>user\n<environment_context>",
        "<|im_start|>user\nSay hi.<|im_end|>",
        'I look.<tool_call>{"name": "exec_command", "arguments": {"cmd": "echo weir"}}</tool_call>',
        "<|im_start|>tool\nProcess exited with code 0",
    ]
    places = [engine.prompts[-1].find(text) for text in said]
    assert -1 not in places and places == sorted(places)
    assert "exec_command\nview_image\n" in engine.prompts[-1]  # the functions alone: others are for the server to run


async def test_codex_posts_its_turns():
    recording, engine = recorded("codex_cli"), Turns("exec_command", {"cmd": "echo weir"})
    async with serving(engine, template=TEMPLATE) as server:
        turns = [await posted(server, "/responses", body | {"tools": recording["tools"]}) for body in recording["post"]]
    for events, expected in zip(
        turns, (["reasoning", "message", "function_call"], ["reasoning", "message"]), strict=True
    ):
        assert events[-1]["type"] == "response.completed"
        assert kinds(events[-1]["response"]) == expected
    assert turns[1][-1]["response"]["output"][1]["content"][0]["text"] == SAID
    check_codex(engine)


async def test_codex_warms_a_socket_up_and_goes_on_from_there():
    recording, engine = recorded("codex_cli"), Turns("exec_command", {"cmd": "echo weir"})
    async with serving(engine, template=TEMPLATE) as server, socket_to(server) as websocket:
        last = None
        for event in recording["socket"]:
            event |= {"tools": recording["tools"]}
            if last is not None:
                event["previous_response_id"] = last["id"]
                for item in event["input"]:
                    if item["type"] == "function_call_output":
                        item["call_id"] = last["output"][-1]["call_id"]
            await websocket.send(json.dumps(event))
            while (told := json.loads(await websocket.recv()))["type"] != "response.completed":
                assert told["type"] not in ("error", "response.failed"), told
            if last is None:
                assert not engine.prompts
                assert told["response"]["output"] == [] and told["response"]["usage"]["input_tokens"] > 0
            last = told["response"]
    assert last["output"][-1]["content"][0]["text"] == SAID
    check_codex(engine)


@pytest.mark.parametrize("interface", ["responses", "chat"])
async def test_the_agents_sdk_calls_a_tool(interface):
    engine = Turns("weather", {"city": "Rome"})
    path = "/responses" if interface == "responses" else "/chat/completions"
    async with serving(engine, template=TEMPLATE) as server:
        answers = [await posted(server, path, body) for body in recorded("agents_sdk")[interface]]
    whole, streamed = answers[:2], answers[2:]
    if interface == "responses":
        assert [kinds(answer) for answer in whole] == [
            ["reasoning", "message", "function_call"],
            ["reasoning", "message"],
        ]
        assert [tool["strict"] for tool in whole[0]["tools"]] == [False]  # which was asked for and cannot be promised
        assert whole[1]["output"][1]["content"][0]["text"] == SAID
        assert streamed[1][-1]["response"]["output"][1]["content"][0]["text"] == SAID
    else:
        assert [answer["choices"][0]["finish_reason"] for answer in whole] == ["tool_calls", "stop"]
        assert whole[1]["choices"][0]["message"]["content"] == SAID
        assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in streamed[1]) == SAID
    for prompt in engine.prompts:
        assert "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHow is Rome?<|im_end|>" in prompt
        assert prompt.startswith("weather\n")
    for prompt in engine.prompts[1::2]:
        assert '"arguments": {"city": "Rome"}}</tool_call><|im_end|>\n<|im_start|>tool\nSunny in Rome' in prompt


async def test_the_ai_sdk_refers_to_items_of_the_turn_before():
    """It sends references where an answer was stored, and the call itself."""
    engine = Turns("weather", {"city": "Rome"})
    first, second = recorded("ai_sdk")["post"]
    async with serving(engine, template=TEMPLATE) as server:
        output = {item["type"]: item for item in (await posted(server, "/responses", first))["output"]}
        for item in second["input"][1:]:
            if item["type"] == "item_reference":
                item["id"] = output[item["id"]]["id"]
            else:
                item["call_id"] = output["function_call"]["call_id"]
        answer = await posted(server, "/responses", second)
        assert answer["output"][-1]["content"][0]["text"] == SAID
        again = second | {"previous_response_id": answer["id"], "input": [second["input"][1], second["input"][2]]}
        assert (await posted(server, "/responses", again))["output"]
    calls = '{"name": "weather", "arguments": {"city": "Rome"}}</tool_call><|im_end|>\n<|im_start|>tool\nSunny in Rome'
    assert f"I look.<tool_call>{calls}" in engine.prompts[1].replace("\n<tool_call>", "<tool_call>")


async def test_a_reference_to_an_unknown_item_is_refused_with_its_place():
    engine = Turns("weather", {"city": "Rome"})
    async with serving(engine, template=TEMPLATE) as server, http_of(server, "/v1") as client:
        unstored = await client.post("/responses", json={"input": "hi", "store": False})
        for item_id in ("msg_0", unstored.json()["output"][0]["id"]):
            refused = await client.post("/responses", json={"input": [{"type": "item_reference", "id": item_id}]})
            error = refused.json()["error"]
            assert (refused.status_code, error["code"], error["param"]) == (404, "item_not_found", "input[0].id")


async def test_references_are_bounded_by_what_they_stand_for():
    engine = Turns("weather", {"city": "Rome"})
    engine.turns = ["word " * 1000 + "<|im_end|>"] * 2
    async with (
        serving(engine, template=TEMPLATE, max_message_bytes=100_000) as server,
        http_of(server, "/v1") as client,
    ):
        item = (await client.post("/responses", json={"input": "hi"})).json()["output"][0]
        references = [{"type": "item_reference", "id": item["id"]}] * 100
        for count, status in ((10, 200), (100, 400)):
            body = {"input": [*references[:count], {"role": "user", "content": "hi"}], "store": False}
            reply = await client.post("/responses", json=body)
            assert reply.status_code == status, reply.text
    assert reply.json()["error"]["code"] == "conversation_too_long" and len(engine.prompts) == 2


async def test_claude_code_calls_a_tool():
    recording, engine = recorded("claude_code"), Turns("Bash", {"command": "echo weir", "description": "say weir"})
    url, texts, call_id = recording["path"], [], None
    async with serving(engine, template=TEMPLATE) as server, http_of(server, headers=recording["headers"]) as client:
        for body in recording["post"]:
            for message in body["messages"]:
                for block in message["content"] if isinstance(message["content"], list) else ():
                    for name in block.keys() & {"id", "tool_use_id"}:
                        block[name] = call_id
            answer = await client.post(url, json=body | {"tools": recording["tools"]})
            assert answer.status_code == 200, answer.text
            events = events_in(answer.text)
            blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
            texts.append(
                "".join(event["delta"].get("text", "") for event in events if "text" in event.get("delta", {}))
            )
            call_id = next((block["id"] for block in blocks if block["type"] == "tool_use"), None)
            assert events[0]["message"]["left_out"] == ["system[0]"]
            assert events[-2]["context_management"] == {"applied_edits": []}
    assert texts == ["I look.", SAID]
    first, second = engine.prompts
    assert first.startswith(
        "Bash\nRead\nTaskStop\nWebFetch\n<|im_start|>system\nYou are an agent in a terminal.\nYou help"
    )
    assert "billing" not in first
    opening = "<|im_start|>assistant"
    assert first.endswith(opening) and second.startswith(first.removesuffix(opening))  # what a prefix cache needs
    assert '"command": "echo weir"' in second and "<|im_start|>tool\nweir<|im_end|>" in second
