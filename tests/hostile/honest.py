"""Honest clients: streams whose frames are compared with the engine's schedule, newcomers, and one that comes back.

A process of its own, whose argument is what `be_clients` takes, as a list in JSON. Each line of its input has it print what was seen since the line before, as JSON; it ends with its
input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from serving.clients import Client, Load
from target import Target

COME_BACK = 5.0
"""Seconds after which a stored conversation is continued."""


class Honest(Client):
    """Client that reads one stream and counts its failures by message."""

    def __init__(self, load: Load, tokens: int, failures: Counter[str]) -> None:
        super().__init__(load, False, tokens)
        self._failures = failures

    def _fail(self, message: str) -> None:
        self._failures[message] += 1
        self.leave()

    def connection_lost(self, error: Exception | None) -> None:
        if self._seen < self._tokens:
            self._failures["a stream was cut off"] += 1
        self.done.set_result(None)


class Clients:
    """All honest clients: streams, newcomers, and one that returns to a stored conversation.

    Args:
        port: The server's port.
        tokens: Tokens of a stream.

    """

    def __init__(self, port: int, tokens: int) -> None:
        self._port = port
        self._tokens = tokens
        self._load = Load(turnover=True)
        self._waits: list[float] = []
        self._failures: Counter[str] = Counter()
        self._answered = 0

    def begin(self, streams: int) -> list[Coroutine[Any, Any, None]]:
        """Start measuring; return the coroutines of all clients, `streams` of them streams."""
        self._load.measuring = True
        return [*(self._stream(number, streams) for number in range(streams)), self._newcomers(), self._returning()]

    def take(self) -> dict[str, Any]:
        """Return the measurements and failures since the last call, and reset them."""
        load, waits, failures, answered = self._load, self._waits, self._failures, self._answered
        seen = {"late": load.late, "tokens": load.tokens, "streams": load.ended, "waits": waits, "answered": answered}
        told = seen | {"failures": dict(failures)}
        load.late, load.tokens, load.ended, self._waits, self._answered = [], 0, 0, [], 0
        failures.clear()
        return told

    async def _stream(self, number: int, streams: int) -> None:
        """Read one stream after another, for ever; the clients' first streams begin spread over one second."""
        await asyncio.sleep(number / streams)
        address = f"127.0.2.{1 + number % 10}"
        while True:
            client = Honest(self._load, self._tokens, self._failures)
            try:
                async with asyncio.timeout(30):
                    await asyncio.get_running_loop().create_connection(
                        lambda client=client: client, "127.0.0.1", self._port, local_addr=(address, 0)
                    )
                await client.done
            except (OSError, TimeoutError) as error:
                self._failures[f"a stream cannot connect: {type(error).__name__}"] += 1
                await asyncio.sleep(0.2)

    async def _newcomers(self) -> None:
        """Send a small request from a new address twice a second, for ever."""
        for number in range(1 << 30):
            target = Target(self._port, f"127.0.3.{1 + number % 250}")
            begun = time.monotonic()
            try:
                status, _ = await target.post("/tokenize", {"prompt": "hi"}, 30)
            except OSError:
                status = 0
            self._waits.append(time.monotonic() - begun)
            self._judge("a newcomer", status)
            await asyncio.sleep(0.5)

    async def _returning(self) -> None:
        """Store a conversation and continue it a moment later, for ever."""
        target = Target(self._port, "127.0.4.1")
        while True:
            try:
                status, body = await target.post("/v1/responses", {"model": "quick", "input": "hi"}, 30)
                self._judge("a conversation", status)
                await asyncio.sleep(COME_BACK)
                if status == 200:
                    asked = {"model": "quick", "input": "and?", "previous_response_id": json.loads(body)["id"]}
                    self._judge("a conversation continued", (await target.post("/v1/responses", asked, 30))[0])
            except OSError:
                self._judge("a conversation", 0)

    def _judge(self, who: str, status: int) -> None:
        if status == 200:
            self._answered += 1
        else:
            self._failures[f"{who}: {status or 'cut off'}"] += 1


async def be_clients(port: int, streams: int, tokens: int) -> None:
    """Run all honest clients until standard input ends; print their measurements at each line of it."""
    clients = Clients(port, tokens)
    tasks = [asyncio.create_task(work) for work in clients.begin(streams)]
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(json.dumps(clients.take()), flush=True)
        for task in tasks:
            if task.done():
                await task
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(be_clients(*json.loads(sys.argv[1])))
