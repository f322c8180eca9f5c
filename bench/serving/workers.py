"""Several workers: answers a second of `tokenweir serve --workers N`, by the number of workers.

    scripts/bench workers [--workers 1 2] [--seconds 5] [--write]

The server is the command itself, with a recording as its engine, which waits for nothing. Its clients are one process that
sends bytes which it made before, over connections that stay open, and reads no more of an answer than its length. Two kinds
of requests: a chat completion of 100 tokens, and a derender of 900 ids. Workers share nothing but the port, so capacity grows
with the cores that they get, if an answer costs the same CPU time among several as it does alone: the last column. On a
machine of two cores that has other work, answers a second cannot show it. Prints a table; --write puts it into
bench/serving/RESULTS.md.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from serving.clients import post
from shared.processes import cpu_seconds
from shared.report import arguments, machine, publish, table

from tokenweir import Tokenizer

CONNECTIONS = 32
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@contextmanager
def serving(workers: int, engine: Path) -> Iterator[tuple[int, list[int]]]:
    """The command; gives its port and the processes that serve."""
    command = [
        sys.executable,
        "-m",
        "tokenweir",
        "serve",
        "--port=0",
        f"--engine=replay:{engine}",
        f"--workers={workers}",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = re.search(r"http://\S+:(\d+)", process.stderr.readline())
        assert told
        if workers > 1:
            assert "share the work" in process.stderr.readline()
        try:
            yield int(told[1]), _workers(process.pid) or [process.pid]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _workers(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def requests(ids: list[int]) -> dict[str, bytes]:
    """The kinds of requests, as they are sent."""
    answer = {"request_id": "r", "choices": [{"index": 0, "token_ids": ids[:900], "finish_reason": "stop"}]}
    chat = {"messages": [{"role": "user", "content": "Tell me about weirs."}], "max_tokens": 100}
    return {
        "chat completions of 100 tokens": post(json.dumps(chat), "/v1/chat/completions"),
        "derenders of 900 ids": post(
            json.dumps({"generate_response": answer, "chat_request": {"messages": []}}),
            "/v1/chat/completions/derender",
        ),
    }


async def ask(port: int, request: bytes, until: float) -> int:
    """Send a request over and over on one connection; gives how many were answered in time."""
    answered = 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = LENGTH.search(head)
        assert length
        await reader.readexactly(int(length[1]))
        answered += time.monotonic() < until
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    return answered


async def rate(port: int, request: bytes, seconds: float) -> float:
    """Answers a second."""
    until = time.monotonic() + seconds
    counts = await asyncio.gather(*(ask(port, request, until) for _ in range(CONNECTIONS)))
    return sum(counts) / seconds


def measure(counts: list[int], seconds: float) -> str:
    """The table."""
    rows, first = [], {}
    ids = Tokenizer.default().encode("Weirs are walls across rivers, over which the water runs. " * 400)
    with TemporaryDirectory() as folder:
        recording = Path(folder, "weirs.json")
        recording.write_text(
            json.dumps({"name": "weirs", "prompt": "?", "ids": ids[:1000], "waits_ms": [0] * 1000}), encoding="utf-8"
        )
        for workers in counts:
            with serving(workers, recording) as (port, processes):
                for kind, request in requests(ids).items():
                    asyncio.run(rate(port, request, 1.0))
                    own, theirs = time.process_time(), cpu_seconds(*processes)
                    answered = asyncio.run(rate(port, request, seconds))
                    own, theirs = time.process_time() - own, cpu_seconds(*processes) - theirs
                    for_cpu = answered * seconds / theirs
                    base = first.setdefault(kind, for_cpu)
                    shares = [f"{theirs / seconds:.0%}", f"{own / seconds:.0%}"]
                    rows.append(
                        [kind, str(workers), f"{answered:.0f}", *shares, f"{for_cpu:.0f}", f"{for_cpu / base:.2f}"]
                    )
    rows.sort(key=lambda row: (row[0], int(row[1])))
    header = ["requests", "workers", "a second", "workers' CPU", "clients' CPU", "a second of CPU", "of one worker's"]
    return f"{machine()}; {CONNECTIONS} connections.\n\n{table(header, rows)}"


def main() -> None:
    """Measure, and print or write."""
    options = arguments(__doc__, workers=[1, 2], seconds=5.0)
    text = measure(options.workers, options.seconds)
    publish("workers", text, options.write)


if __name__ == "__main__":
    main()
