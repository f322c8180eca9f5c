"""Marks for caches of prompts: without effect in every interface, wherever clients put them."""

import pytest
from case_tables import cases
from serving import WITH_TOOLS, Script, http_of, serving

from tokenweir.stream.serve.wire.shared.checking import LONG

CASES = cases(__file__)

MARKS = CASES["marks"]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
HINTS = {"prediction": {"type": "content", "content": "Hello"}, "prompt_cache_options": {"ttl": "30m"}}


def chat(mark, filler=""):
    text = [{"type": "text", "text": "hi" + filler, **mark}]
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}, **mark}
    return "/v1/chat/completions", {
        "messages": [
            {"role": "system", "content": "Be brief.", **mark},
            {"role": "user", "content": text, **mark},
            {"role": "assistant", "content": None, "tool_calls": [call], **mark},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "ok", **mark}], **mark},
        ],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA, **mark}, **mark}],
        **mark,
        **(HINTS if mark else {}),
    }


def responses(mark):
    return "/v1/responses", {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi", **mark}], **mark},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}", **mark},
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": [{"type": "input_text", "text": "ok", **mark}],
                **mark,
            },
        ],
        "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA, **mark}],
        **mark,
        **(HINTS | {"prompt_cache_retention": "24h"} if mark else {}),
    }


def messages(mark):
    return "/v1/messages", {
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief.", **mark}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", **mark}], **mark},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {}, **mark}],
                **mark,
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "text", "text": "ok", **mark}],
                        **mark,
                    }
                ],
                **mark,
            },
        ],
        "tools": [{"name": "weather", "input_schema": SCHEMA, **mark}],
        **mark,
        **({"prediction": HINTS["prediction"]} if mark else {}),
    }


@pytest.mark.parametrize("body_of", [chat, lambda mark: chat(mark, "x" * LONG), responses, messages])
async def test_a_mark_changes_nothing(body_of):
    engine = Script("Hello", "<|im_end|>")
    async with serving(engine, template=WITH_TOOLS) as server, http_of(server) as client:
        for mark in MARKS:
            path, body = body_of(mark)
            answer = await client.post(path, json=body)
            assert answer.status_code == 200, answer.text
            if "tools" in answer.json():
                (tool,) = answer.json()["tools"]
                assert {name: value for name, value in tool.items() if name not in mark} == {
                    "type": "function",
                    "name": "weather",
                    "description": None,
                    "parameters": SCHEMA,
                    "strict": None,
                }
    assert len(set(engine.prompts)) == 1
