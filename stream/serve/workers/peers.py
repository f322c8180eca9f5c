"""Requests between the workers of one server, over unix sockets in a folder of the server.

A client's connection belongs to one worker, and most requests need no other. To continue or resume a response, a
request names it, and the response's id names its worker. The worker that has the connection forwards the request to the
worker that has the response, and relays the answer.

A replaced worker closes its listener, which its successor shares, finishes its answers, and hands its conversations and
counts to the successor. The path of its socket then leads to the successor.

Messages are length-prefixed JSON. Only the owner can open the folder, so no other user can send requests.
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
from tokenweir.stream.serve.wire.responses.response_object import Item
from tokenweir.stream.serve.wire.shared.ids import ITEMS, worker_of

logger = logging.getLogger("tokenweir.serve")

ANSWER_TIMEOUT = 5.0
"""Timeout in seconds of a request between workers."""
HIGH_WATER_MARK = 1 << 18
"""High-water mark in bytes of a connection between workers."""


@dataclass(frozen=True)
class Place:
    """One process's place among the worker processes of a server.

    Attributes:
        listener: The socket for clients, which listens already.
        folder: The folder of the workers' unix sockets, accessible to the owner only.
        name: The worker's name, which is also that of its unix socket.
        replaces: The name of the worker that this one replaces; None if it replaces no other.
        secret: A secret that all workers share, for the cache salts; see `make_secret`.

    """

    listener: socket.socket
    folder: Path
    name: str
    replaces: str | None = None
    secret: bytes | None = None


class Question(Struct, tag_field="ask", frozen=True):
    """Base of the requests that one worker sends to another."""


class Converse(Question, tag="session", frozen=True):
    """Request that opens a session: all messages after it are those of the client's websocket."""

    client: str


class FetchConversation(Question, tag="conversation", frozen=True):
    """Request for the messages up to and including a response; the answer is JSON, empty for an unknown response."""

    client: str
    response_id: str


class Items(Question, tag="items", frozen=True):
    """Request for output items of stored answers by their ids; the answer is a JSON list of those that are known."""

    client: str
    item_ids: list[str]


class Delete(Question, tag="delete", frozen=True):
    """Request to delete a response; the answer is empty for an unknown response."""

    client: str
    response_id: str


class Count(Question, tag="count", frozen=True):
    """Request for the worker's metrics counters; the answer is a `Counts` as JSON."""


class Retire(Question, tag="retire", frozen=True):
    """Request to stop listening and later hand the state over to the worker `successor`, which already listens."""

    successor: str


class Adopt(Question, tag="adopt", frozen=True):
    """Request to take over the state of the worker `name`, which ends; it is answered when that is done.

    The conversations are tuples of client, response id, messages as JSON, and output items.
    """

    name: str
    conversations: list[tuple[str, str, bytes, list[Item]]]
    counts: Counts


_questions = msgspec.json.Decoder(Converse | FetchConversation | Items | Delete | Count | Retire | Adopt)


class Link:
    """A connection to another worker that carries messages with a length prefix; also the `Transport` of a session."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> str | None:
        data = await self.read()
        return None if data is None else data.decode()

    async def read(self) -> bytes | None:
        """Return the next message, without its length prefix; None once the other side is gone."""
        try:
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def send(self, data: bytes) -> Awaitable[None] | None:
        self._writer.write(len(data).to_bytes(4, "big") + data)
        if self._writer.transport.get_write_buffer_size() < HIGH_WATER_MARK:
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
    """Exchange of requests with the other workers of a server, as client and as server.

    Args:
        place: This process's place.
        responses: The responses that other workers may ask for.
        retire: Called when another worker takes this one's place.

    """

    def __init__(self, place: Place, responses: Responses, retire: Callable[[], object]) -> None:
        self._place = place
        self._responses = responses
        self._retire = retire
        self._successor: str | None = None
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()
        responses.service.worker = place.name
        responses.service.peers = self

    async def listen(self) -> None:
        """Start to answer other workers, and ask the worker that this one replaces, if any, to retire."""
        place = self._place
        self._server = await asyncio.start_unix_server(self._accept, self._path(place.name))
        if place.replaces is not None:
            await self._ask(place.replaces, Retire(place.name))

    async def conversation(self, response_id: str, client: str) -> bytes | None:
        """Return the messages up to and including another worker's response, as JSON; None for an unknown response."""
        owner = self._owner(response_id)
        return None if owner is None else await self._ask(owner, FetchConversation(client, response_id)) or None

    async def items(self, item_ids: list[str], client: str) -> dict[str, Item]:
        """Return output items of stored answers that other workers have, by their ids; unknown ids are left out."""
        by_owner: dict[str, list[str]] = {}
        for item_id in item_ids:
            if (owner := worker_of(item_id, ITEMS)) not in (None, self._place.name):
                by_owner.setdefault(owner, []).append(item_id)
        answers = await asyncio.gather(*(self._ask(owner, Items(client, ids)) for owner, ids in by_owner.items()))
        found = [msgspec.json.decode(answer, type=list[Item]) for answer in answers if answer]
        return {item.id: item for items in found for item in items}

    async def delete(self, response_id: str, client: str) -> bool:
        """Delete a response that another worker has, and stop it if it runs: see `PeerLinks.delete`."""
        owner = self._owner(response_id)
        return owner is not None and bool(await self._ask(owner, Delete(client, response_id)))

    async def converse(self, response_id: str, client: str) -> Link | None:
        """Return a connection to the worker that has the response, on which its events can be read.

        None if that is this worker, or a worker that is gone.
        """
        owner = self._owner(response_id)
        link = None if owner is None else await self._connect(owner)
        if link is not None:
            link.send(msgspec.json.encode(Converse(client)))
        return link

    async def counts(self) -> list[Counts]:
        """Return the metrics counters of all other workers that answer."""
        names = {path.resolve().name for path in self._place.folder.iterdir()} - {self._place.name}
        answers = await asyncio.gather(*(self._ask(name, Count()) for name in sorted(names)))
        return [msgspec.json.decode(answer, type=Counts) for answer in answers if answer is not None]

    async def close(self) -> None:
        """Send the state to the successor, if there is one, and stop answering other workers."""
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
        """Send a request to the worker `name` and return its answer; None if the worker is gone or too slow."""
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
            case FetchConversation(client, response_id):
                found = service.conversations.find(client, response_id)
                await link.write(found or b"")
            case Items(client, item_ids):
                known = [service.conversations.item(client, item_id) for item_id in item_ids]
                await link.write(msgspec.json.encode([item for item in known if item is not None]))
            case Delete(client, response_id):
                await link.write(b"true" if self._responses.drop(response_id, client) else b"")
            case Count():
                link.send(msgspec.json.encode(service.counts()))
            case Retire(successor):
                self._successor = successor
                self._retire()
                link.send(b"true")
            case Adopt(name, conversations, counts):
                for client, response_id, data, items in conversations:
                    service.conversations.keep(client, response_id, data, items=items)
                service.metrics.add(counts)
                self._take(name)
                link.send(b"true")
            case _:
                raise AssertionError(question)

    def _take(self, name: str) -> None:
        """Make the socket path of the worker `name` a symbolic link to this worker's socket."""
        pending = self._path(f"{name}.new")
        pending.symlink_to(self._place.name)
        pending.rename(self._path(name))
