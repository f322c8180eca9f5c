"""The server under attack as its clients see it: an address to come from, requests as bytes, and what is answered."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import cycle
from typing import Any

WRONG = "WRONG"
"""Prefix of the names of counts that must be 0."""
MEGABYTE = 1 << 20
SMALL_BUFFER = 4096


class Target:
    """A server under attack, as one client address sees it.

    Args:
        port: The server's port.
        address: The loopback address that connections come from; the server tells clients apart by it.
        patience: Most seconds that the server waits for a request, or for a reader.

    Attributes:
        counts: Answers by status, connections that were cut off, and what else an attack counts.

    """

    def __init__(self, port: int, address: str, patience: float = 30.0) -> None:
        self.port = port
        self.address = address
        self._patience = patience
        self.counts: Counter[str] = Counter()

    @asynccontextmanager
    async def connection(
        self, *, small: bool = False
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Open a connection, with the smallest receive buffer if `small`; abort it at the end of the context."""
        with socket.socket() as raw:
            if small:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            raw.bind((self.address, 0))
            raw.setblocking(False)
            await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", self.port))
            reader, writer = await asyncio.open_connection(sock=raw, limit=SMALL_BUFFER if small else 1 << 16)
            try:
                yield reader, writer
            finally:
                writer.transport.abort()
                raw.detach()  # the transport closes it

    async def until_ended(self, ended: Awaitable[object], what: str) -> None:
        """Wait until the server ends a connection.

        Count a failure named `what` if that takes more than a few times its patience.
        """
        try:
            async with asyncio.timeout(3 * self._patience):
                await ended
        except TimeoutError:
            self.counts[f"{WRONG}: {what} was held"] += 1
        except ConnectionError:
            self.counts["reset"] += 1
        else:
            self.counts["ended by the server"] += 1

    async def ask(self, request: bytes, seconds: float = 60.0, *, whole: bool = True) -> tuple[int, bytes]:
        """Send a request on a connection of its own; return the status and the body, up to its end if `whole`.

        The status is 0 if the connection was cut off or no answer came within `seconds`. Counts the result.
        """
        answer = b""
        try:
            async with asyncio.timeout(seconds), self.connection() as (reader, writer):
                writer.write(request)
                while chunk := await reader.read(1 << 16):
                    answer += chunk
                    if not whole:
                        break
        except ConnectionError:
            pass
        except TimeoutError:
            self.counts["no answer in time"] += 1
            return 0, answer
        status = int(answer[9:12]) if answer[:7] == b"HTTP/1." else 0
        self.counts[str(status) if status else "cut off"] += 1
        return status, answer.partition(b"\r\n\r\n")[2]

    async def post(self, path: str, body: Any, seconds: float = 60.0) -> tuple[int, bytes]:
        """Post a JSON value, or the bytes of one; return the status and the body, as `ask` does."""
        return await self.ask(post(path, body), seconds)


def post(path: str, body: Any) -> bytes:
    """Return the bytes of a POST request with a JSON body that asks to close the connection."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(path, len(content)) + content


def head(path: str, length: int) -> bytes:
    """Return the head of a POST request whose body has `length` bytes."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


async def send(
    target: Target,
    requests: Iterable[bytes],
    at_once: int,
    pause: float,
    wrong: Callable[[int, int, bytes], str] = lambda place, status, body: "",
    *,
    whole: bool = True,
    rest: float = 0.0,
) -> None:
    """Send requests in turn until cancelled.

    Args:
        target: The server.
        requests: The requests; a generator makes each when it is first sent.
        at_once: How many are at work.
        pause: As for `hold`.
        wrong: Returns the failure that an answer is, from the request's place, the status and the body; "" for none.
        whole: As for `Target.ask`.
        rest: Seconds after an answer of a server that is busy.

    """
    turn = cycle(enumerate(requests))

    async def one() -> None:
        place, request = next(turn)
        target.counts["sent"] += 1  # on a busy machine the attack may end before an answer comes
        status, body = await target.ask(request, whole=whole)
        if failure := wrong(place, status, body):
            target.counts[f"{WRONG}: {failure}"] += 1
        if status in (429, 503):
            await asyncio.sleep(rest)

    await hold(at_once, one, pause)


async def hold(count: int, one: Any, pause: float = 0.01) -> None:
    """Keep `count` tasks of `one()` running until cancelled.

    Each that ends is replaced after a pause, which bounds the rate.
    """
    running: set[asyncio.Task[None]] = set()
    begun = 0
    try:
        while True:
            while len(running) < count:
                task = asyncio.create_task(_quietly(one))
                running.add(task)
                task.add_done_callback(running.discard)
                begun += 1
                if begun > count:
                    break
            await asyncio.sleep(pause)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _quietly(one: Any) -> None:
    """Run an attempt; ignore the error of a connection that the server ends."""
    try:
        await one()
    except (OSError, EOFError, TimeoutError):
        await asyncio.sleep(0.1)
