"""Requests that are short and dear: conversations of very many messages, by every way in which one may come."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode

from target import MEGABYTE, WRONG, Target, hold, post

CLIENTS = 20
MOST = 2048
"""Items of a request that default limits permit."""
COMPACTED = 22_000
"""Messages whose item is a little shorter than a message may be."""


async def compaction(target: Target) -> None:
    """Hide thousands of messages in one forged compaction item."""
    packed = json.dumps(_turns(COMPACTED), separators=(",", ":")).encode()
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": b64encode(packed).decode()}
    request = post("/v1/responses", {"model": "quick", "input": [item, {"role": "user", "content": "y"}]})
    await _repeat(target, request, f"a conversation of {COMPACTED} messages was answered")


async def continued(target: Target) -> None:
    """Grow a conversation by `previous_response_id`, then ask with a hundred bytes again and again."""
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
    await _repeat(target, post("/v1/responses", {"model": "quick", "input": "y", "previous_response_id": previous}))


async def permitted(target: Target) -> None:
    """Send the dearest requests that the limits permit."""
    messages = _turns(MOST - 1)
    await _repeat(target, post("/v1/chat/completions", {"model": "quick", "messages": messages, "max_tokens": 1}))


async def long_texts(target: Target) -> None:
    """Send a megabyte of text, of one kind of character after another."""
    kinds = ["a", "<|im_start|>", "\u00e9", "\U0001f600", " ", "\n", "<think>", "1"]
    requests = [
        post("/tokenize", {"prompt": kind * ((MEGABYTE - 100) // len(json.dumps(kind)[1:-1]))}) for kind in kinds
    ]
    turn = iter(range(1 << 62))

    async def one() -> None:
        await target.ask(requests[next(turn) % len(requests)])

    await hold(4, one, 0.05)


def _turns(count: int) -> list[dict[str, str]]:
    return [{"role": "user" if turn % 2 == 0 else "assistant", "content": "x"} for turn in range(count)]


async def _repeat(target: Target, request: bytes, wrong: str = "") -> None:
    async def one() -> None:
        status, _ = await target.ask(request)
        if status == 200 and wrong:
            target.counts[f"{WRONG}: {wrong}"] += 1
        if status in (429, 503):
            await asyncio.sleep(1)

    await hold(CLIENTS, one)
