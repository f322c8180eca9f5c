"""Soak test of a server: random requests, random faults, and the leftovers in its memory.

    scripts/bench soak [--minutes 30] [--actions 10] [--seed 0] [--spans] [--write]

The server runs in a process of its own, with small limits, so that every one of them is reached. Its engine draws for each
request what it does: it answers, slowly or at once; fails, panics or gives ids that do not exist; swallows its
cancellation; never waits; or hangs. The clients, so many actions a second, draw what they do as well: they ask over every
interface, read to the end or leave in mid-answer with or without a word, cancel, come back, stop reading, send half a
request, garbage, or pings without end. Answers that must be whole are compared with what they must be.

Once a minute the clients pause until the server is idle. Then it says how many tasks, file descriptors and Python objects
it has, and how much memory. Ends with an error if an answer was wrong, the server died, or something was left. With --spans
OpenTelemetry's SDK records every answer, and none of its spans may be open then. --write puts the table into
bench/serving/RESULTS.md.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any

import httpx
import openai
from shared.processes import child, line_from, memory, number_from
from shared.report import arguments, machine, publish, table, told
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

WORDS = "one two three four five six seven eight nine ten"
"""The text of a good answer."""
EVERY = 60.0
"""Seconds between two looks."""
QUIET = 30.0
"""Seconds that the server gets to become idle."""

# -- the server --------------------------------------------------------------------------------------------------------


class Panic(BaseException):
    """The exception of a panic in Rust, which is not an `Exception`."""


class Faulty:
    """An engine that draws what it does with each request; the model `good` only answers."""

    def __init__(self, ids: list[int], end: int, random: Random | None) -> None:
        self._ids = ids
        self._end = end
        self._random = random

    async def generate(self, prompt_ids: Any, sampling: Any) -> AsyncGenerator[list[int], None]:
        random = self._random
        kind = "slow" if random is None else random.choice(KINDS)
        for token_id in self._ids:
            if random is not None and kind != "slow" and random.random() < 0.2:
                break
            await asyncio.sleep(0.01 if random is None else random.expovariate(50))
            yield [token_id]
        match kind:
            case "fail":
                raise RuntimeError("out of memory at /secret")
            case "panic":
                raise Panic("index out of bounds")
            case "exit":
                raise SystemExit
            case "cancel":
                raise asyncio.CancelledError
            case "foreign":
                yield [10**9]
            case "greedy":
                while True:
                    yield self._ids[:1]
            case "empty":
                for _ in range(100_000):
                    yield []
            case "hang":
                await asyncio.sleep(3600)
            case "stubborn":
                assert random is not None
                until = time.monotonic() + random.uniform(0, 4)
                while time.monotonic() < until:
                    with suppress(asyncio.CancelledError):
                        await asyncio.sleep(0.2)
        yield [self._end]


KINDS = ["slow", "slow", "slow", "fail", "panic", "exit", "cancel", "foreign", "greedy", "empty", "hang", "stubborn"]


def record_spans() -> Counter[str]:
    """Have OpenTelemetry record the spans of answers; how many have begun and ended."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

    counts: Counter[str] = Counter()

    class Count(SpanProcessor):
        def on_start(self, span: Span, parent_context: Any = None) -> None:
            counts["begun"] += 1

        def on_end(self, span: ReadableSpan) -> None:
            counts["ended"] += 1
            counts["failed"] += not span.status.is_ok

    provider = TracerProvider()
    provider.add_span_processor(Count())
    trace.set_tracer_provider(provider)
    return counts


async def be_server(seed: int, spans: bool) -> None:
    """Serve until SIGTERM; SIGUSR1 has it say what it holds."""
    from tokenweir import Limits, Tokenizer, serve
    from tokenweir.stream.serve.answers.generation import abandoned

    logging.basicConfig(level=logging.CRITICAL)
    recorded = record_spans() if spans else Counter()
    tokenizer = Tokenizer.default()
    ids, end = tokenizer.encode(WORDS, add_special_tokens=False), min(tokenizer.eos_ids)
    engines = {"good": Faulty(ids, end, None), "faulty": Faulty(ids, end, Random(seed))}
    limits = Limits(
        max_output_tokens=2000,
        max_connections_per_client=64,
        max_generations_per_client=48,
        max_pending_bytes=1 << 14,
        request_timeout=2.0,
        stall_timeout=2.0,
        idle_timeout=20.0,
        heartbeat=1.0,
        abandon_timeout=1.0,
        resume_grace=2.0,
        max_detached=4,
        max_stored_bytes=1 << 16,
    )
    async with serve(engine=engines, tokenizer=tokenizer, port=0, limits=limits) as server:  # type: ignore[arg-type]
        service = server._app.service

        def tell() -> None:
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
            held = {
                "busy": service.admission.generations + service.admission.connections + abandoned(),
                "tasks": len(asyncio.all_tasks()),
                "fds": len(os.listdir("/proc/self/fd")) - 1,
                "objects": len(gc.get_objects()),
                "memory": memory(),
                "spans": recorded["begun"],
                "open": recorded["begun"] - recorded["ended"],
                "failed": recorded["failed"],
            }
            print(json.dumps(held), flush=True)

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, tell)
        loop.add_signal_handler(signal.SIGTERM, server.close)
        print(server.port, flush=True)
        await server.serve_forever()


