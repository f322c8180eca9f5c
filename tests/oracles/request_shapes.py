"""Requests that grow: for each interface, functions of a size that make the path and the body of a valid request.

The number of items or characters is proportional to the size. The requests of size 2,000 are shorter than a megabyte, and
within all limits of a server by default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PIECE = "\U0001f642" + "abcdefg" * 59
"""A short text whose first character makes each one that it is joined to wide."""
MODEL = {"model": "quick"}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USED = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
CALLED = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
SPACES = {"type": "text", "text": " "}

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
Request = tuple[str, dict[str, Any]]


def _texts(size: int, kind: str = "text") -> list[dict[str, Any]]:
    return [{"type": kind, "text": PIECE}] * size


def _turns(role: str, size: int) -> list[dict[str, Any]]:
    return [{"role": role, "content": PIECE}] * size


def _user(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


def _chat(*messages: dict[str, Any], **more: Any) -> Request:
    return CHAT, MODEL | {"messages": list(messages), "max_tokens": 1} | more


def _responses(*items: dict[str, Any], **more: Any) -> Request:
    return RESPONSES, MODEL | {"input": list(items), "max_output_tokens": 1, "store": False} | more


def _messages(*turns: dict[str, Any], **more: Any) -> Request:
    return MESSAGES, MODEL | {"max_tokens": 1, "messages": list(turns)} | more


def _tool(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "description": "", "parameters": parameters}}


def _file(data: str) -> dict[str, Any]:
    return {"type": "file", "file": {"file_data": data, "filename": "a"}}


def _alternatives(size: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"anyOf": [{}] * (10 * size)}}}


def _chain(size: int) -> dict[str, Any]:
    steps = {str(step): {"$ref": f"#/$defs/{step + 1}"} for step in range(size)}
    return {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/0"}},
        "$defs": steps | {str(size): {"type": "string"}},
    }


TAGGED = "{% if false %}<tool_call>f<arg_key>a</arg_key><arg_value>b</arg_value></tool_call>{% endif %}"
"""End of a template that shows calls whose arguments are typed by the function's schema."""


