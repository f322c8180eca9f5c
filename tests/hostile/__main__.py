"""All attacks at once on a server, beside honest streams.

    scripts/check --hostile [SECONDS] [--only NAME,NAME] [--late MS] [--work MS] [--turns MS] [--patience SECONDS] [--streams 50] [--write]

The server has one core, and honest clients and attackers have the other, where the attackers are niced. First the honest
clients are alone; then the attacks run for so many seconds; then they stop. Fails if an honest text was wrong, an honest
client was refused, an attack had its will, memory grew beyond its bounds or did not come back, or the server did not end
well. Times are reported, and judged only if asked: --late has the most milliseconds by which 99.9 % of honest frames may be
late, and --work the most CPU time between two turns of the event loop, which does not depend on what else the machine does.
--turns reports what ran in turns of the event loop with more CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FOLDERS = (str(HERE.parents[1] / "bench"), str(HERE.parent / "oracles"))
sys.path += FOLDERS

from attacks import ATTACKS
from shared.report import arguments, machine, publish, table
from target import WRONG

TOKENS = 250
"""Of an honest stream, which takes five seconds."""
MOST_MORE = 1024
"""Megabytes by which the server may grow under attack: the sum of its budgets (`max_incoming_bytes`, `max_outgoing_bytes`,
`max_stored_bytes`, and prompts that wait), and copies of requests at work with up to four bytes a character."""
MOST_LEFT = 160
"""Megabytes that may stay when the attackers have gone: 64 of stored conversations, the rest probably fragmentation. It is
no leak as long as more time leaves no more: ten minutes left 138, an hour 136."""
SETTLE = 45.0
"""Seconds in which the server must be back to its sockets."""
SPARE_SOCKETS = 80
"""By how many the sockets of honest clients differ from one look to the next."""


class Process:
    """A child process that answers lines of its standard input by lines of JSON."""

    def __init__(self, core: int, name: str, *given: object) -> None:
        command = ["taskset", "-c", str(core), sys.executable, "-P", str(HERE / name), json.dumps(given)]
        self._name = name
        path = os.pathsep.join(filter(None, (str(HERE), *FOLDERS, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}
        )
        self.pid = self._process.pid

    def ask(self, line: str = "") -> Any:
        """Send a line; return the answer."""
        self.tell(line)
        return self.hear()

    def tell(self, line: str) -> None:
        """Send a line to which there is no answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Read the next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._name} ended with {self._process.wait()}")
        return json.loads(line)

    def alive(self) -> bool:
        """Whether the process is still running."""
        return self._process.poll() is None

    def look(self) -> Any:
        """Ask the server for its measurements by SIGUSR1; return them."""
        self._process.send_signal(signal.SIGUSR1)
        return self.hear()

    def end(self) -> int:
        """Send SIGTERM, wait, and return the exit code; kill the process if it does not end."""
        if self.alive():
            self._process.terminate()
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def memory(self, field: str) -> float:
        """Return a field of /proc/PID/status, such as "VmRSS", in MiB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition(f"{field}:")[2].split()[0]) / 1024

    def scheduled(self) -> tuple[float, float]:
        """Return the seconds that the process has run on a core, and those that it has waited for one."""
        ran, waited, _ = Path(f"/proc/{self.pid}/schedstat").read_text().split()
        return int(ran) / 1e9, int(waited) / 1e9


def quantiles(values: list[float]) -> list[str]:
    """Format the 50th, 99th and 99.9th percentiles and the maximum of some seconds, in milliseconds."""
    if not values:
        return ["–"] * 4
    ordered = sorted(values)
    last = len(ordered) - 1
    return [f"{1000 * ordered[min(last, int(share * len(ordered)))]:.1f}" for share in (0.5, 0.99, 0.999, 1.0)]


class Phase:
    """A period of the run and its measurements, from its creation to `end`."""

    def __init__(self, server: Process, honest: Process) -> None:
        self._server, self._honest = server, honest
        honest.ask()
        server.look()
        self._ran, self._waited = server.scheduled()
        self._begun = time.monotonic()

    def end(self, name: str) -> None:
        """End the period and store its measurements under a name."""
        self.name = name
        seconds = time.monotonic() - self._begun
        ran, waited = self._server.scheduled()
        self.busy, self.starved = (ran - self._ran) / seconds, (waited - self._waited) / seconds
        self.memory = self._server.memory("VmRSS")
        self.seen = self._honest.ask()
        self.figures = self._server.look()
        self.kept = self._server.memory("VmRSS")  # what was free has gone back to the system

    def rows(self) -> list[list[str]]:
        """Return the period's rows of the report's table."""
        seen = self.seen
        return [
            [f"{self.name}: honest frames", f"{len(seen['late']):,}", *quantiles(seen["late"])],
            [f"{self.name}: newcomers' requests", f"{len(seen['waits']):,}", *quantiles(seen["waits"])],
            [f"{self.name}: the loop's own lag", f"{len(self.figures['lag']):,}", *quantiles(self.figures["lag"])],
            [f"{self.name}: CPU between turns", f"{len(self.figures['worked']):,}", *quantiles(self.figures["worked"])],
        ]


def run(names: list[str], options: argparse.Namespace) -> tuple[str, list[str]]:
    """Run the attacks of these names; return the report and a list of failures."""
    seconds, streams = options.seconds, options.streams
    server_core, client_core = sorted(os.sched_getaffinity(0))[:2]
    attackers = Process(client_core, "attackers.py", *names)
    children = [attackers]
    failures: list[str] = []
    try:
        patience = max(5.0, seconds / 5) if options.patience is None else options.patience
        server = Process(server_core, "server.py", TOKENS, attackers.hear(), patience, options.turns)
        children.append(server)
        port = server.hear()
        honest = Process(client_core, "honest.py", port, streams, TOKENS)
        children.append(honest)
        time.sleep(3)  # all streams have begun
        phases = [Phase(server, honest)]
        time.sleep(max(3.0, seconds / 10))
        phases[0].end("quiet")
        Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # begins the count of the most memory anew
        phases.append(Phase(server, honest))
        attackers.tell(f"{port} {patience}")
        time.sleep(seconds)
        phases[1].end("attacked")
        peak = server.memory("VmHWM")
        told = attackers.ask()
        begun = time.monotonic()
        while (left := server.look())["sockets"] > phases[0].figures["sockets"] + SPARE_SOCKETS:
            if time.monotonic() - begun > SETTLE:
                failures.append(f"{left['sockets']} sockets are open {SETTLE:g} s after the attackers have gone")
                break
            time.sleep(1)
        phases.append(Phase(server, honest))
        time.sleep(3)
        phases[2].end("afterwards")
        quiet, after = phases[0].memory, server.memory("VmRSS")
        if peak - quiet > MOST_MORE:
            failures.append(f"memory grew from {quiet:.0f} to {peak:.0f} MB; {MOST_MORE} MB more are allowed")
        if after - quiet > MOST_LEFT:
            failures.append(f"memory is {after:.0f} MB afterwards; it was {quiet:.0f}, and {MOST_LEFT} MB may stay")
        for phase in phases:
            failures += [f"{phase.name}: {count} × {what}" for what, count in phase.seen["failures"].items()]
            if not phase.seen["tokens"]:
                failures.append(f"{phase.name}: no token came")
        for name, error in told["failures"].items():
            failures.append(f"the attack {name!r} ended by itself: {error}")
        for name, counts in told["counts"].items():
            failures += [
                f"{name}: {count} × {what}" for what, count in counts.items() if count and what.startswith(WRONG)
            ]
            if not counts:
                failures.append(f"the attack {name!r} did nothing")
        late, worked = float(quantiles(phases[1].seen["late"])[2]), 1000 * max(phases[1].figures["worked"])
        if options.late is not None and late > options.late:
            failures.append(f"99.9 % of honest frames are {late:.0f} ms late, and {options.late:.0f} are allowed")
        if options.work is not None and worked > options.work:
            failures.append(f"the server worked {worked:.0f} ms between two turns, and {options.work:.0f} are allowed")
        if code := server.end():
            failures.append(f"the server ended with {code}")
    finally:
        for child in children:
            child.end()
    rows = [row for phase in phases for row in phase.rows()]
    resources = [
        [
            phase.name,
            f"{phase.memory:.0f}",
            f"{phase.kept:.0f}",
            str(phase.figures["sockets"]),
            f"{phase.busy:.0%}",
            f"{phase.starved:.0%}",
        ]
        for phase in phases
    ]
    counted = [[name, ", ".join(f"{what} {n:,}" for what, n in told["counts"][name].items())] for name in names]
    which = "all of them" if len(names) == len(ATTACKS) else ", ".join(names)
    text = "\n\n".join(
        (
            f"{machine()}; {streams} streams of 50 tokens/s, {seconds:g} s of attacks: {which}.",
            table(["late, ms", "count", "p50", "p99", "p99.9", "most"], rows),
            table(["the server", "RSS, MB", "trimmed", "file descriptors", "on its core", "waiting for it"], resources),
            f"Most RSS under attack: {peak:.0f} MB.",
        )
    )
    print("\n".join(f"- {name}: {what}" for name, what in counted))
    return text, failures


def main() -> int:
    """Parse the arguments, attack, and print the report; return the exit code."""

    def milliseconds(about: str) -> dict[str, Any]:
        return {"type": float, "metavar": "MS", "help": about}

    options = arguments(
        __doc__,
        ("seconds", {"type": float, "nargs": "?", "default": 20.0}),
        only=(",".join(ATTACKS), f"some of {', '.join(ATTACKS)}"),
        late=milliseconds("fail if honest frames are later"),
        work=milliseconds("fail if the server works longer between two turns"),
        turns=milliseconds("report turns of the event loop with more CPU time"),
        patience={"type": float, "help": "most seconds of the server's timeouts; default: a fifth of the time"},
        streams=(50, "honest ones"),
    )
    names = options.only.split(",")
    if unknown := set(names) - set(ATTACKS):
        raise SystemExit(f"no attacks: {', '.join(sorted(unknown))}")
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("two cores are needed: one for the server")
    text, failures = run(names, options)
    publish("under-attack", text, options.write)
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
