"""The server under attack: a process of its own with default limits, whose event loop measures its own lag.

Its argument is a list in JSON: what `be_server` takes, and milliseconds of CPU time of a turn of the event loop that is
reported; null reports none.

Its models: `steady`, the first, gives each honest stream 50 tokens a second; `quick` answers with one token; `endless` never
stops; `calling` calls a function, token by token; `hostile` is behind the inference server whose port is given. SIGUSR1 has it print its figures as a line of JSON.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import logging
import os
import resource
import signal
import sys
import time
from array import array
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from functools import partial
from itertools import repeat
from typing import Any

from request_shapes import TAGGED
from serving.servers import StepEngine
from turns import WatchedLoop

from tokenweir import ChatTemplate, EngineError, Limits, LlamaServerEngine, Tokenizer, serve
from tokenweir.stream.chat.plan import own_template
from tokenweir.stream.serve.app.memory import prepare_memory

TICK = 0.005
CALL = f"<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>{'b ' * 100}</arg_value>\n</tool_call>"


class Steps:
    """Engine that generates the same steps of ids for each request, with a pause before each."""

    def __init__(self, steps: Iterable[list[int]], pause: float) -> None:
        self._steps = steps
        self._pause = pause

    async def generate(self, prompt_ids: Any, sampling: Any) -> AsyncGenerator[list[int], None]:
        for ids in self._steps:
            await asyncio.sleep(self._pause)
            yield ids


class Lag:
    """Measurement of how late timers are, and of the CPU time of the process between two of them.

    CPU time excludes the time in which other processes have the core.
    """

    def __init__(self) -> None:
        self._late, self._worked = array("d"), array("d")
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time()
        self._spent = time.process_time()
        self._tick()

    def _tick(self) -> None:
        now, spent = self._loop.time(), time.process_time()
        self._late.append(now - self._due)
        self._worked.append(spent - self._spent)
        self._due, self._spent = now + TICK, spent
        self._loop.call_at(self._due, self._tick)

    def take(self) -> dict[str, list[float]]:
        """Return the measurements since the last call, in seconds, as "lag" and "worked", and reset them."""
        taken = {"lag": self._late.tolist(), "worked": self._worked.tolist()}
        self._late, self._worked = array("d"), array("d")
        self._spent = time.process_time()
        return taken


async def be_server(tokens: int, engine_port: int, patience: float) -> None:
    """Run the server until SIGTERM.

    Args:
        tokens: Tokens of an honest stream.
        engine_port: The port of the hostile inference server.
        patience: Most seconds of the limits on requests and reads.

    """
    tokenizer = Tokenizer.default()
    ids, end = tokenizer.encode(" and", add_special_tokens=False), min(tokenizer.eos_ids)
    engines = {
        "steady": StepEngine(tokens, tokenizer.encode),
        "quick": Steps([[*ids, end]], 0),
        "endless": Steps(repeat(ids[:1] * 20), 0.02),
        "calling": Steps([[token_id] for token_id in (*tokenizer.encode(CALL), end)], 0.001),
        "hostile": LlamaServerEngine(f"http://127.0.0.1:{engine_port}", tokenizer),
    }
    limits = Limits(request_timeout=min(20.0, patience), stall_timeout=min(30.0, patience))
    prepare_memory(asyncio.get_running_loop())  # as `tokenweir serve` does
    own = own_template(tokenizer)
    template = ChatTemplate(own.source + TAGGED, special_tokens=own.special_tokens, control_tokens=own.control_tokens)
    async with serve(engine=engines, tokenizer=tokenizer, template=template, port=0, limits=limits) as server:  # type: ignore[arg-type]
        with suppress(EngineError):  # imports httpx, as `tokenweir serve` does when it asks for the model
            await engines["hostile"].served()  # type: ignore[attr-defined]
        lag = Lag()

        def tell() -> None:
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
            figures = {
                **lag.take(),
                "sockets": len(os.listdir("/proc/self/fd")),
                "tasks": len(asyncio.all_tasks()),
            }
            print(json.dumps(figures), flush=True)
            lag.take()  # this took a while itself

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, tell)
        loop.add_signal_handler(signal.SIGTERM, server.close)
        print(server.port, flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    tokens, engine_port, patience, turns = json.loads(sys.argv[1])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    logging.basicConfig(level=logging.CRITICAL)
    factory = None if turns is None else partial(WatchedLoop, turns / 1000)
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(be_server(tokens, engine_port, patience))
