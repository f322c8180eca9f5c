"""`tokenweir serve --workers N`: processes that serve at one address, kept running and replaced without a lost stream.

Each worker has a listening socket of its own at the address, over which the system spreads new connections; where it does
not, all workers accept from one. The sockets belong to this process, so a connection that comes while a worker is being
replaced waits for the next one.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenweir.encode.base.platform import END_SIGNALS, SPREADS_CONNECTIONS
from tokenweir.stream.serve.answers.cache_salt import installation_secret
from tokenweir.stream.serve.transport.server import listener_at
from tokenweir.stream.serve.workers.peers import Place

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

SIGNALS = (*END_SIGNALS, signal.SIGHUP)
PAUSE = 1.0
"""Seconds before a worker that died is started again."""

_context = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Work:
    """Setup of a worker process of `serve`, besides the command's arguments.

    Attributes:
        place: The worker's place among the workers: its listening socket and how it finds the others.
        parent: Pipe to the parent process. The worker sends the description of its server once that answers. It
            receives a message when it is to end.

    """

    place: Place
    parent: Connection

    def begin(self, about: str, end: Callable[[], object]) -> None:
        """Report to the parent process that the server answers, and wait for the parent's message in a thread.

        Args:
            about: The description of the server, for users.
            end: Called in the thread when the parent asks the worker to end, or has exited.

        """
        self.parent.send(about)

        def wait() -> None:
            with suppress(EOFError, OSError):
                self.parent.recv()
            end()

        threading.Thread(target=wait, daemon=True).start()


def work(arguments: Sequence[str], given: Work) -> None:
    """Run the command `serve` as a worker process; signals are left to the parent process.

    The function does not return: it raises `SystemExit` with the command's exit code when the server has ended.

    Args:
        arguments: The arguments of the command, without its name `serve`.
        given: The worker's setup.

    """
    from tokenweir.cli import main

    for number in SIGNALS:  # terminals and service managers send them to all processes; the parent knows what to do
        signal.signal(number, signal.SIG_IGN)
    main(["serve", *arguments], prog_name="tokenweir", obj=given)


def run(arguments: Sequence[str], *, host: str, port: int, count: int) -> int:
    """Run a server in several worker processes until a signal ends it; return the exit code, 0 if all ended well.

    Workers that die are started again. Raise `OSError` if the port is not available.

    Args:
        arguments: The arguments of `serve` for each worker.
        host: The address to listen on.
        port: The port; 0 lets the system choose one.
        count: The number of workers.

    """
    listeners = [listener_at(host, port, shared=True)]
    if SPREADS_CONNECTIONS:
        listeners += [listener_at(host, listeners[0].getsockname()[1], shared=True) for _ in range(count - 1)]
    else:
        listeners *= count
    with tempfile.TemporaryDirectory(prefix="tokenweir-") as folder:
        try:
            return asyncio.run(_Workers(arguments, listeners, Path(folder)).run())
        finally:
            for listener in listeners:
                listener.close()


class _Worker:
    """A worker process, as the parent process sees it.

    Attributes:
        about: Future of the description of its server; None if the process ended before the server answered.
        ended: Future that is done when the process has ended.
        name: The worker's name among the workers.
        process: The process.

    """

    def __init__(self, arguments: Sequence[str], place: Place) -> None:
        loop = asyncio.get_running_loop()
        self.name = place.name
        self.about: asyncio.Future[str | None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._ending = False
        self._pipe, given = _context.Pipe()
        self.process: SpawnProcess = _context.Process(target=work, args=(arguments, Work(place, given)))
        self.process.start()
        given.close()
        loop.add_reader(self._pipe.fileno(), self._receive_description)
        loop.add_reader(self.process.sentinel, self._over)

    def end(self) -> None:
        """Ask the process, over its pipe, to end after its current answers; a second call kills it."""
        if self._ending:
            self.process.kill()
        self._ending = True
        with suppress(OSError):  # it is gone
            self._pipe.send(None)

    def _receive_description(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pipe.fileno())
        try:
            self.about.set_result(self._pipe.recv() if self._pipe.poll() else None)
        except (EOFError, OSError):
            self.about.set_result(None)

    def _over(self) -> None:
        asyncio.get_running_loop().remove_reader(self.process.sentinel)
        if not self.about.done():  # a pipe is not read any more once it is closed
            self._receive_description()
        self.process.join()
        self._pipe.close()
        self.ended.set_result(None)


class _Workers:
    """The worker processes of a server, which the parent starts, replaces and ends."""

    def __init__(self, arguments: Sequence[str], listeners: Sequence[socket.socket], folder: Path) -> None:
        self._arguments = arguments
        self._listeners = listeners
        self._folder = folder
        self._serving: list[_Worker | None] = [None] * len(listeners)  # worker by listener
        self._running: set[_Worker] = set()
        self._started = 0  # listeners that had a worker which answered; the next ones still wait for their first
        self._stopping = False
        self._code = 0
        self._secret = installation_secret()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changing = asyncio.Lock()

    async def run(self) -> int:
        """Start all processes, wait until all have ended, and return the exit code: 0 if all of them ended well."""
        loop = asyncio.get_running_loop()
        for number in END_SIGNALS:
            loop.add_signal_handler(number, self._stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to replace, and for Python's own helper
        about = None
        for slot in range(len(self._listeners)):  # the first one may have to make what the others use, such as a model
            about = await self._start(slot).about
            if about is None:
                self._stop()
            if self._stopping:
                break
            self._started += 1
        else:
            loop.add_signal_handler(signal.SIGHUP, lambda: self._spawn(self._replace_all()))
            _say(f"{about}{len(self._listeners)} workers share the work.")
        while self._running or self._tasks:
            ends = [worker.ended for worker in self._running]
            await asyncio.wait([*ends, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        return self._code

    def _start(self, slot: int, replaces: str | None = None) -> _Worker:
        """Start a worker process on a listening socket.

        Args:
            slot: The number of the socket.
            replaces: The name of the worker that the new one replaces; None if no worker serves there.

        """
        place = Place(self._listeners[slot], self._folder, secrets.token_hex(4), replaces, self._secret)
        worker = _Worker(self._arguments, place)
        self._running.add(worker)
        worker.ended.add_done_callback(partial(self._ended, slot, worker))
        if replaces is None:
            self._serving[slot] = worker
        return worker

    def _ended(self, slot: int, worker: _Worker, _: object) -> None:
        self._running.discard(worker)
        code = abs(worker.process.exitcode or 0)
        if slot < self._started and not self._stopping:
            self._spawn(self._restart(slot, worker, code))
        else:
            self._code = self._code or code

    async def _restart(self, slot: int, worker: _Worker, code: int) -> None:
        """Start a new worker in place of one that has died, after a pause, unless it has been replaced already.

        Args:
            slot: The number of the worker's listening socket.
            worker: The worker that has died.
            code: Its exit code.

        """
        async with self._changing:
            if self._serving[slot] is not worker:
                return
            _say(f"A worker has died, by exit code {code}; another one takes its place.")
            await asyncio.sleep(PAUSE)
            if not self._stopping:
                self._start(slot)

    async def _replace_all(self) -> None:
        """Replace all workers by new processes, one after the other; keep the old ones if a new one does not start."""
        async with self._changing:
            for slot, old in enumerate(self._serving):
                if self._stopping or old is None:
                    return
                new = self._start(slot, replaces=old.name)
                if await new.about is None:
                    _say("A new worker did not start; the old ones go on.")
                    return
                self._serving[slot] = new
        _say("All workers are replaced; the old ones end when their answers have ended.")

    def _stop(self) -> None:
        """Ask all processes, as by `_Worker.end`, to end after their current answers; a second call kills them."""
        self._stopping = True
        for worker in self._running:
            worker.end()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
