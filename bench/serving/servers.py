"""The servers of `bench/serving/serve.py`, and the engine that feeds them: each is a process of its own.

python bench/serving/servers.py NAME --streams N --tokens N
"""

from __future__ import annotations

import argparse
import asyncio
import json
import selectors
import signal
import statistics
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

RATE = 50
"""Tokens a second and stream."""
TICK = 0.001
TEMPLATE: str | None = None
"""The chat template of tokenweir's server, if it is not the vocabulary's own."""
TOKEN = " and"


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
    """The queue of one stream."""

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


NOBODY: dict[str, Any] = {"output_index": 0, "item_id": "msg_0123456789abcdef0123456789abcdef"}


def text_events(engine: StepEngine, decode: Callable[[list[int]], str]) -> Callable[..., AsyncGenerator[bytes, None]]:
    """Return a handler that streams as the peers do: one event for each chunk of ids, encoded as tokenweir does."""
    from tokenweir.stream.serve.wire.responses.events import OutputTextDelta, encode

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
    from tokenweir import ChatTemplate, Limits, Tokenizer, serve

    most = streams + 10
    limits = Limits(
        max_connections=most,
        max_connections_per_client=most,
        max_generations=most,
        max_generations_per_client=most,
        max_waiting=most,
    )
    tokenizer = Tokenizer.default()
    template = None if TEMPLATE is None else ChatTemplate.from_file(TEMPLATE)
    async with serve(engine=engine, tokenizer=tokenizer, template=template, port=0, limits=limits) as server:  # type: ignore[arg-type]
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
    """Return the number of chunks of a request: 1 if it asks for one token, otherwise None, which is all."""
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
    """Selector that counts the iterations of the event loop: one `select` each."""

    iterations = 0

    def select(self, timeout: float | None = None) -> Any:
        self.iterations += 1
        return super().select(timeout)


WRAPPED_VALUE = "async_generator_wrapped_value"
"""Name of the type in which an async generator wraps a yielded value. Its awaits give futures instead."""


class CallCounter:
    """Counts the Python functions that are called from an item that the engine gives until the transport writes."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self._count: int | None = None
        self._given = StepEngine.generate.__code__
        self._write = asyncio.selector_events._SelectorSocketTransport.write.__code__  # type: ignore[attr-defined]

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event == "return" and frame.f_code is self._given and type(argument).__name__ == WRAPPED_VALUE:
            self._count = 0
        elif event == "call" and self._count is not None:
            self._count += 1
            if frame.f_code is self._write:
                self.counts.append(self._count)
                self._count = None


def be_server(name: str, streams: int, tokens: int) -> None:
    """Be one of the servers, until killed; a signal has it say how often its loop has turned, or count calls."""
    from tokenweir import Tokenizer
    from tokenweir.stream.serve.app.memory import prepare_memory

    tokenizer = Tokenizer.default()
    engine = StepEngine(tokens, lambda text: tokenizer.encode(text))
    selector, calls = CountingSelector(), CallCounter()

    def count_calls() -> None:
        if sys.getprofile() is None:
            sys.setprofile(calls)
        else:
            sys.setprofile(None)
            print(round(statistics.median(calls.counts)), flush=True)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        prepare_memory(loop)  # as `tokenweir serve` does; the peers have it too
        loop.add_signal_handler(signal.SIGUSR1, lambda: print(selector.iterations, flush=True))
        loop.add_signal_handler(signal.SIGUSR2, count_calls)
        await SERVERS[name].run(engine, streams)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(run())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Be a server, until killed; the first line that it prints is its port."
    )
    parser.add_argument("name", choices=SERVERS)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--tokens", type=int, required=True, help="of a stream")
    parser.add_argument("--template", help="a chat template, for tokenweir")
    options = parser.parse_args()
    TEMPLATE = options.template
    be_server(options.name, options.streams, options.tokens)
