"""The memory of a server whose clients say a megabyte, stay connected, and ask for nothing more.

    scripts/bench idle [--sockets 40 200] [--write]

The server of `bench/serving/serve.py` with its default limits. Each socket sends one request that is not stored, of ASCII and
then with one character that makes Python take four bytes for each. Prints what the server's memory grew by; --write puts the
table into bench/serving/RESULTS.md.
"""

from __future__ import annotations

import asyncio
import json

from serving.clients import idle_connection, masked
from serving.serve import running
from shared.processes import memory, number_from
from shared.report import arguments, machine, publish, table, told

SIZE = 1_000_000
TEXTS = {"ASCII": "a" * SIZE, "one emoji in it": "a" * (SIZE - 1) + "\U0001f30a"}


async def grown(text: str, sockets: int) -> tuple[float, float]:
    """MB that the server grows by, while the sockets are open and when they are closed."""
    body = {"type": "response.create", "input": text, "store": False, "max_output_tokens": 1}
    request = masked(json.dumps(body))
    with running("tokenweir", sockets, 100) as process:
        port = number_from(process)
        first = await asked(port, masked(json.dumps({**body, "input": "hi"})))
        before = memory(process.pid)
        open_ones = [await asked(port, request) for _ in range(sockets)]
        while_open = memory(process.pid)
        for writer in (first, *open_ones):
            writer.close()
        await asyncio.sleep(3)
        return while_open - before, memory(process.pid) - before


async def asked(port: int, request: bytes) -> asyncio.StreamWriter:
    """A socket that has its answer."""
    reader, writer = await idle_connection(port, sse=False)
    writer.write(request)
    answer = b""
    while b'"status":"incomplete"' not in answer:
        if not (data := await reader.read(1 << 16)):
            raise SystemExit(f"no answer: {answer[-300:]!r}")
        answer += data
    return writer


async def main() -> None:
    options = arguments(__doc__, sockets=[40, 200])
    rows = []
    for name, text in TEXTS.items():
        for sockets in options.sockets:
            while_open, closed = await grown(text, sockets)
            each = f"{while_open / sockets:.2f}"
            rows.append(told([name, str(sockets), f"{while_open:.0f}", each, f"{closed:.0f}"]))
    header = ["1 MB of", "idle sockets", "MB more", "MB a socket", "MB more when closed"]
    publish("idle", f"{machine()}\n\n{table(header, rows)}", options.write)


if __name__ == "__main__":
    asyncio.run(main())
