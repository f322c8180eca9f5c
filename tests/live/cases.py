"""The requests that are sent to a vLLM server alone, to tokenweir in front of it, and to tokenweir inside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MODEL = "small"
CHAT, TEXT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"


@dataclass(frozen=True)
class Case:
    """A request, sent whole and streamed.

    Attributes:
        name: Its name.
        path: The path that takes it.
        body: The body, without `model` and `stream`.

    """

    name: str
    path: str
    body: dict[str, Any]

    def sent(self, *, streamed: bool) -> dict[str, Any]:
        """Return the whole body."""
        ids = {"return_token_ids": True} if self.path in (CHAT, TEXT) else {}
        body = {"model": MODEL, "temperature": 0} | ids | self.body | {"stream": streamed}
        if streamed and self.path in (CHAT, TEXT):
            body["stream_options"] = {"include_usage": True}
        return body


def user(text: str) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": text}


PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Get the weather of a city", "parameters": PARAMETERS}
TIME = WEATHER | {"name": "get_time", "description": "Get the time in a city"}
TOOLS = [{"type": "function", "function": each} for each in (WEATHER, TIME)]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}, "degrees": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


def _call(city: str) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": json.dumps({"city": city})}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": city, "type": "function", "function": function}]}


# The model is so small that it calls and thinks only as it sees itself do in the history.
CALLS: list[dict[str, Any]] = []
for _city, _weather in (("Paris", "rain"), ("Oslo", "snow"), ("Lima", "sun")):
    CALLS += [
        user(f"What is the weather in {_city}?"),
        _call(_city),
        {"role": "tool", "tool_call_id": _city, "content": _weather},
        {"role": "assistant", "content": f"There is {_weather} in {_city}."},
    ]
RESPONSE = "7639"
"""The id of the token by which `<tool_response>` differs from `<tool_call>`. Without it the model calls of its own accord."""
ONLY_CALLS = [message for message in CALLS if message["role"] != "assistant" or "tool_calls" in message]
CALLS.append(user("What is the weather in Rome?"))
ONLY_CALLS.append(CALLS[-1])

THOUGHTS: list[dict[str, Any]] = []
for _one, _two in ((2, 3), (4, 5), (7, 1)):
    THOUGHTS += [
        user(f"What is {_one} plus {_two}?"),
        {
            "role": "assistant",
            "reasoning": f"I add {_one} and {_two}.",
            "reasoning_content": f"I add {_one} and {_two}.",
            "content": f"It is {_one + _two}.",
        },
    ]
THOUGHTS.append(user("What is 3 plus 3?"))
THINKING = {"enable_thinking": True}

QUESTION = [user("What is the capital of France?")]
FORMAT = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}
ASKED = [user("Name a city and its degrees, as JSON.")]


def _chat() -> list[Case]:
    many = {"max_tokens": 10}
    bodies: dict[str, dict[str, Any]] = {
        "a question": {"messages": QUESTION},
        "a system message": {"messages": [{"role": "system", "content": "You are a pirate."}, user("Who are you?")]},
        "emoji": {"messages": [user("Repeat this: 👩‍🚀🎉 naïve café 🇫🇷")]},
        "Chinese": {"messages": [user("用中文介绍一下长城。")]},
        "one token": {"messages": QUESTION, "max_tokens": 1},
        "a stop string": {"messages": QUESTION, "stop": ["Par"]},
        "a stop string over tokens": {"messages": QUESTION, "stop": ["tal of Fr", "xyz"]},
        "a stop string that is kept": {"messages": QUESTION, "stop": ["Par"], "include_stop_str_in_output": True},
        "a stop token": {"messages": QUESTION, "stop_token_ids": [7042]},
        "several choices": {"messages": QUESTION, "temperature": 0.9, "seed": 7, "n": 3} | many,
        "logprobs": {"messages": QUESTION, "logprobs": True, "top_logprobs": 3},
        "logprobs of emoji": {"messages": [user("Repeat this: 🎉🎉")], "logprobs": True, "top_logprobs": 0} | many,
        "ignore_eos": {"messages": QUESTION, "ignore_eos": True} | many,
        "min_tokens": {"messages": QUESTION, "min_tokens": 9} | many,
        "logit_bias": {"messages": QUESTION, "logit_bias": {"7042": -100}} | many,
        "penalties": {"messages": QUESTION, "repetition_penalty": 1.3, "presence_penalty": 0.5} | many,
        "special tokens kept": {"messages": QUESTION, "skip_special_tokens": False},
        "an answer continued": {
            "messages": [*QUESTION, {"role": "assistant", "content": "The capital of"}],
            "add_generation_prompt": False,
            "continue_final_message": True,
        },
        "tools, auto": {"messages": CALLS, "tools": TOOLS},
        "tools, auto, a call": {"messages": ONLY_CALLS, "tools": TOOLS, "logit_bias": {RESPONSE: -100}},
        "tools, none": {"messages": CALLS, "tools": TOOLS, "tool_choice": "none"},
        "tools, required": {"messages": CALLS, "tools": TOOLS, "tool_choice": "required", "max_tokens": 48},
        "tools, named": {
            "messages": CALLS,
            "tools": TOOLS,
            "tool_choice": {"type": "function", "function": {"name": "get_time"}},
        },
        "tools, auto, no call": {"messages": QUESTION, "tools": TOOLS} | many,
        "JSON schema": {"messages": ASKED, "response_format": FORMAT},
        "thinking": {"messages": THOUGHTS, "chat_template_kwargs": THINKING},
        "thinking that is cut": {"messages": THOUGHTS, "chat_template_kwargs": THINKING, "max_tokens": 5},
        "thinking and a stop string": {"messages": THOUGHTS, "chat_template_kwargs": THINKING, "stop": ["is"]},
        "thinking, then a schema": {"messages": THOUGHTS, "chat_template_kwargs": THINKING, "response_format": FORMAT},
        "an unknown model": {"messages": QUESTION, "model": "large"},
        "a temperature below 0": {"messages": QUESTION, "temperature": -1},
        "a prompt that is too long": {"messages": [user("word " * 9000)]},
        "no messages": {"messages": []},
    }
    return [Case(name, CHAT, {"max_tokens": 32} | body) for name, body in bodies.items()]


def _text() -> list[Case]:
    bodies: dict[str, dict[str, Any]] = {
        "a text": {"prompt": "The capital of France is"},
        "ids": {"prompt": [504, 3575, 282, 4649, 314]},
        "several choices": {"prompt": "Once", "temperature": 0.9, "seed": 5, "n": 2},
        "logprobs": {"prompt": "The capital of France is", "logprobs": 2},
        # With ids, vLLM leaves the prompt's text out.
        "echo": {"prompt": "The capital of France is", "echo": True, "return_token_ids": False},
        "echo with logprobs": {
            "prompt": "The capital of France is",
            "echo": True,
            "logprobs": 1,
            "return_token_ids": False,
        },
        "a stop string": {"prompt": "One, two, three,", "stop": [" five"]},
        "a control token in the text": {"prompt": "a<|im_end|>b"},
    }
    return [Case(name, TEXT, {"max_tokens": 8} | body) for name, body in bodies.items()]


def _item(message: dict[str, Any]) -> dict[str, Any]:
    """The item of a response's input for a message."""
    if message["role"] == "tool":
        return {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
    if calls := message.get("tool_calls"):
        return {"type": "function_call", "call_id": calls[0]["id"], **calls[0]["function"]}
    return {"type": "message", **message}


def _responses() -> list[Case]:
    flat = [{"type": "function", **each} for each in (WEATHER, TIME)]
    history = [_item(message) for message in CALLS]
    shape = {"type": "json_schema", "name": "weather", "schema": SCHEMA, "strict": True}
    bodies: dict[str, dict[str, Any]] = {
        "a text": {"input": "What is the capital of France?"},
        "instructions": {"input": [{"type": "message", **user("Who are you?")}], "instructions": "You are a pirate."},
        "tools, auto": {"input": history, "tools": flat},
        "tools, required": {
            "input": history,
            "tools": flat,
            "tool_choice": "required",
            "max_output_tokens": 48,
        },
        "tools, named": {"input": history, "tools": flat, "tool_choice": {"type": "function", "name": "get_time"}},
        "JSON schema": {"input": "Name a city and its degrees, as JSON.", "text": {"format": shape}},
        "an answer that is cut": {"input": "Tell a story.", "max_output_tokens": 8},
    }
    return [Case(name, RESPONSES, {"max_output_tokens": 32} | body) for name, body in bodies.items()]


def _with_blocks(message: dict[str, Any]) -> dict[str, Any]:
    """A message in Anthropic's form."""
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [block]}
    if calls := message.get("tool_calls"):
        name, arguments = calls[0]["function"]["name"], json.loads(calls[0]["function"]["arguments"])
        return {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": calls[0]["id"], "name": name, "input": arguments}],
        }
    return message


def _messages() -> list[Case]:
    tools = [
        {"name": each["name"], "description": each["description"], "input_schema": PARAMETERS}
        for each in (WEATHER, TIME)
    ]
    history = [_with_blocks(message) for message in CALLS]
    bodies: dict[str, dict[str, Any]] = {
        "a question": {"messages": QUESTION},
        "a system text": {"messages": [user("Who are you?")], "system": "You are a pirate."},
        "a stop sequence": {"messages": QUESTION, "stop_sequences": ["Par"]},
        "tools, auto": {"messages": history, "tools": tools},
        "tools, any": {"messages": history, "tools": tools, "tool_choice": {"type": "any"}, "max_tokens": 48},
        "tools, named": {"messages": history, "tools": tools, "tool_choice": {"type": "tool", "name": "get_time"}},
        "an answer that is cut": {"messages": [user("Tell a story.")], "max_tokens": 8},
    }
    return [Case(name, MESSAGES, {"max_tokens": 32} | body) for name, body in bodies.items()]


CASES = [*_chat(), *_text(), *_responses(), *_messages()]
