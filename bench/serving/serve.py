"""One worker under load: many streams of 50 tokens a second, beside bare websockets and a Starlette server of SSE.

    scripts/bench serve [--streams 10 100 400 1000] [--short 100 200] [--seconds 6] [--servers NAME ...] [--share 0.5]
        [--write]

Every server runs in a process of its own, and the clients in this one; on two cores or more each gets its own. All
servers are fed by one step engine, whose one timer wakes every stream 50 times a second, each in a phase of its own, and
all send the same events of the Responses protocol. The engine alone is the first row. A token is late by the time
between its place in the schedule and the arrival of its frame; of a frame it is the oldest one that counts.

A second table has streams that end after a hundred tokens, each followed by another at once: what beginning and ending, and
the garbage collector, do to the others. A third has what one connection costs: the Python functions that are called from
the moment in which the engine gives an id until the transport writes its frame; a request of one token, from the first byte
sent to the last received; and the memory of a connection that is open and asks for nothing. Prints them; --write puts them
into bench/serving/RESULTS.md. With --share the servers get that part of a core, as on a slower machine, and there is the
first table alone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from serving import servers
from serving.clients import Client, Load, idle_connection, one_token_requests
from serving.core_share import core_share
from serving.servers import RATE, SERVERS
from shared.processes import child, cpu_seconds, memory, number_from
from shared.report import arguments, machine, publish, table, told

WARM_UP = 1.5
"""Seconds after the last stream has begun and before the measured time."""


@contextmanager
def running(name: str, streams: int, tokens: int, template: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """A server in a process of its own, on a core of its own if there are two."""
    command = [sys.executable, servers.__file__, name, "--streams", str(streams), "--tokens", str(tokens)]
    command += [] if template is None else ["--template", template]
    with child(command) as process:
        if (os.cpu_count() or 1) > 1:
            os.sched_setaffinity(process.pid, {0})
            os.sched_setaffinity(0, {1})
        yield process


def iterations(process: subprocess.Popen[str]) -> int:
    """Read the number of turns of a server's event loop."""
    process.send_signal(signal.SIGUSR1)
    return number_from(process)


async def measure(name: str, streams: int, seconds: float, share: float) -> list[str]:
    """One row of the table of streams."""
    opening = streams / 200
    tokens = round((5 * opening + WARM_UP + seconds + 2) * RATE)
    with ExitStack() as stack:
        process = stack.enter_context(running(name, streams, tokens))
        if share < 1:
            stack.enter_context(core_share(process.pid, share))
        if name == "engine":
            await asyncio.sleep(1 + WARM_UP)
            turns, cpu, start = iterations(process), cpu_seconds(process.pid), time.monotonic()
            await asyncio.sleep(seconds - 1)
            cpu, seconds = cpu_seconds(process.pid) - cpu, time.monotonic() - start
            turns = iterations(process) - turns
            given = seconds * RATE * streams
            row = [
                f"{100 * cpu / seconds:.0f} %",
                f"{1e6 * cpu / given:.0f}",
                "–",
                "–",
                "–",
                "–",
                f"{turns / given:.2f}",
            ]
            return [str(streams), SERVERS[name].name, *row, f"{memory(process.pid):.0f}"]
        port = number_from(process)
        load = Load()
        loop = asyncio.get_running_loop()
        clients = []
        opened = loop.time()
        for number in range(streams):
            _, client = await loop.create_connection(lambda: Client(load, SERVERS[name].sse, tokens), "127.0.0.1", port)
            clients.append(client)
            await asyncio.sleep(opened + number * opening / streams - loop.time())
        while load.begun < streams:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(WARM_UP)
        turns = iterations(process)
        load.measuring = load.ended == 0
        cpu, start = cpu_seconds(process.pid), time.monotonic()
        while load.measuring and time.monotonic() - start < seconds - 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        cpu, took = cpu_seconds(process.pid) - cpu, time.monotonic() - start
        load.measuring = False
        turns = iterations(process) - turns
        resident = memory(process.pid)
        await asyncio.wait([client.done for client in clients], timeout=60)
        if load.ended < streams:
            print(f"{SERVERS[name].name}: {streams - load.ended} of {streams} streams did not arrive whole")
        late = sorted(load.late)
        row = [
            f"{100 * cpu / took:.0f} %",
            f"{1e6 * cpu / max(1, load.tokens):.0f}",
            f"{1e6 * cpu / max(1, len(late)):.0f}",
            f"{len(late) / max(1, load.tokens):.2f}",
            f"{1e3 * late[len(late) // 2]:.1f}" if late else "–",
            f"{1e3 * late[len(late) * 99 // 100]:.1f}" if late else "–",
            f"{turns / max(1, load.tokens):.2f}",
        ]
        return [str(streams), SERVERS[name].name, *row, f"{resident:.0f}"]


