"""One worker under load by a clock that only its own work and its pauses move: for machines that do other work too.

    scripts/bench serve_cpu [--streams 400 1000] [--seconds 4] [--rounds 3] [--servers NAME ...] [--write]

The servers of `bench/serving/serve.py`, which says what they do and what is late. On a busy machine they would fall behind, and send
fewer and longer frames than on a free one, so that neither costs nor delays could be compared. Here the clock of a server's
process is the CPU time that its event loop has taken and the time for which it had nothing to do; while others have the
core, it stands still. When a frame is late is seen at the transport, so the way to the client is left out. Servers take
turns; of each the round with the least CPU time is shown. Prints a table; --write puts it into bench/serving/RESULTS.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import selectors
import socket
import sys
import threading
import time
from typing import Any

REAL = time.monotonic
WORKED = time.thread_time


class Clock:
    """The time of one thread's work and pauses, once it is `own`; before that, everybody's."""

    def __init__(self) -> None:
        self.own = False
        self.iterations = 0
        self._ahead = 0.0
        self._spared = 0.0
        self._cost = 0.0
        started = WORKED()
        for _ in range(10_000):
            self()
        self._cost = (WORKED() - started) / 10_000  # of asking, which is more than that of the usual clock
        self._spared = 0.0

    def __call__(self) -> float:
        self._spared += self._cost
        return WORKED() - self._spared + self._ahead if self.own else REAL()

    def worked(self) -> float:
        """The thread's CPU time, without what only this benchmark does."""
        return WORKED() - self._spared

    def begin(self) -> None:
        """Be the thread's own from now on."""
        self._ahead = REAL() - self.worked()
        self.own = True

    def wait(self, seconds: float) -> None:
        """Let time pass in which nothing was done."""
        self._ahead += seconds

    def spare(self, seconds: float) -> None:
        """Leave out what was done, and does not count."""
        self._spared += seconds


class Selector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """Lets the clock go on while the event loop waits."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> Any:
        self._clock.iterations += 1
        begun = REAL()
        ready = super().select(timeout)
        if self._clock.own and timeout:
            self._clock.wait(min(timeout, REAL() - begun) if ready else timeout)
        return ready


CLOCK = Clock()
if "--be" in sys.argv:
    time.monotonic, time.thread_time = CLOCK, CLOCK.worked  # before the packages take them

from serving.clients import DELTA, Load, handshake, masked
from serving.serve import WARM_UP
from serving.servers import RATE, SERVERS, TOKEN, StepEngine
from shared.processes import child, line_from, number_from
from shared.report import arguments, machine, publish, table, told


class Written:
    """Compares what a server writes with the schedule."""

    def __init__(self) -> None:
        self.load = Load()
        self._streams: dict[Any, list[float]] = {}  # by transport: the time of the first token, and tokens so far
        self._heads: dict[Any, bytes] = {}
        transport = asyncio.selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
        write = transport.write

        def look_and_write(connection: Any, data: bytes) -> None:
            self._look(connection, data)
            write(connection, data)

        transport.write = look_and_write

    def _look(self, connection: Any, data: bytes) -> None:
        if (found := DELTA.search(data)) is None:
            return
        now, begun = CLOCK(), WORKED()
        stream = self._streams.get(connection)
        if stream is None:
            head = self._heads[connection] = self._heads.get(connection, b"") + found[1]
            if b"|" in head:
                first, _, text = head.partition(b"|")
                self._streams[connection] = [float(first), len(text) // len(TOKEN)]
                self.load.begun += 1
        else:
            count = len(found[1]) // len(TOKEN)
            if self.load.measuring:
                self.load.late.append(now - (stream[0] + stream[1] / RATE))
                self.load.tokens += count
            stream[1] += count
        CLOCK.spare(WORKED() - begun)


async def be_server(name: str, streams: int, seconds: float) -> None:
    """Serve that many streams, and print what `measure` gives."""
    from tokenweir import Tokenizer

    written = Written()
    load = written.load
    engine = StepEngine(10**9, Tokenizer.default().encode)
    serving = asyncio.create_task(SERVERS[name].run(engine, streams))
    while load.begun < streams:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    gc.freeze()
    CLOCK.begin()
    await asyncio.sleep(WARM_UP)
    load.measuring = True
    begun, cpu, turns = CLOCK(), CLOCK.worked(), CLOCK.iterations
    await asyncio.sleep(seconds)
    took, cpu, turns = CLOCK() - begun, CLOCK.worked() - cpu, CLOCK.iterations - turns
    late = sorted(load.late)
    frames = len(late)
    seen = [cpu / took, cpu / load.tokens, frames / load.tokens, late[frames // 2], late[frames * 99 // 100]]
    print(json.dumps([*seen, turns / load.tokens]), flush=True)
    await serving  # until the process is killed


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


def measure(name: str, streams: int, seconds: float) -> list[float]:
    """CPU, CPU seconds a token, frames a token, late p50 and p99, and loop iterations a token."""
    command = [sys.executable, __file__, "--be", name, "--streams", str(streams), "--seconds", str(seconds)]
    stopped = threading.Event()
    with child(command) as process:
        clients = threading.Thread(target=drain, args=(number_from(process), streams, stopped))
        clients.start()
        try:
            seen: list[float] = json.loads(line_from(process))
            return seen
        finally:
            stopped.set()
            clients.join()


HEADER = [
    "streams",
    "server",
    "CPU",
    "µs a token",
    "frames a token",
    "late p50, ms",
    "late p99, ms",
    "iterations a token",
]


def main() -> None:
    options = arguments(
        __doc__,
        streams=[400, 1000],
        seconds=4.0,
        rounds=3,
        servers={"nargs": "+", "choices": SERVERS, "default": ["tokenweir", "bare"]},
        be={"choices": SERVERS, "help": argparse.SUPPRESS},
    )
    if options.be:
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(Selector(CLOCK))) as runner:
            runner.run(be_server(options.be, options.streams[0], options.seconds))
        return
    rows = []
    for streams in options.streams:
        seen: dict[str, list[list[float]]] = {name: [] for name in options.servers}
        for _ in range(options.rounds):
            for name, so_far in seen.items():
                so_far.append(measure(name, streams, options.seconds))
        for name, rounds in seen.items():
            cpu, token, frames, half, most, turns = min(rounds, key=lambda one: one[1])
            row = [
                f"{100 * cpu:.0f} %",
                f"{1e6 * token:.1f}",
                f"{frames:.2f}",
                f"{1e3 * half:.1f}",
                f"{1e3 * most:.1f}",
            ]
            rows.append(told([str(streams), SERVERS[name].name, *row, f"{turns:.2f}"]))
    publish("serve-cpu", f"{machine()}, load average {os.getloadavg()[0]:.1f}.\n\n{table(HEADER, rows)}", options.write)


if __name__ == "__main__":
    main()
