"""The delay of a stream beside 20 clients that ask for the longest prompts a server permits.

    scripts/bench large [--seconds 3] [--template FILE ...] [--write]

The server of `bench/serving/serve.py` and its step engine, on one core. One stream of 50 tokens a second is measured, first
alone, and then while 20 clients, each of an address of its own, ask again and again. A further client asks for one token
twice a second, and the last column has its longest wait. "CPU between frames" is the CPU time that the server takes between
two frames of the measured stream: its delay on a machine without other load. `--template` serves another chat template: some
take twenty times the time of others. Prints a table; --write puts it into bench/serving/RESULTS.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving.clients import Client, Load, handshake, masked, post
from serving.serve import WARM_UP, running
from serving.servers import RATE
from shared.processes import cpu_seconds, number_from
from shared.report import arguments, machine, publish, table, told

CLIENTS = 20
SIZE = 1_040_000
"""Characters of a request: nearly the most that a server takes."""
MESSAGES = 2_047
WORDS = "the quick brown fox jumps over it "
CONTROL = "<|im_end|> "
"""Text that a template's guard looks at closely."""
ENDS = (b'"error":{', b'"status":"incomplete"', b'"status":"completed"')


class Watched(Client):
    """A stream that notes the CPU time that the server takes between two frames."""

    def __init__(self, load: Load, tokens: int, pid: int) -> None:
        super().__init__(load, False, tokens)
        self._pid = pid
        self._last = cpu_seconds(pid)
        self.between: list[float] = []

    def data_received(self, data: bytes) -> None:
        now = cpu_seconds(self._pid)
        self.between.append(now - self._last)
        self._last = now
        super().data_received(data)


@dataclass
class Attack:
    """A kind of request.

    Attributes:
        name: Its name in the table.
        body: The request.
        over_http: By POST in place of a websocket.
        first: A request before it, which it continues.

    """

    name: str
    body: dict[str, Any]
    over_http: bool = False
    first: dict[str, Any] | None = None