def _derender(size: int) -> Request:
    """Return an answer in ids to parse: a call of many arguments, all of whose types are behind one large schema."""
    import tokenweir  # steps may have to be counted from its first import on

    names = [f"a{number}" for number in range(size // 16)]
    arguments = "".join(f"<arg_key>{name}</arg_key>\n<arg_value>b c</arg_value>\n" for name in names)
    call = f"<tool_call>f\n{arguments}</tool_call>"
    parameters = {
        "type": "object",
        "properties": {name: {"$ref": "#/$defs/all"} for name in names},
        "$defs": {"all": {"anyOf": [{}] * (5 * size)}},
    }
    choice = {"index": 0, "token_ids": tokenweir.Tokenizer.default().encode(call), "finish_reason": "stop"}
    return f"{CHAT}/derender", MODEL | {
        "generate_response": {"request_id": "r", "choices": [choice]},
        "prompt_token_ids": [5],
        "chat_request": {"messages": _user("?"), "tools": [_tool(parameters)]},
    }


JOINS: dict[str, Callable[[int], Request]] = {
    "messages: user turns": lambda n: _messages(*_turns("user", n)),
    "messages: assistant turns": lambda n: _messages(*_user("?"), *_turns("assistant", n)),
    "messages: later system": lambda n: _messages(*_user("?"), *_turns("system", n)),
    "messages: blocks": lambda n: _messages(*_user(_texts(n))),
    "messages: system blocks": lambda n: _messages(*_user("?"), system=_texts(n)),
    "messages: a result": lambda n: _messages(
        *_user("?"),
        {"role": "assistant", "content": [USED]},
        *_user([{"type": "tool_result", "tool_use_id": "a", "content": _texts(n)}]),
    ),
    "messages: thinking": lambda n: _messages(
        *_user("?"),
        {"role": "assistant", "content": [{"type": "thinking", "thinking": PIECE, "signature": "a"}] * n},
        *_user("?"),
    ),
    "responses: messages": lambda n: _responses(*_turns("user", n)),
    "responses: answers": lambda n: _responses(*_user("?"), *_turns("assistant", n), *_user("?")),
    "responses: parts": lambda n: _responses(*_user(_texts(n, "input_text"))),
    "responses: a result": lambda n: _responses(
        *_user("?"), CALLED, {"type": "function_call_output", "call_id": "a", "output": _texts(n, "input_text")}
    ),
    "responses: thinking": lambda n: _responses(
        *_user("?"),
        *[{"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": PIECE}]}]
        * (n // 2),
        *_user("?"),
    ),
    "responses: a summary": lambda n: _responses(
        *_user("?"), {"type": "reasoning", "id": "r", "summary": _texts(n, "summary_text")}, *_user("?")
    ),
    "compact": lambda n: ("/v1/responses/compact", MODEL | {"input": _user(_texts(n, "input_text"))}),
    "chat: turns": lambda n: _chat(*_turns("user", n)),
    "chat: answers": lambda n: _chat(*_user("?"), *_turns("assistant", n), *_user("?")),
    "chat: system": lambda n: _chat(*_turns("system", n), *_user("?")),
    "chat: parts": lambda n: _chat(*_user(_texts(n))),
    "chat: parts and a file": lambda n: _chat(*_user([*_texts(n), _file("data:text/plain;base64,YQ==")])),
    "chat: a result": lambda n: _chat(
        *_user("?"),
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": _texts(n)},
    ),
    "chat: blank parts": lambda n: _chat(*_user([SPACES] * n)),
    "tokenize: parts": lambda n: ("/tokenize", MODEL | {"messages": _user(_texts(n))}),
    "render: parts": lambda n: (f"{CHAT}/render", MODEL | {"messages": _user(_texts(n))}),
    "render: turns of messages": lambda n: (f"{MESSAGES}/render", _messages(*_turns("user", n))[1]),
    "count: turns of messages": lambda n: (
        f"{MESSAGES}/count_tokens",
        MODEL | {"messages": [*_user("?"), *_turns("assistant", n)]},
    ),
    "responses: instructions": lambda n: _responses(*_user("?"), instructions=PIECE * n),
    "messages: results": lambda n: _messages(
        *_user("?"),
        {"role": "assistant", "content": [USED]},
        *_user([{"type": "tool_result", "tool_use_id": "a", "content": "b"}, *_texts(n)]),
    ),
    "completions: a text": lambda n: ("/v1/completions", MODEL | {"prompt": PIECE * n, "max_tokens": 1}),
}
"""Neighbouring texts, which a server joins."""

HEADS: dict[str, Callable[[int], Request]] = {
    "chat: a file": lambda n: _chat(*_user([_file("data:a/" + "b" * (400 * n))])),
    "chat: an image": lambda n: _chat(
        *_user([{"type": "image_url", "image_url": {"url": "data:a/b" + ";c=d" * (100 * n)}}])
    ),
    "chat: a result with a file": lambda n: _chat(
        *_user("?"),
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": [_file("data:a/" + "b" * (400 * n))]},
    ),
    "responses: a file": lambda n: _responses(
        *_user([{"type": "input_file", "file_data": "data:a/" + "b" * (400 * n), "filename": "a"}])
    ),
    "responses: a result with a file": lambda n: _responses(
        *_user("?"),
        CALLED,
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [{"type": "input_file", "file_data": "data:" + "a" * (400 * n)}],
        },
    ),
    "compact: a file": lambda n: (
        "/v1/responses/compact",
        MODEL | {"input": _user([{"type": "input_file", "file_data": "data:a/" + "b" * (400 * n)}])},
    ),
    "tokenize: a file": lambda n: ("/tokenize", MODEL | {"messages": _user([_file("data:a/" + "b" * (400 * n))])}),
    "render: a file": lambda n: (
        f"{CHAT}/render",
        MODEL | {"messages": _user([_file("data:a/b" + ";" * (400 * n))])},
    ),
    "messages: a document": lambda n: _messages(
        *_user(
            [{"type": "document", "source": {"type": "base64", "media_type": "a/" + "b" * (400 * n), "data": "YQ=="}}]
        )
    ),
}
"""Data URLs whose head has no end: refused, with status 400."""

MANY: dict[str, Callable[[int], Request]] = {
    "chat: calls": lambda n: _chat(
        *_user("?"),
        {"role": "assistant", "content": None, "tool_calls": [CALL | {"id": f"a{each}"} for each in range(n // 2)]},
        *({"role": "tool", "tool_call_id": f"a{each}", "content": "b"} for each in range(n // 2)),
    ),
    "chat: tools": lambda n: _chat(*_user("?"), tools=[_tool({"type": "object", "properties": {}})] * n),
    "chat: alternatives of a tool": lambda n: _chat(*_user("?"), tools=[_tool(_alternatives(n))]),
    "chat: a chain of references": lambda n: _chat(*_user("?"), tools=[_tool(_chain(n))]),
    "responses: calls": lambda n: _responses(
        *_user("?"),
        *(CALLED | {"call_id": f"a{each}"} for each in range(n // 2)),
        *({"type": "function_call_output", "call_id": f"a{each}", "output": "b"} for each in range(n // 2)),
    ),
    "messages: calls": lambda n: _messages(
        *_user("?"),
        {"role": "assistant", "content": [USED | {"id": f"a{each}"} for each in range(n // 2)]},
        *_user([{"type": "tool_result", "tool_use_id": f"a{each}", "content": "b"} for each in range(n // 2)]),
    ),
    "derender": _derender,
    "detokenize": lambda n: ("/detokenize", MODEL | {"tokens": [99] * (10 * n)}),
    "tokenize: a text": lambda n: ("/tokenize", MODEL | {"prompt": "a b" * n}),
}
"""Many items of other kinds."""

SHAPES = JOINS | HEADS | MANY