# -- the clients -------------------------------------------------------------------------------------------------------


class WrongAnswer(Exception):
    """A good engine's answer came out otherwise."""


class Clients:
    """Everything that clients do, drawn by one generator."""

    def __init__(self, port: int, random: Random) -> None:
        self._random = random
        self._port = port
        self.done: Counter[str] = Counter()
        self.refused = 0
        self._open()

    def _open(self) -> None:
        address = f"http://127.0.0.1:{self._port}"
        self._openai = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        self._http = httpx.AsyncClient(base_url=address, timeout=30)

    async def rest(self) -> None:
        """Keep no connection open."""
        await self._openai.close()
        await self._http.aclose()
        self._open()

    async def act(self) -> None:
        """Run one random action, and count it."""
        action: Callable[[], Coroutine[Any, Any, None]] = self._random.choice(self._actions)
        self.done[action.__name__] += 1
        try:
            async with asyncio.timeout(QUIET):
                await action()
        except TimeoutError:
            raise WrongAnswer(f"{action.__name__} took longer than {QUIET:g} s") from None
        except (openai.APIError, httpx.HTTPError, OSError, ConnectionClosed, InvalidStatus, EOFError):
            self.refused += 1  # the limits are small, and requests after a fault fail

    def _ask(self, model: str, **more: Any) -> str:
        return json.dumps({"type": "response.create", "model": model, "input": "Count.", **more})

    def _socket(self, **options: Any) -> connect:
        return connect(f"ws://127.0.0.1:{self._port}/v1/responses", ping_interval=None, **options)

    def _raw(self) -> socket.socket:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", self._port))
        raw.setblocking(False)
        return raw

    def _pause(self, most: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(self._random.uniform(0, most))

    async def talk(self) -> None:
        """Two answers over a socket, the second one after the first."""
        async with self._socket() as websocket:
            previous = None
            for _ in range(2):
                await websocket.send(self._ask("good", previous_response_id=previous))
                text = ""
                while (event := json.loads(await websocket.recv()))["type"] not in ("response.completed", "error"):
                    if event["type"] == "response.output_text.delta":
                        text += event["delta"]
                if event["type"] == "error":
                    return
                _check(text)
                previous = event["response"]["id"]

    async def complete(self) -> None:
        """A whole chat completion."""
        count = self._random.randint(1, 3)
        whole = await self._openai.chat.completions.create(
            model="good", messages=[{"role": "user", "content": "Count."}], n=count
        )
        for choice in whole.choices:
            _check(choice.message.content or "")

    async def stream(self) -> None:
        """A stream of a chat completion."""
        text = ""
        async for chunk in await self._openai.chat.completions.create(
            model="good", messages=[{"role": "user", "content": "Count."}], stream=True
        ):
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        _check(text)

    async def meet_a_fault(self) -> None:
        """Read what an engine with faults gives, to the end, or leave in the midst of it."""
        async with self._socket() as websocket:
            await websocket.send(self._ask("faulty"))
            leave = self._random.choice(["read", "close", "abort", "cancel"])
            with suppress(TimeoutError):
                async with asyncio.timeout(self._random.uniform(0, 2) if leave != "read" else 5):
                    while json.loads(await websocket.recv())["type"].rpartition(".")[2] not in LAST:
                        pass
            if leave == "cancel":
                await websocket.send('{"type": "response.cancel"}')
                await self._pause(0.5)
            if leave == "abort":
                websocket.transport.abort()

    async def meet_faults(self) -> None:
        """Several answers of an engine with faults over HTTP, left after a while."""
        body = {"model": "faulty", "messages": [{"role": "user", "content": "Count."}], "n": self._random.randint(1, 3)}
        body["stream"] = self._random.random() < 0.5
        with suppress(TimeoutError):
            async with asyncio.timeout(self._random.uniform(0, 4)):
                await self._http.post("/v1/chat/completions", json=body)

    async def come_back(self) -> None:
        """A response in the background, left and resumed."""
        async with self._socket() as websocket:
            await websocket.send(self._ask(self._random.choice(["good", "faulty"]), background=True))
            created = json.loads(await websocket.recv())
        if created["type"] == "response.created":
            await self._pause(3)
            async with self._socket() as websocket:
                await websocket.send(json.dumps({"type": "response.resume", "response_id": created["response"]["id"]}))
                await websocket.recv()

    async def stop_reading(self) -> None:
        """Ask for a long answer over a small buffer, and read nothing."""
        async with self._socket(sock=self._raw()) as websocket:
            websocket.transport.pause_reading()
            await websocket.send(self._ask("faulty", max_output_tokens=2000))
            await self._pause(6)
            websocket.transport.abort()

    async def send_half(self) -> None:
        """Half a request, and then nothing, or a reset."""
        whole = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Length: 90\r\n\r\n{{"
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(whole[: self._random.randrange(len(whole))].encode())
        if self._random.random() < 0.5:
            await self._pause(4)
        else:
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()
        await writer.wait_closed()
        reader.feed_eof()

    async def send_garbage(self) -> None:
        """Send malformed requests, over a socket and over HTTP."""
        garbage = self._random.choice(
            ["", "{", "[]", '"\ud800"', '{"type": 5}', '{"type": "response.create"}', "x" * 10_000]
        )
        async with self._socket() as websocket:
            await websocket.send(garbage.encode("utf-8", "replace").decode())
            await websocket.recv()
        headers = {"content-type": "application/json"}
        await self._http.post("/v1/responses", content=garbage.encode("utf-8", "replace"), headers=headers)

    async def ping(self) -> None:
        """Pings whose pongs are not read."""
        async with self._socket(sock=self._raw()) as websocket:
            websocket.transport.pause_reading()
            frame = bytes([0x89, 0x80 | 125, 0, 0, 0, 0]) + b"x" * 125
            for _ in range(20):
                websocket.transport.write(frame * 100)
                await asyncio.sleep(0.01)
            websocket.transport.abort()

    async def look(self) -> None:
        """Send the requests of monitors and pages."""
        for path in ("/metrics", "/v1/models", "/health", "/", "/nowhere"):
            await self._http.get(path)

    @property
    def _actions(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        good = [self.talk, self.complete, self.stream, self.look]
        bad = [self.come_back, self.stop_reading, self.send_half, self.send_garbage, self.ping]
        return [*good, *bad, *[self.meet_a_fault, self.meet_faults] * 3]


LAST = {"completed", "incomplete", "failed", "error"}


def _check(text: str) -> None:
    if text != WORDS:
        raise WrongAnswer(f"{text!r} came in place of {WORDS!r}")


# -- the looks ---------------------------------------------------------------------------------------------------------


async def idle(process: subprocess.Popen[str]) -> dict[str, float]:
    """Wait until the server is idle; return what it still holds, by name."""
    deadline = time.monotonic() + QUIET
    while True:
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGUSR1)
        held: dict[str, float] = json.loads(await asyncio.to_thread(line_from, process))
        if not held["busy"]:
            return held
        if time.monotonic() > deadline:
            raise SystemExit(f"the server does not become idle: {held}")


async def soak(minutes: float, actions: float, seed: int, spans: bool) -> str:
    """Run random actions for `minutes`; return the table of leftovers."""
    random = Random(seed)
    command = [sys.executable, __file__, "--be", str(seed), *["--spans"] * spans]
    with child(command) as process:
        clients = Clients(number_from(process), random)
        rows = []
        begun = time.monotonic()
        at = -1.0
        while at < 60 * minutes:
            acting: set[asyncio.Task[None]] = set()
            until = time.monotonic() + (EVERY if at >= 0 else EVERY / 4)  # a first round, before which nothing counts
            while time.monotonic() < until:
                acting.add(asyncio.create_task(clients.act()))
                await asyncio.sleep(random.expovariate(actions))
            for result in await asyncio.gather(*acting, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
            await clients.rest()
            held = await idle(process)
            if held["open"]:
                raise SystemExit(
                    f"of {held['spans']:.0f} spans {held['open']:.0f} are open although nothing is at work"
                )
            at = time.monotonic() - begun
            done = sum(clients.done.values())
            row = [f"{at / 60:.0f}", str(done), str(clients.refused)]
            row += [f"{held['tasks']:.0f}", f"{held['fds']:.0f}", f"{held['objects']:.0f}", f"{held['memory']:.1f}"]
            rows.append(told(row))
        first, last = rows[0], rows[-1]
        if (first[3], first[4]) != (last[3], last[4]):
            raise SystemExit(f"tasks and file descriptors were {first[3:5]}, and are {last[3:5]}")
        process.send_signal(signal.SIGTERM)
        if code := process.wait(30):
            raise SystemExit(f"the server ended with {code}")
        kinds = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sorted(clients.done.items()))
        if spans:
            kinds += f". {held['spans']:.0f} spans were recorded, {held['failed']:.0f} of them of failures; none was left open"
        shown = [rows[round(number * (len(rows) - 1) / 6)] for number in range(7)] if len(rows) > 7 else rows
        return f"{machine()}, seed {seed}. What clients did: {kinds}.\n\n{table(HEADER, shown)}"


HEADER = ["minute", "actions", "ended in an error", "tasks", "file descriptors", "Python objects", "RSS, MB"]

if __name__ == "__main__":
    options = arguments(
        __doc__,
        minutes=30.0,
        actions=(10.0, "a second"),
        seed=0,
        spans=(False, "record OpenTelemetry's spans"),
        be={"type": int, "help": argparse.SUPPRESS},
    )
    if options.be is not None:
        asyncio.run(be_server(options.be, options.spans))
    else:
        text = asyncio.run(soak(options.minutes, options.actions, options.seed, options.spans))
        publish("soak", text, options.write)
