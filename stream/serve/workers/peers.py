"""Several workers of one server: what one of them is asked by the others, over unix sockets in a folder of the server.

A connection of a client is with one worker for as long as it lasts, and most requests need nothing of the others. Those
that do name a response, whose id names its worker: to continue its conversation, or to resume it. The worker that has
the connection asks the one that has the response, and hands on what it gets.

A worker that is replaced closes its listener, which its successor has too, lets what is in flight end, and leaves its
conversations and counts to its successor. The path of its socket then leads there.

Messages are JSON with their length before them. The folder is open to its owner alone, so nobody else can ask.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from tokenweir.stream.serve.answers.response_task import Responses
from tokenweir.stream.serve.monitoring.metrics import Counts
from tokenweir.stream.serve.sockets.session import Session
from tokenweir.stream.serve.wire.items import worker_of

logger = logging.getLogger("tokenweir.serve")

ANSWER_TIMEOUT = 5.0
"""Seconds that a worker gets to answer another one."""
UNSENT = 1 << 18
"""Bytes that may wait in a connection between workers before its sender does."""


@dataclass(frozen=True)
class Place:
    """A process's place among the workers of a server.

    Attributes:
        listener: The socket, which listens already.
        folder: Where the workers' sockets are; nobody else may read it.
        name: This worker's name: letters and digits.
        replaces: The name of the worker whose place it takes.

    """

    listener: socket.socket
    folder: Path
    name: str
    replaces: str | None = None


class Question(Struct, tag_field="ask", frozen=True):
    """What one worker asks of another."""


class Converse(Question, tag="session", frozen=True):
    """The messages that follow are those of a client's websocket."""

    client: str


class Conversation(Question, tag="conversation", frozen=True):
    """The conversation up to and with a response; the answer is empty if it is unknown."""

    client: str
    response_id: str


class Count(Question, tag="count", frozen=True):
    """What the worker has counted."""


class Retire(Question, tag="retire", frozen=True):
    """Leave the place to this worker, which listens."""

    successor: str


class Adopt(Question, tag="adopt", frozen=True):
    """Take over what the worker of this name leaves; the answer comes when that is done."""

    name: str
    conversations: list[tuple[str, str, bytes]]
    counts: Counts


_questions = msgspec.json.Decoder(Converse | Conversation | Count | Retire | Adopt)


class Link:
    """A connection between two workers, which can carry a session.

    Args:
        reader: Its one half.
        writer: Its other half.

    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> str | None:
        data = await self.read()
        return None if data is None else data.decode()

    async def read(self) -> bytes | None:
        """The next message; None once the other side is gone."""
        try:
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def send(self, data: bytes) -> Awaitable[None] | None:
        self._writer.write(len(data).to_bytes(4, "big") + data)
        if self._writer.transport.get_write_buffer_size() < UNSENT:
            return None
        return self._drain()

    async def write(self, data: bytes) -> None:
        """Send a message, and wait until there is room for another one."""
        if (full := self.send(data)) is not None:
            await full

    async def _drain(self) -> None:
        with suppress(ConnectionError):
            await self._writer.drain()

    async def close(self, code: int = 0, reason: str = "") -> None:
        self._writer.close()
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await self._writer.wait_closed()


class Peers:
    """The other workers of a server, and what they ask of this one.

    Args:
        place: This worker's.
        responses: Its responses.
        retire: Called when another worker takes its place.

    """

    def __init__(self, place: Place, responses: Responses, retire: Callable[[], object]) -> None:
        self._place = place
        self._responses = responses
        self._retire = retire
        self._successor: str | None = None
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()
        responses.service.worker = place.name
        responses.service.elsewhere = self

    async def listen(self) -> None:
        """Answer the others from now on, and take the place of the worker that this one replaces."""
        place = self._place
        self._server = await asyncio.start_unix_server(self._accept, self._path(place.name))
        if place.replaces is not None:
            await self._ask(place.replaces, Retire(place.name))

    async def conversation(self, response_id: str, client: str) -> bytes | None:
        """The conversation up to and with another worker's response, as JSON; None if it is unknown."""
        owner = self._owner(response_id)
        return None if owner is None else await self._ask(owner, Conversation(client, response_id)) or None

    async def converse(self, response_id: str, client: str) -> Link | None:
        """A session with the worker that has a response; None if it is this one, or gone."""
        owner = self._owner(response_id)
        link = None if owner is None else await self._connect(owner)
        if link is not None:
            link.send(msgspec.json.encode(Converse(client)))
        return link

    async def counts(self) -> list[Counts]:
        """What the other workers have counted."""
        names = {path.resolve().name for path in self._place.folder.iterdir()} - {self._place.name}
        answers = await asyncio.gather(*(self._ask(name, Count()) for name in sorted(names)))
        return [msgspec.json.decode(answer, type=Counts) for answer in answers if answer is not None]

    async def close(self) -> None:
        """Leave what is there to the successor, if there is one, and answer nobody any more."""
        place = self._place
        if self._successor is not None:
            service = self._responses.service
            adopt = Adopt(place.name, service.conversations.all(), service.counts())
            if await self._ask(self._successor, adopt) is None:
                logger.error("worker %s: its successor is gone, and so are its conversations", place.name)
        if self._server is not None:
            self._server.close()
        for task in self._answering:
            task.cancel()
        if self._answering:
            await asyncio.wait(self._answering)

    def _owner(self, response_id: str) -> str | None:
        owner = worker_of(response_id)
        return None if owner == self._place.name else owner

    def _path(self, name: str) -> Path:
        return self._place.folder / name

    async def _connect(self, name: str) -> Link | None:
        try:
            return Link(*await asyncio.open_unix_connection(self._path(name)))
        except OSError:  # it is gone
            return None

    async def _ask(self, name: str, question: Question) -> bytes | None:
        """Ask for one answer; None if the worker is gone or too slow."""
        if (link := await self._connect(name)) is None:
            return None
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await link.write(msgspec.json.encode(question))
                return await link.read()
        except TimeoutError:
            logger.error("worker %s did not answer within %g s", name, ANSWER_TIMEOUT)
            return None
        finally:
            await link.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        link = Link(reader, writer)
        try:
            if (data := await link.read()) is not None:
                await self._answer(_questions.decode(data), link)
        except asyncio.CancelledError:
            pass  # by `close`
        except Exception:
            logger.exception("another worker's question could not be answered")
        finally:
            self._answering.discard(task)
            await link.close()

    async def _answer(self, question: Question, link: Link) -> None:
        service = self._responses.service
        match question:
            case Converse(client):
                await Session(link, self._responses, client=client).run()
            case Conversation(client, response_id):
                found = service.conversations.find(client, response_id)
                await link.write(found or b"")
            case Count():
                link.send(msgspec.json.encode(service.counts()))
            case Retire(successor):
                self._successor = successor
                self._retire()
                link.send(b"true")
            case Adopt(name, conversations, counts):
                for client, response_id, data in conversations:
                    service.conversations.keep(client, response_id, data)
                service.metrics.add(counts)
                self._take(name)
                link.send(b"true")
            case _:
                raise AssertionError(question)

    def _take(self, name: str) -> None:
        """Let the path of another worker lead here."""
        pending = self._path(f"{name}.new")
        pending.symlink_to(self._place.name)
        pending.rename(self._path(name))
