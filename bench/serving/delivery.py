"""The cost of passing deltas on: one reader, several, and one that never reads.

    scripts/bench delivery [--deltas 50000] [--rounds 3] [--uvloop] [--write]

Prints tables; --write puts them into bench/serving/RESULTS.md.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import anyio.lowlevel
from shared.report import arguments, machine, publish, table
from websockets.asyncio.client import connect

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.broadcast import Broadcast
from tokenweir.stream.chat.fan_out import fan_out
from tokenweir.stream.events.deltas import TextDelta
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.transport.server import serve

COSTS = """Microseconds of CPU time a delta of one token. An engine that is always ready gets ahead of its readers, which
then take merged deltas; one that lets the event loop turn after each delta, as real ones do, has them taken one by one.
The cost of that turn alone is the first row."""
STALLED = """Clients of a server that ask and never read: the tokens that their engine was let give until it was held back for
good, and the memory that Python took for them then and at most. The kernel's buffers hold the rest."""

Way = Callable[[int, bool], Awaitable[None]]


async def source(count, waits):
    for number in range(count):
        if waits:
            await anyio.lowlevel.checkpoint()
        yield TextDelta(" word", [number])


async def alone(count: int, waits: bool) -> None:
    """The engine alone."""
    async for _ in source(count, waits):
        pass


async def queue(count: int, waits: bool) -> None:
    """The peer: `asyncio.Queue` of 16, nothing is merged."""
    waiting: asyncio.Queue[TextDelta | None] = asyncio.Queue(16)

    async def produce() -> None:
        async for delta in source(count, waits):
            await waiting.put(delta)
        await waiting.put(None)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(produce())
        while await waiting.get() is not None:
            pass


async def memory_stream(count: int, waits: bool) -> None:
    """The peer: anyio's memory object stream of 16."""
    sender, receiver = anyio.create_memory_object_stream[TextDelta](16)

    async def produce() -> None:
        async with sender:
            async for delta in source(count, waits):
                await sender.send(delta)

    async with anyio.create_task_group() as tasks, receiver:
        tasks.start_soon(produce)
        async for _ in receiver:
            pass


async def broadcast(count: int, waits: bool) -> None:
    slot = Broadcast.of_deltas(max_ahead=1 << 18)

    async def produce() -> None:
        async for delta in source(count, waits):
            await slot.put(delta)
        slot.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        with slot.subscribe() as subscription:
            async for _ in subscription:
                pass


async def fanned(count: int, waits: bool, readers: int, interval: float = 0.0) -> None:
    async def read(stream: Broadcast[TextDelta]) -> None:
        with stream.subscribe(interval=interval) as subscription:
            async for _ in subscription:
                pass

    async with fan_out(source(count, waits)) as stream, anyio.create_task_group() as tasks:
        for _ in range(readers):
            tasks.start_soon(read, stream)


WAYS: dict[str, Way] = {
    "the engine alone": alone,
    "asyncio.Queue(16)": queue,
    "anyio memory stream (16)": memory_stream,
    "broadcast": broadcast,
    "fan-out, one reader": partial(fanned, readers=1),
    "fan-out, 16 readers": partial(fanned, readers=16),
    "fan-out, 16 readers, a batch in 10 ms": partial(fanned, readers=16, interval=0.01),
}


class Endless:
    """An engine that is always ready, and counts what it gave."""

    def __init__(self, tok: Tokenizer) -> None:
        self.ids = tok.encode(" word")
        self.given = 0

    async def generate(self, prompt_ids, sampling):
        while True:
            await asyncio.sleep(0)
            self.given += len(self.ids)
            yield self.ids


async def stalled(readers: int) -> list[str]:
    """Run a server whose clients read nothing; return the engine's number of ids and the growth of memory."""
    tok = Tokenizer.default()
    engine = Endless(tok)
    limits = Limits(stall_timeout=60, drain_timeout=0, max_output_tokens=10**9)
    async with serve(engine=engine, tokenizer=tok, port=0, limits=limits) as server:
        clients = [await _silent_client(server.port) for _ in range(readers)]
        await asyncio.sleep(0.2)
        tracemalloc.start()
        for client in clients:
            await client.send(json.dumps({"type": "response.create", "input": "hi", "background": readers == 1}))
        before = -1
        while engine.given > before:
            before = engine.given
            await asyncio.sleep(2)
        memory, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        for client in clients:
            client.transport.abort()
    per = [engine.given / readers, memory / readers / 1024, peak / readers / 1024]
    return [str(readers), *(f"{value:,.0f}" for value in per)]


async def _silent_client(port: int):
    raw = socket.socket()
    raw.connect(("127.0.0.1", port))
    raw.setblocking(False)
    client = await connect(f"ws://127.0.0.1:{port}/v1/responses", sock=raw)
    client.transport.pause_reading()
    return client


def main() -> None:
    options = arguments(__doc__, deltas=50_000, rounds=3, uvloop=False)
    backend = {"use_uvloop": options.uvloop}
    rows = []
    for name, way in WAYS.items():
        times: dict[bool, list[float]] = {False: [], True: []}
        for waits in [False, True] * options.rounds:
            start = time.process_time()
            anyio.run(way, options.deltas, waits, backend_options=backend)
            times[waits].append(time.process_time() - start)
        rows.append([name, *(f"{min(seconds) / options.deltas * 1e6:.2f}" for seconds in times.values())])
    costs = table(["", "always ready", "a turn after each"], rows)
    rows = [anyio.run(stalled, readers, backend_options=backend) for readers in (1, 10)]
    memory = table(["clients", "tokens each", "KiB each", "peak KiB each"], rows)
    loop = "uvloop" if options.uvloop else "asyncio"
    text = "\n\n".join([COSTS.replace("\n", " "), costs, STALLED.replace("\n", " "), memory, f"{machine()}; {loop}"])
    publish("delivery", text, options.write)


if __name__ == "__main__":
    main()
