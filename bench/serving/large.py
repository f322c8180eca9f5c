"""The delay of a stream's tokens while others send a megabyte each.

    scripts/bench large [--seconds 3] [--write]

The server of `bench/serving/serve.py` and its step engine; one stream of 50 tokens a second is measured, first alone, and then while
20 clients send what is nearly the longest message at once, by websocket and as the body of a POST. Prints a table; --write
puts it into bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time

from serving.clients import Client, Load, handshake, masked, post
from serving.serve import WARM_UP, number_from, running
from serving.servers import RATE
from shared.report import machine, publish, table

CLIENTS = 20
SIZE = 1_045_000
"""Characters of a message: nearly the most that a server takes."""


def requests() -> dict[str, str]:
    """Messages of a megabyte, by what is in them."""

    def request(parts: list[str]) -> str:
        messages = [{"role": "user", "content": part} for part in parts]
        return json.dumps({"type": "response.create", "input": messages, "max_output_tokens": 1})

    words = "the quick brown fox jumps over it "
    return {
        "one text": request([words * (SIZE // len(words))]),
        "2,000 messages": request([(words * 20)[:480]] * 2000),
        "25,000 messages of one letter, which are refused": request(["a"] * 25_000),
    }


async def answered(port: int, request: str, over_http: bool, begin: asyncio.Event) -> None:
    """Send a request when all are ready, and read up to its last event."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if not over_http:
        writer.write(handshake())
        await reader.readuntil(b"\r\n\r\n")
    await begin.wait()
    writer.write(post(request) if over_http else masked(request))
    answer = b""
    while not any(end in answer for end in (b'"error":{', b'"status":"incomplete"', b'"status":"completed"')):
        if not (data := await reader.read(1 << 16)):
            raise SystemExit(f"no answer: {answer[-300:]!r}")
        answer += data
    writer.close()


async def measure(name: str, request: str, over_http: bool, seconds: float) -> list[str]:
    """One row of the table."""
    tokens = round((30 + seconds) * RATE)
    with running("tokenweir", CLIENTS, tokens) as process:
        port = number_from(process)
        load, loop, begin = Load(), asyncio.get_running_loop(), asyncio.Event()
        transport, _ = await loop.create_connection(lambda: Client(load, False, tokens), "127.0.0.1", port)
        others = [asyncio.create_task(answered(port, request, over_http, begin)) for _ in range(CLIENTS)]
        await asyncio.sleep(WARM_UP)
        load.measuring = True
        await asyncio.sleep(seconds)
        alone, load.late = load.late, []
        start = time.monotonic()
        begin.set()
        await asyncio.gather(*others)
        took = time.monotonic() - start
        await asyncio.sleep(0.2)
        load.measuring = False
        transport.pause_reading()
        way = "POST" if over_http else "websocket"
        return [name, way, f"{1e3 * took / CLIENTS:.0f}", f"{1e3 * max(alone):.0f}", f"{1e3 * max(load.late):.0f}"]


HEADER = ["20 requests of 1 MB at once", "by", "ms each", "latest token without them, ms", "with them, ms"]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--write", action="store_true", help="put the table into bench/RESULTS.md")
    options = parser.parse_args()
    rows = []
    for name, request in requests().items():
        for over_http in (False, True):
            rows.append(await measure(name, request, over_http, options.seconds))
            print("  ".join(rows[-1]), flush=True)
    publish("large", f"{machine()}, load average {os.getloadavg()[0]:.1f}.\n\n{table(HEADER, rows)}", options.write)


if __name__ == "__main__":
    asyncio.run(main())
