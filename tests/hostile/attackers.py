"""The attackers: a process of its own, which runs the attacks that a list in JSON names until its input ends and then prints their counts as JSON.

The first line that it prints is the port of its hostile inference server; the first line of its input has the server's,
and its patience in seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys

from attacks import ATTACKS
from attacks.engine_server import HostileServer
from target import Target


async def attack(names: list[str]) -> None:
    """Run the attacks of these names until standard input ends; then print their counts and failures as JSON."""
    engine = HostileServer()
    await engine.start()
    print(engine.port, flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    port, patience = (await reader.readline()).split()
    targets = {
        name: Target(int(port), f"127.0.1.{number}", float(patience))
        for number, name in enumerate(ATTACKS, 1)
        if name in names
    }
    tasks = {name: asyncio.create_task(ATTACKS[name](target)) for name, target in targets.items()}
    await reader.readline()
    ended = {name: task.exception() for name, task in tasks.items() if task.done()}
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    counts = {name: dict(target.counts) for name, target in targets.items()}
    if "hostile engine" in counts:
        counts["hostile engine"] |= {f"server: {key}": count for key, count in engine.counts.items()}
    failures = {name: repr(error) for name, error in ended.items()}
    print(json.dumps({"counts": counts, "failures": failures}), flush=True)


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.nice(19)
    asyncio.run(attack(json.loads(sys.argv[1])))
