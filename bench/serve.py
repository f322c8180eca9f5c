"""One worker under load: many streams of 50 tokens a second, beside bare websockets and a Starlette server of SSE.

    python bench/serve.py [--streams 10 100 400 1000] [--seconds 6] [--servers NAME ...] [--write]

Every server runs in a process of its own, and the clients in this one; on two cores or more each gets its own. All
servers are fed by one step engine, whose one timer wakes every stream 50 times a second, each in a phase of its own, and
all send the same events of the Responses protocol. The engine alone is the first row. A token is late by the time
between its place in the schedule and the arrival of its frame; of a frame it is the oldest one that counts.

A second table has what one connection costs: the Python functions that are called from the moment in which the engine gives
an id until the transport writes its frame; a request of one token, from the first byte sent to the last received; and the
memory of a connection that is open and asks for nothing. Prints both; --write puts them into bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import json
import os
import re
import selectors
import signal
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.report import machine, publish, table

RATE = 50
"""Tokens a second and stream."""
TICK = 0.001
TOKEN = " and"
WARM_UP = 1.5
"""Seconds after the last stream has begun and before the measured time."""

# -- the step engine ---------------------------------------------------------------------------------------------------


class StepEngine:
    """Gives every stream a token each 1/50 s by one timer; a stream that is slow finds its tokens waiting."""

    runs_ahead = True

    def __init__(self, tokens: int, ids: Callable[[str], list[int]]) -> None:
        self._tokens = tokens
        self._ids = ids
        self._token_id = ids(TOKEN)[0]
        self._slots: list[list[_Stream]] = [[] for _ in range(round(1 / RATE / TICK))]
        self._tick = 0
        self._phase = 0
        self._started = False

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._started, self._tick = True, int(loop.time() / TICK) + 1
        loop.call_at(self._tick * TICK, self._step, loop)

    def _step(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._tick * TICK <= loop.time():
            for stream in self._slots[self._tick % len(self._slots)]:
                stream.step()
            self._tick += 1
        loop.call_at(self._tick * TICK, self._step, loop)

    async def generate(self, prompt_ids: Any, sampling: Any) -> AsyncGenerator[list[int], None]:
        """Spell the time of the first token, then give the tokens."""
        if not self._started:
            self._start()
        slots = len(self._slots)
        self._phase = (self._phase + 7) % slots
        first = self._tick + 1 + (self._phase - self._tick - 1) % slots
        slot, stream = self._slots[self._phase], _Stream()
        slot.append(stream)
        try:
            yield self._ids(f"{first * TICK:.3f}|")
            left = self._tokens
            while left > 0:
                ready = min(left, stream.take() or await stream.wait())
                left -= ready
                yield [self._token_id] * ready
        finally:
            slot.remove(stream)


class _Stream:
    """What one stream has waiting."""

    def __init__(self) -> None:
        self._ready = 0
        self._waiter: asyncio.Future[None] | None = None

    def step(self) -> None:
        self._ready += 1
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self) -> int:
        ready, self._ready = self._ready, 0
        return ready

    async def wait(self) -> int:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
        self._waiter = None
        return self.take()


# -- the servers -------------------------------------------------------------------------------------------------------

NOBODY: dict[str, Any] = {"output_index": 0, "item_id": "msg_0123456789abcdef0123456789abcdef"}


def text_events(engine: StepEngine, decode: Callable[[list[int]], str]) -> Callable[..., AsyncGenerator[bytes, None]]:
    """What the peers send: one event for each chunk of ids, encoded as tokenweir does, up to a number of chunks."""
    from tokenweir.stream.server.wire.events import OutputTextDelta, encode

    async def events(most: int | None = None) -> AsyncGenerator[bytes, None]:
        number = 4
        async with aclosing(engine.generate((), None)) as chunks:
            async for ids in chunks:
                yield encode(OutputTextDelta(sequence_number=number, delta=decode(ids), **NOBODY))
                number += 1
                if number - 4 == most:
                    break

    return events


async def run_engine(engine: StepEngine, streams: int) -> None:
    """The engine alone, read by as many tasks."""

    async def read() -> None:
        async for _ in engine.generate((), None):
            pass

    await asyncio.gather(*(read() for _ in range(streams)))


async def run_tokenweir(engine: StepEngine, streams: int) -> None:
    """The package's own server."""
    from tokenweir import Limits, Tokenizer, serve

    most = streams + 10
    limits = Limits(
        max_connections=most,
        max_connections_per_client=most,
        max_generations=most,
        max_generations_per_client=most,
        max_waiting=most,
    )
    async with serve(engine=engine, tokenizer=Tokenizer.default(), port=0, limits=limits) as server:  # type: ignore[arg-type]
        print(server.port, flush=True)
        await server.serve_forever()