def filled(text: str, size: int) -> str:
    """So many characters of a text, again and again."""
    return (text * (size // len(text) + 1))[:size]


def attacks() -> Iterator[Attack]:
    """The requests, each of nearly the largest size that is permitted."""

    def said(*parts: str) -> list[dict[str, Any]]:
        return [{"role": ("user", "assistant")[place % 2], "content": part} for place, part in enumerate(parts)]

    each = SIZE // MESSAGES - 40
    for over_http in (False, True):
        yield Attack("one text", {"input": said(filled(WORDS, SIZE - 1000))}, over_http)
        yield Attack("2,047 messages", {"input": said(*[filled(WORDS, each)] * MESSAGES)}, over_http)
    yield Attack("one text of control tokens", {"input": said(filled(CONTROL, SIZE - 1000))})
    yield Attack("2,047 messages of control tokens", {"input": said(*[filled(CONTROL, each)] * MESSAGES)})
    yield Attack("25,000 messages of one letter, refused", {"input": said(*["a"] * 25_000)})
    first = {"input": said(*[filled(CONTROL, 400)] * 2040), "max_output_tokens": 1}
    yield Attack("a conversation continued by 120 bytes", {"input": "go on", "store": False}, True, first)
    properties = {f"p{place}": {"type": "string"} for place in range(10)}
    parameters = {"type": "object", "properties": properties}
    tool = {"type": "function", "name": "f", "description": "d", "parameters": parameters}
    tools = [tool] * min(MESSAGES, SIZE // len(json.dumps(tool)))
    yield Attack(f"{len(tools):,} tools", {"input": "hi", "tools": tools})
    wide = {f"p{place}": {"type": "string"} for place in range(SIZE // 34)}
    yield Attack(
        "a tool of 30,000 parameters",
        {"input": "hi", "tools": [tool | {"parameters": parameters | {"properties": wide}}]},
    )
    calls: list[dict[str, Any]] = []
    for place in range(MESSAGES // 3):
        arguments = json.dumps({f"k{number}": number for number in range(70)})
        calls.append({"role": "user", "content": "x"})
        calls.append({"type": "function_call", "call_id": f"c{place}", "name": "f", "arguments": arguments})
        calls.append({"type": "function_call_output", "call_id": f"c{place}", "output": "y" * 200})
    yield Attack("682 calls of 70 arguments", {"input": [*calls, {"role": "user", "content": "x"}], "tools": [tool]})


class Asker:
    """A client with an address of its own, which sends one request after the other."""

    def __init__(self, port: int, number: int, over_http: bool) -> None:
        self._port = port
        self._address = f"127.0.0.{number}"
        self._over_http = over_http
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: str) -> bytes:
        """The answer, up to its last event."""
        if self._connection is None:
            address = (self._address, 0)
            self._connection = await asyncio.open_connection("127.0.0.1", self._port, local_addr=address, limit=1 << 24)
            if not self._over_http:
                self._connection[1].write(handshake())
                await self._connection[0].readuntil(b"\r\n\r\n")
        reader, writer = self._connection
        writer.write(post(request) if self._over_http else masked(request))
        answer = b""
        while not any(end in answer for end in ENDS):
            if not (data := await reader.read(1 << 20)):
                raise SystemExit(f"no answer: {answer[-300:]!r}")
            answer += data
        if self._over_http:
            self.close()
        return answer

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None


def created(body: dict[str, Any]) -> str:
    """A request as JSON, for one token."""
    return json.dumps({"type": "response.create", "max_output_tokens": 1, **body})


async def prepared(attack: Attack, asker: Asker) -> str:
    """The request of a client, behind the one that it continues."""
    if attack.first is None:
        return created(attack.body)
    answer = await asker.ask(created(attack.first))
    last = json.loads(answer[answer.index(b"\r\n\r\n") + 4 :])["id"]
    return created({**attack.body, "previous_response_id": last})


async def until(over: Callable[[], bool], asker: Asker, request: str, pause: float, took: list[float]) -> None:
    """Ask again and again, and note how long each answer took."""
    while not over():
        start = time.monotonic()
        await asker.ask(request)
        took.append(time.monotonic() - start)
        await asyncio.sleep(pause)
    asker.close()


async def measure(attack: Attack, seconds: float, template: str | None) -> list[str]:
    """One row of the table."""
    tokens = round((60 + 4 * seconds) * RATE)
    with running("tokenweir", CLIENTS + 2, tokens, template) as process:
        port = number_from(process)
        load, loop = Load(), asyncio.get_running_loop()
        _, stream = await loop.create_connection(lambda: Watched(load, tokens, process.pid), "127.0.0.1", port)
        askers = [Asker(port, 10 + number, attack.over_http) for number in range(CLIENTS)]
        requests = [await prepared(attack, asker) for asker in askers]
        await asyncio.sleep(WARM_UP)
        load.measuring = True
        await asyncio.sleep(seconds)
        alone, load.late = load.late, []
        stream.between.clear()
        start = time.monotonic()

        def over() -> bool:
            return time.monotonic() - start > seconds

        took: list[float] = []
        waited: list[float] = []
        newcomer = until(over, Asker(port, 2, True), created({"input": "hi"}), 0.5, waited)
        attackers = (until(over, asker, request, 0, took) for asker, request in zip(askers, requests, strict=True))
        await asyncio.gather(newcomer, *attackers)
        lasted = time.monotonic() - start
        await asyncio.sleep(0.2)
        load.measuring = False
        stream.leave()
        late = sorted(load.late)
        return [
            attack.name,
            "POST" if attack.over_http else "websocket",
            f"{1e3 * lasted / len(took):.0f}",
            f"{1e3 * max(alone):.0f}",
            f"{1e3 * late[len(late) * 99 // 100]:.0f}",
            f"{1e3 * late[-1]:.0f}",
            f"{1e3 * max(stream.between):.0f}",
            f"{1e3 * max(waited):.0f}",
        ]


HEADER = [
    "20 clients ask for",
    "by",
    "ms each",
    "latest token alone, ms",
    "p99 with them",
    "latest",
    "CPU between frames",
    "one token",
]


async def main() -> None:
    options = arguments(
        __doc__,
        seconds=3.0,
        only=("", "only requests whose name has TEXT"),
        template={"action": "append", "default": [], "metavar": "FILE", "help": "serve this one, too"},
    )
    parts = []
    for template in (None, *options.template):
        chosen = [attack for attack in attacks() if options.only in attack.name]
        rows = [told(await measure(attack, options.seconds, template)) for attack in chosen]
        title = "The embedded vocabulary's template" if template is None else f"`{Path(template).stem}`"
        parts.append(f"{title}:\n\n{table(HEADER, rows)}")
    load_average = f"{machine()}, load average {os.getloadavg()[0]:.1f}."
    publish("large", "\n\n".join([load_average, *parts]), options.write)


if __name__ == "__main__":
    asyncio.run(main())
