"""Requests that are short and dear: conversations of very many messages, by every way in which one may come."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode

from target import MEGABYTE, WRONG, Target, post, send

CLIENTS, PAUSE = 20, 0.01
MOST = 2048
"""Items of a request that default limits permit."""
COMPACTED = 22_000
"""Messages whose item is a little shorter than a message may be."""


async def compaction(target: Target) -> None:
    """Hide thousands of messages in one forged compaction item."""
    packed = json.dumps(_turns(COMPACTED), separators=(",", ":")).encode()
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": b64encode(packed).decode()}
    request = post("/v1/responses", {"model": "quick", "input": [item, {"role": "user", "content": "y"}]})

    def answered(_place: int, status: int, _body: bytes) -> str:
        return f"a conversation of {COMPACTED} messages was answered" if status == 200 else ""

    await send(target, [request], CLIENTS, PAUSE, answered, rest=1)


async def continued(target: Target) -> None:
    """Grow a conversation by `previous_response_id`, then continue it again and again by short requests."""
    messages, length, previous = _turns(MOST - 8), 0, None
    while len(messages) >= 2 and length < 12 * MOST:
        asked = {"model": "quick", "input": messages, "previous_response_id": previous}
        status, body = await target.post("/v1/responses", asked)
        if status in (0, 408, 429, 503):
            await asyncio.sleep(0.5)
        elif status != 200:
            messages = messages[: len(messages) // 4 * 2]
        else:
            previous, length = json.loads(body)["id"], length + len(messages) + 1
            target.counts[f"{WRONG}: a conversation grew to {2 * MOST} messages"] += length > 2 * MOST
    request = post("/v1/responses", {"model": "quick", "input": "y", "previous_response_id": previous})
    await send(target, [request], CLIENTS, PAUSE, rest=1)


async def permitted(target: Target) -> None:
    """Send the most expensive requests that the limits permit: the most messages, the most text, and both."""
    forms = [_turns(MOST - 1), _turns(MOST - 1, "word " * 92), _turns(1, "word " * (MEGABYTE // 5 - 100))]
    requests = [
        post("/v1/chat/completions", {"model": "quick", "messages": messages, "max_tokens": 1}) for messages in forms
    ]
    await send(target, requests, CLIENTS, PAUSE, rest=1)


async def costly_json(target: Target) -> None:
    """Send JSON with an unknown field whose values take much more memory or time to parse than their bytes suggest."""
    values = [b"1e300", b"2.2250738585072011e-308", b"[]", b"{}", b'{"a":1}', b'"a"', b"5", b'"\\ud83d\\ude00"']
    requests = []
    for value in values:
        many = b",".join([value] * ((MEGABYTE - 200) // (len(value) + 1)))
        requests += [post("/tokenize", b'{"prompt": 5, "a": [%b]%b' % (many, end)) for end in (b"}", b', "\\ud83d"}')]

    def taken(_place: int, status: int, _body: bytes) -> str:
        return "costly JSON was taken" if status == 200 else ""

    await send(target, requests, 2, 0.05, taken)


async def long_texts(target: Target) -> None:
    """Send a megabyte of text, of one kind of character after another."""
    kinds = ["a", "<|im_start|>", "\u00e9", "\U0001f600", " ", "\n", "<think>", "1"]
    requests = [
        post("/tokenize", {"prompt": kind * ((MEGABYTE - 100) // len(json.dumps(kind)[1:-1]))}) for kind in kinds
    ]
    await send(target, requests, 4, 0.05)


async def joined_texts(target: Target) -> None:
    """Send a megabyte in two thousand texts that the server joins to one, in each shape that has such texts."""
    text = ("word " * 90)[
        : (MEGABYTE - 200_000) // 2000 - 100
    ] + "\U0001f600"  # a wide character makes the joined text wide
    texts = [{"type": "text", "text": text}] * 2000
    inputs = [{"type": "input_text", "text": text}] * 2000
    asked, used = {"role": "user", "content": "x"}, {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": texts}
    thoughts = [{"type": "thinking", "thinking": text, "signature": ""}] * 2000
    messages = [
        [{"role": "user", "content": texts}],
        [asked, *({"role": role, "content": text} for role in ("assistant", "system") for _ in range(1000))],
        [asked, {"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}],
        [asked, {"role": "assistant", "content": thoughts}, asked],
    ]
    items = [
        [{"role": "user", "content": inputs}],
        [{"type": "function_call_output", "call_id": "a", "output": inputs}],
    ]
    chats = [
        [{"role": "user", "content": texts}],
        [asked, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "a", "content": texts}],
    ]
    basics = {"model": "quick", "max_tokens": 1}
    requests = [
        *(post("/v1/messages", basics | {"messages": given}) for given in messages),
        *(post("/v1/responses", {"model": "quick", "max_output_tokens": 1, "input": given}) for given in items),
        *(post("/v1/chat/completions", basics | {"messages": given}) for given in chats),
        *(post("/tokenize", {"messages": given}) for given in chats),
    ]
    await send(target, requests, 4, 0.05)


def _turns(count: int, text: str = "x") -> list[dict[str, str]]:
    return [{"role": "user" if turn % 2 == 0 else "assistant", "content": text} for turn in range(count)]
