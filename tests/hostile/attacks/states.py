"""Decoder states that a client forges; their check is public, so each is as good as the server's own to a first look."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgspec
from target import Target, post, send

PATH = "/v1/chat/completions/derender"
HELD = 740_000
HEAD, CHECK = 20, 16
"""Bytes of a decoder's state before its content, and of the check behind it."""


async def forged(target: Target) -> None:
    """Send states with a megabyte of held text, very many numbers, and deep nesting."""
    asked = {"prompt": "<", "add_special_tokens": False}
    ids = json.loads(await _answered(target, "/tokenize", asked))["tokens"]
    honest = json.loads(await _answered(target, PATH, _chunk(ids, None)))["stream_state"]["state"]
    await _answered(target, PATH, _chunk([], _forge(honest, lambda state: None)))  # else the form of states has changed
    await send(target, [post(PATH, _chunk(ids, _forge(honest, change))) for change in CHANGES], 2, 0.1)


async def _answered(target: Target, path: str, body: Any) -> bytes:
    """Post a request until the server has time for it; return the body of the answer. Raise RuntimeError if it is refused."""
    while True:
        status, answer = await target.post(path, body)
        if status == 200:
            return answer
        if status not in (0, 408, 429, 503):
            raise RuntimeError(f"{path} answers {status}: {answer[:200]!r}")
        await asyncio.sleep(0.5)


def _hold(text: str) -> Callable[[Any], None]:
    def change(state: Any) -> None:
        state[2][1] = text

    return change


def _core(state: Any) -> None:
    state[1] = b"\xff" * 700_000


def _router(state: Any) -> None:
    state[3][-1] = [["answer", "x"]] * 100_000


def _nested(state: Any) -> None:
    for _ in range(500):
        state[2][2] = [state[2][2]]


CHANGES = [_hold("<" * HELD), _hold("<think" * (HELD // 6)), _hold("\U0001f600" * (HELD // 4)), _core, _router, _nested]


def _chunk(ids: list[int], state: str | None) -> dict[str, Any]:
    choice = {"index": 0, "token_ids": ids, "finish_reason": None}
    return {
        "stream": True,
        "generate_chunk": {"request_id": "r", "choices": [choice]},
        "chat_request": {"messages": [{"role": "user", "content": "hi"}]},
        "prompt_token_ids": [5],
        "stream_state": None if state is None else {"state": state},
    }


def _forge(honest: str, change: Callable[[Any], None]) -> str:
    """Return an honest state changed by `change`, with a valid check."""
    carried = msgspec.msgpack.decode(b64decode(honest))
    decoder = carried[0]
    state = msgspec.msgpack.decode(decoder[HEAD:-CHECK])
    change(state)
    data = decoder[:HEAD] + msgspec.msgpack.encode(state)
    carried[0] = data + blake2b(data, digest_size=CHECK, person=b"tokenweir state").digest()
    return b64encode(msgspec.msgpack.encode(carried)).decode()