async def run_bare(engine: StepEngine, streams: int) -> None:
    """The peer: the package `websockets`, one frame an event."""
    from websockets.asyncio.server import ServerConnection
    from websockets.asyncio.server import serve as websocket_serve
    from websockets.exceptions import ConnectionClosed

    from tokenweir import Tokenizer

    events = text_events(engine, Tokenizer.default().decode)

    async def answer(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            async for message in connection:
                async for event in events(most_of(message)):
                    await connection.send(event, text=True)

    async with websocket_serve(answer, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


def most_of(message: str | bytes) -> int | None:
    """How many chunks a request asks for; all, unless for one token."""
    return 1 if json.loads(message).get("max_output_tokens") == 1 else None


async def run_asgi(app: Any) -> None:
    """Serve an ASGI application by uvicorn."""
    import socket

    import uvicorn

    config = uvicorn.Config(
        app,
        log_config=None,
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        ws_ping_interval=None,
        access_log=False,
        http="httptools",
    )
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio sets no TCP_NODELAY
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve([listener])


async def run_sse(engine: StepEngine, streams: int) -> None:
    """The peer: Starlette and uvicorn, one server-sent event an event."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    from tokenweir import Tokenizer

    events = text_events(engine, Tokenizer.default().decode)

    async def stream(most: int | None) -> AsyncGenerator[bytes, None]:
        async for event in events(most):
            yield b"data: " + event + b"\n\n"

    async def answer(request: Request) -> StreamingResponse:
        return StreamingResponse(stream(most_of(await request.body())), media_type="text/event-stream")

    await run_asgi(Starlette(routes=[Route("/v1/responses", answer, methods=["POST"])]))


async def run_uvicorn(engine: StepEngine, streams: int) -> None:
    """The peer: an ASGI application that is nothing but a websocket, on uvicorn's `websockets-sansio`."""
    from tokenweir import Tokenizer

    events = text_events(engine, Tokenizer.default().decode)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            async for event in events(most_of(message["text"])):
                await send({"type": "websocket.send", "text": event.decode()})

    await run_asgi(app)


@dataclass
class Server:
    """A row of the table."""

    name: str
    run: Callable[[StepEngine, int], Coroutine[Any, Any, None]]
    sse: bool = False


SERVERS = {
    "engine": Server("the step engine alone", run_engine),
    "tokenweir": Server("tokenweir, websocket", run_tokenweir),
    "bare": Server("websockets, one frame a token", run_bare),
    "uvicorn": Server("uvicorn's websocket, one frame a token", run_uvicorn),
    "sse": Server("Starlette, one SSE event a token", run_sse, sse=True),
}


class CountingSelector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """Counts the iterations of the event loop, each of which asks it once."""

    iterations = 0

    def select(self, timeout: float | None = None) -> Any:
        self.iterations += 1
        return super().select(timeout)


GIVEN = "async_generator_wrapped_value"
"""The type, which has no other name, of what an async generator gives by `yield`; by `await` it gives futures."""


class CallCounter:
    """Counts the Python functions that are called from an item that the engine gives until the transport writes."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self._count: int | None = None
        self._given = StepEngine.generate.__code__
        self._write = asyncio.selector_events._SelectorSocketTransport.write.__code__  # type: ignore[attr-defined]

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event == "return" and frame.f_code is self._given and type(argument).__name__ == GIVEN:
            self._count = 0
        elif event == "call" and self._count is not None:
            self._count += 1
            if frame.f_code is self._write:
                self.counts.append(self._count)
                self._count = None


def be_server(name: str, streams: int, tokens: int) -> None:
    """Be one of the servers, until killed; a signal has it say how often its loop has turned, or count calls."""
    from tokenweir import Tokenizer

    tokenizer = Tokenizer.default()
    engine = StepEngine(tokens, lambda text: tokenizer.encode(text))
    gc.freeze()
    selector, calls = CountingSelector(), CallCounter()

    def count_calls() -> None:
        if sys.getprofile() is None:
            sys.setprofile(calls)
        else:
            sys.setprofile(None)
            print(round(statistics.median(calls.counts)), flush=True)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, lambda: print(selector.iterations, flush=True))
        loop.add_signal_handler(signal.SIGUSR2, count_calls)
        await SERVERS[name].run(engine, streams)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(run())


# -- the clients -------------------------------------------------------------------------------------------------------

DELTA = re.compile(rb'"delta":"([^"]*)"')


@dataclass
class Load:
    """What all clients of one run saw.

    Attributes:
        late: Of every frame in the measured time, how late its oldest token was, in seconds.
        tokens: Tokens that arrived in the measured time.

    """

    late: list[float] = field(default_factory=list)
    tokens: int = 0
    begun: int = 0
    ended: int = 0
    measuring: bool = False


class Client(asyncio.Protocol):
    """One stream: asks, reads as cheaply as it can, and compares the arrival with the schedule."""

    def __init__(self, load: Load, sse: bool, tokens: int) -> None:
        self._load = load
        self._sse = sse
        self._tokens = tokens
        self._rest = b""
        self._head = b""
        self._first = 0.0
        self._seen = 0
        self._asked = False
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._answer = json.dumps({"type": "response.create", "input": "Count the streams.", "max_output_tokens": 8000})
        if self._sse:
            body = json.dumps({"input": "Count the streams.", "stream": True})
            transport.write(post(body))
            self._asked = True
        else:
            transport.write(handshake())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        if not self._asked:
            self._rest += data
            if b"\r\n\r\n" not in self._rest:
                return
            if b" 101 " not in self._rest:
                raise SystemExit(f"no websocket: {self._rest[:200]!r}")
            data, self._rest, self._asked = self._rest.partition(b"\r\n\r\n")[2], b"", True
            self._transport.write(masked(self._answer))
        data = self._rest + data
        end = 0
        for found in DELTA.finditer(data):
            end = found.end()
            self._take(found[1], now)
        self._rest = data[end:][-4096:]

    def _take(self, text: bytes, now: float) -> None:
        if not self._first:
            self._head += text
            if b"|" not in self._head:
                return
            head, _, text = self._head.partition(b"|")
            self._first = float(head)
            self._load.begun += 1
            if not text:
                return
        count, wrong = divmod(len(text), len(TOKEN))
        if wrong or text[: len(TOKEN)] != TOKEN.encode():
            raise SystemExit(f"the text is wrong: {text!r}")
        if self._load.measuring:
            self._load.late.append(now - (self._first + self._seen / RATE))
            self._load.tokens += count
        self._seen += count
        if self._seen >= self._tokens:
            self._load.ended += 1
            self._load.measuring = False
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._seen < self._tokens:
            print(f"a stream ended after {self._seen} of {self._tokens} tokens: {error} {self._rest[-300:]!r}")
        self.done.set_result(None)


def cpu_seconds(pid: int) -> float:
    """The CPU time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """The resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def running(name: str, streams: int, tokens: int) -> Iterator[subprocess.Popen[str]]:
    """A server in a process of its own, on a core of its own if there are two."""
    command = [sys.executable, __file__, "--be", name, "--streams", str(streams), "--tokens", str(tokens)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        if (os.cpu_count() or 1) > 1:
            os.sched_setaffinity(process.pid, {0})
            os.sched_setaffinity(0, {1})
        yield process
    finally:
        process.kill()
        process.wait()


def number_from(process: subprocess.Popen[str]) -> int:
    """The next number that a server prints."""
    assert process.stdout is not None
    return int(process.stdout.readline())


def iterations(process: subprocess.Popen[str]) -> int:
    """How often a server's event loop has turned."""
    process.send_signal(signal.SIGUSR1)
    return number_from(process)


async def measure(name: str, streams: int, seconds: float) -> list[str]:
    """One row of the table of streams."""
    opening = streams / 200
    tokens = round((5 * opening + WARM_UP + seconds + 2) * RATE)
    with running(name, streams, tokens) as process:
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


IDLE = 400
"""Connections of which the memory is measured."""


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
        await loop.create_connection(lambda: Client(load, SERVERS[name].sse, tokens), "127.0.0.1", port)
        await asyncio.sleep(1)
        process.send_signal(signal.SIGUSR2)
        await asyncio.sleep(seconds)
        process.send_signal(signal.SIGUSR2)
        calls = number_from(process)
        return [SERVERS[name].name, str(calls), f"{1e3 * statistics.median(requests):.2f}", f"{each:.0f}"]


async def idle_connection(port: int, sse: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that asks for nothing yet; a websocket, but for the server of SSE."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if not sse:
        writer.write(handshake())
        if b" 101 " not in await reader.readuntil(b"\r\n\r\n"):
            raise SystemExit("no websocket")
    return reader, writer


async def one_token_requests(port: int, sse: bool, seconds: float) -> list[float]:
    """Ask for one token again and again; how long each request took."""
    reader, writer = await idle_connection(port, sse)
    asked = json.dumps({"type": "response.create", "input": "Count.", "stream": True, "max_output_tokens": 1})
    request, end = (post(asked), b"0\r\n\r\n") if sse else (masked(asked), b"")
    took = []
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        start = time.monotonic()
        writer.write(request)
        answer = b""
        while not (end and answer.endswith(end)) and not (not end and is_whole(answer)):
            answer += await reader.read(1 << 16)
        took.append(time.monotonic() - start)
    writer.close()
    return took


def is_whole(answer: bytes) -> bool:
    """Whether a websocket has sent all of an answer of one token: tokenweir's last event, or the one of a peer."""
    if b"response.created" in answer:
        return b'"type":"response.incomplete"' in answer and answer.endswith(b"}")
    return answer.endswith(b"}")


def handshake() -> bytes:
    """A request for a websocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    return (
        f"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


def masked(text: str) -> bytes:
    """A text frame of a client, masked by zeros."""
    size = len(text)
    head = (
        struct.pack("!BBH", 0x81, 0x80 | 126, size) if size < 1 << 16 else struct.pack("!BBQ", 0x81, 0x80 | 127, size)
    )
    return head + bytes(4) + text.encode()


def post(body: str) -> bytes:
    """A request for server-sent events."""
    return (
        f"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


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
ONE_HEADER = ["server", "calls from an id to the socket", "request of one token, ms", "idle connection, KB"]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[10, 100, 400, 1000])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS))
    parser.add_argument("--write", action="store_true", help="put the table into bench/RESULTS.md")
    parser.add_argument("--be", choices=SERVERS, help=argparse.SUPPRESS)
    parser.add_argument("--tokens", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = []
    for streams in options.streams:
        for name in options.servers:
            row = await measure(name, streams, options.seconds)
            print("  ".join(row), flush=True)
            rows.append(row)
    ones = []
    for name in options.servers:
        if name != "engine":
            ones.append(await measure_one(name, options.seconds / 2))
            print("  ".join(ones[-1]), flush=True)
    load = f"load average {os.getloadavg()[0]:.1f}"
    text = f"{machine()}, {load}.\n\n{table(HEADER, rows)}\n\nOne connection:\n\n{table(ONE_HEADER, ones)}"
    publish("serve", text, options.write)


if __name__ == "__main__":
    if "--be" in sys.argv:
        own = argparse.ArgumentParser()
        own.add_argument("--be")
        own.add_argument("--streams", type=int)
        own.add_argument("--tokens", type=int)
        chosen = own.parse_args()
        be_server(chosen.be, chosen.streams, chosen.tokens)
    else:
        asyncio.run(main())
