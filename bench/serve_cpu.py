"""What a token costs one worker, measured in CPU time by a clock that is set by hand: for machines that do other work too.

    python bench/serve_cpu.py [--streams 400 1000] [--rounds 3] [--write]

The servers of `bench/serve.py`, which says what they do. On a busy machine they would fall behind, and send fewer and longer
frames than on a free one, so that neither costs nor delays could be compared. Here the time of tokenweir's frames is that
of the schedule: 20 streams' worth of tokens in a millisecond of it, as fast as the server can. The clients read all that
comes and look at none of it. Servers take turns; of each the least of all rounds is shown. Prints a table; --write puts it
into bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from typing import Any

from serve import RATE, SERVERS, TOKEN, _Stream, handshake, masked
from shared.report import machine, publish, table

STEPS = 1000 // RATE
"""Milliseconds of the schedule between two tokens of a stream; each has the streams of one phase."""
TOKENS = 8
"""Tokens of a stream in one round."""


class Schedule:
    """An engine that is stepped by hand, and the clock of its schedule."""

    def __init__(self, ids: list[int]) -> None:
        self.now = time.monotonic()
        self.streams = 0
        self._ids = ids
        self._phases: list[list[_Stream]] = [[] for _ in range(STEPS)]
        self._calls: dict[float, list[Callable[[], object]]] = defaultdict(list)

    def call_at(self, when: float, call: Callable[[], object]) -> None:
        """Call a function at a time of the schedule."""
        self._calls[when].append(call)

    async def generate(self, prompt_ids: Any, sampling: Any) -> AsyncGenerator[list[int], None]:
        """Give a token for each step."""
        stream = _Stream()
        self._phases[self.streams % STEPS].append(stream)
        self.streams += 1
        while True:
            yield self._ids * (stream.take() or await stream.wait())

    async def go_on(self) -> None:
        """Let 20 ms pass: a token for each stream."""
        for phase in self._phases:
            self.now += 0.001
            for when in [when for when in self._calls if when <= self.now]:
                for call in self._calls.pop(when):
                    call()
            for stream in phase:
                stream.step()
            await asyncio.sleep(0)  # the streams' tasks are woken
            await asyncio.sleep(0)  # and run


async def be_server(name: str, streams: int, rounds: int) -> None:
    """Serve that many streams, and print the CPU seconds of a token."""
    from tokenweir import Tokenizer
    from tokenweir.stream.server.answers import batch
    from tokenweir.stream.server.answers.pacer import Pacer

    schedule = Schedule(Tokenizer.default().encode(TOKEN))
    batch.monotonic = lambda: schedule.now  # type: ignore[attr-defined]
    Pacer.call_at = lambda self, when, call: schedule.call_at(when, call)  # type: ignore[method-assign]
    serving = asyncio.create_task(SERVERS[name].run(schedule, streams))  # type: ignore[arg-type]
    while schedule.streams < streams:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    gc.freeze()
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        for _ in range(TOKENS):
            await schedule.go_on()
        best = min(best, (time.process_time() - begun) / TOKENS / streams)
    print(best, flush=True)
    serving.cancel()


def drain(port: int, streams: int, stopped: threading.Event) -> None:
    """Ask for that many streams, and read what comes."""
    selector = selectors.DefaultSelector()
    question = masked(json.dumps({"type": "response.create", "input": "Count.", "max_output_tokens": 8000}))
    for _ in range(streams):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(handshake())
        connection.recv(1 << 12)
        connection.sendall(question)
        selector.register(connection, selectors.EVENT_READ)
    while not stopped.is_set():
        for key, _ in selector.select(0.1):
            key.fileobj.recv(1 << 16)  # type: ignore[union-attr]


def measure(name: str, streams: int, rounds: int) -> float:
    """The CPU seconds that a token costs a server."""
    command = [sys.executable, __file__, "--be", name, "--streams", str(streams), "--rounds", str(4 * rounds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    stopped = threading.Event()
    clients = threading.Thread(target=drain, args=(int(process.stdout.readline()), streams, stopped))
    clients.start()
    try:
        return float(process.stdout.readline())
    finally:
        stopped.set()
        clients.join()
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[400, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the table into bench/RESULTS.md")
    parser.add_argument("--be", choices=SERVERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be:
        asyncio.run(be_server(options.be, options.streams[0], options.rounds))
        return
    rows = []
    for streams in options.streams:
        least = {"tokenweir": float("inf"), "bare": float("inf")}
        for _ in range(options.rounds):
            for name, so_far in least.items():
                least[name] = min(so_far, measure(name, streams, options.rounds))
        own, bare = (1e6 * cost for cost in least.values())
        rows.append([str(streams), f"{own:.1f}", f"{bare:.1f}", f"{own / bare:.2f}"])
        print("  ".join(rows[-1]), flush=True)
    header = ["streams", "tokenweir, µs of CPU a token", "bare websockets, µs of CPU a token", "ratio"]
    publish("serve-cpu", f"{machine()}, load average {os.getloadavg()[0]:.1f}.\n\n{table(header, rows)}", options.write)


if __name__ == "__main__":
    main()
