"""Valid requests, and refused ones, whose cost could grow faster than their length: `request_shapes` at their largest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from request_shapes import HEADS, JOINS, MANY, Request
from target import MEGABYTE, Target, post, send

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
    await _cycle(target, [partial(MANY["derender"], size) for size in (900, 4000, 10_000)], 200)


async def live(target: Target) -> None:
    """Ask for calls, token by token, of functions with such schemas."""
    asked = {"model": "calling", "max_tokens": 1000, "stream": True}

    def request(name: str) -> Request:
        path, body = MANY[name](6000)
        return path, body | asked

    names = ("chat: alternatives of a tool", "chat: a chain of references")
    await _cycle(target, [partial(request, name) for name in names], 200)


async def _shapes(target: Target, shapes: dict[str, Callable[[int], Request]], expected: int) -> None:
    await _cycle(target, [partial(shape, LARGEST) for shape in shapes.values()], expected)


async def _cycle(target: Target, requests: list[Callable[[], Request]], expected: int) -> None:
    """Send the requests in turn, two at a time; each must be answered by the expected status, or not at all."""

    def made(request: Callable[[], Request]) -> bytes:
        sent = post(*request())
        assert len(sent) < MEGABYTE
        return sent

    def wrong(place: int, status: int, body: bytes) -> str:
        return "" if status in (expected, *BUSY) else f"request {place} got {status}: {body[:100]!r}"

    await send(target, map(made, requests), 2, 0.05, wrong)
