"""Valid requests, and refused ones, whose cost could grow faster than their length: `request_shapes` at their largest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from request_shapes import HEADS, JOINS, MANY, Request
from target import MEGABYTE, WRONG, Target, hold, post

BUSY = (0, 408, 429, 503)
"""Statuses of a server that has had enough of an attacker."""
LARGEST = 1900
"""Size of the shapes that are a little shorter than a message may be."""


async def joins(target: Target) -> None:
    """Send a megabyte of neighbouring texts, by every way in which they may come."""
    await _shapes(target, JOINS, 200)


async def heads(target: Target) -> None:
    """Send data URLs without an end of their head."""
    await _shapes(target, HEADS, 400)


async def many(target: Target) -> None:
    """Send many items of other kinds, with schemas of many alternatives and long chains of references."""
    await _shapes(target, MANY, 200)


async def derendered(target: Target) -> None:
    """Have answers parsed with calls whose parameters have schemas of many alternatives."""
    made: list[Any] = [MANY["derender"](size) for size in (900, 4000, 10_000)]
    await _cycle(target, [post(path, body) for path, body in made], 200)


async def live(target: Target) -> None:
    """Ask for calls, token by token, of functions with such schemas."""
    requests = []
    for name in ("chat: alternatives of a tool", "chat: a chain of references"):
        path, body = MANY[name](6000)
        requests.append(post(path, body | {"model": "calling", "max_tokens": 1000, "stream": True}))
    await _cycle(target, requests, 200)


async def _shapes(target: Target, shapes: dict[str, Callable[[int], Request]], expected: int) -> None:
    made: list[Any] = [shape(LARGEST) for shape in shapes.values()]
    await _cycle(target, [post(path, body) for path, body in made], expected)


async def _cycle(target: Target, requests: list[bytes], expected: int) -> None:
    """Send the requests in turn, two at a time; each must be answered by the expected status, or not at all."""
    assert all(len(request) < MEGABYTE for request in requests)
    turn = iter(range(1 << 62))

    async def one() -> None:
        place = next(turn) % len(requests)
        status, body = await target.ask(requests[place])
        if status not in (expected, *BUSY):
            target.counts[f"{WRONG}: request {place} got {status}: {body[:100]!r}"] += 1

    await hold(2, one, 0.05)