SHORT = 100
"""Tokens of a stream that is followed by another."""


async def measure_turnover(name: str, streams: int, seconds: float) -> list[str]:
    """One row of the table of streams that end."""
    with running(name, 2 * streams, SHORT) as process:
        port = number_from(process)
        load = Load(turnover=True)
        loop = asyncio.get_running_loop()

        async def one_after_another(number: int) -> None:
            await asyncio.sleep(number * SHORT / RATE / streams)
            while True:
                _, client = await loop.create_connection(
                    lambda: Client(load, SERVERS[name].sse, SHORT), "127.0.0.1", port
                )
                try:
                    await asyncio.shield(client.done)
                except asyncio.CancelledError:
                    client.leave()
                    raise

        tasks = [asyncio.create_task(one_after_another(number)) for number in range(streams)]
        await asyncio.sleep(2 * SHORT / RATE + WARM_UP)
        load.measuring, ended = True, load.ended
        cpu, start = cpu_seconds(process.pid), time.monotonic()
        await asyncio.sleep(seconds)
        cpu, took = cpu_seconds(process.pid) - cpu, time.monotonic() - start
        load.measuring, ended = False, load.ended - ended
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        late = sorted(load.late)
        return [
            str(streams),
            SERVERS[name].name,
            f"{ended / took:.0f}",
            f"{100 * cpu / took:.0f} %",
            f"{1e6 * cpu / max(1, load.tokens):.0f}",
            *(f"{1e3 * late[int(len(late) * part)]:.1f}" if late else "–" for part in (0.5, 0.99, 0.999)),
        ]


IDLE = 400
"""Number of connections whose memory is measured."""


async def measure_one(name: str, seconds: float) -> list[str]:
    """One row of the table of connections."""
    with running(name, IDLE + 100, round((2 * seconds + 10) * RATE)) as process:
        port = number_from(process)
        connections = []
        for number in range(IDLE + 100):
            if number == 100:  # those before it have made what a server makes once
                await asyncio.sleep(0.2)
                before = memory(process.pid)
            connections.append(await idle_connection(port, SERVERS[name].sse))
        await asyncio.sleep(0.2)
        each = 1e3 * (memory(process.pid) - before) / IDLE
        for _, writer in connections:
            writer.close()
        requests = await one_token_requests(port, SERVERS[name].sse, seconds)
        load = Load()
        loop = asyncio.get_running_loop()
        tokens = round((seconds + 3) * RATE)
        _, client = await loop.create_connection(lambda: Client(load, SERVERS[name].sse, tokens), "127.0.0.1", port)
        await asyncio.sleep(1)
        process.send_signal(signal.SIGUSR2)
        await asyncio.sleep(seconds)
        process.send_signal(signal.SIGUSR2)
        calls = number_from(process)
        client.leave()
        return [SERVERS[name].name, str(calls), f"{1e3 * statistics.median(requests):.2f}", f"{each:.0f}"]


HEADER = [
    "streams",
    "server",
    "CPU",
    "µs a token",
    "µs a frame",
    "frames a token",
    "late p50, ms",
    "late p99, ms",
    "loop iterations a token",
    "RSS, MB",
]
TURNOVER_HEADER = [
    "streams",
    "server",
    "ended a second",
    "CPU",
    "µs a token",
    "late p50, ms",
    "late p99, ms",
    "late p99.9, ms",
]
ONE_HEADER = ["server", "calls from an id to the socket", "request of one token, ms", "idle connection, KB"]


async def main() -> None:
    options = arguments(
        __doc__,
        streams=[10, 100, 400, 1000],
        short={"type": int, "nargs": "*", "default": [100, 200], "help": "streams that end and begin again"},
        seconds=6.0,
        servers={"nargs": "+", "choices": SERVERS, "default": list(SERVERS)},
        share=(1.0, "the part of a core that a server gets"),
    )
    rows = [
        told(await measure(name, streams, options.seconds, options.share))
        for streams in options.streams
        for name in options.servers
    ]
    load = f"load average {os.getloadavg()[0]:.1f}"
    text = f"{machine()}, {load}.\n\n{table(HEADER, rows)}\n\n"
    if options.share < 1:
        publish("serve-share", f"{options.share:.0%} of a core. {text.rstrip()}", options.write)
        return
    asked = [name for name in options.servers if name != "engine"]
    turns = [(name, streams) for streams in options.short for name in asked]
    short = [told(await measure_turnover(*turn, options.seconds)) for turn in turns]
    ones = [told(await measure_one(name, options.seconds / 2)) for name in asked]
    text += f"Streams of {SHORT} tokens, each followed by another:\n\n{table(TURNOVER_HEADER, short)}\n\n"
    text += f"One connection:\n\n{table(ONE_HEADER, ones)}"
    publish("serve", text, options.write)


if __name__ == "__main__":
    asyncio.run(main())
