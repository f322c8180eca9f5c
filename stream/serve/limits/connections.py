"""Sockets, counted from the moment they are accepted, and the bytes that their clients have not taken.

A socket belongs to its address until a request on it names a client, and again once that answer is flushed. So silent
clients and clients that read no answers are counted as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

from tokenweir.stream.serve.limits.admission import Admission, too_many
from tokenweir.stream.serve.limits.budget import ByteBudget
from tokenweir.stream.serve.limits.limits import Limits

SPARE_CONNECTIONS = 64
"""Number of connections above the limit that still get an error answer."""


class Disconnected(Exception):
    """The client has disconnected; no answer can be sent."""


class Connections:
    """The open sockets of a server, with limits on their number and on the bytes they hold.

    Sockets above a limit are reset; `accept` and `ByteBudget` say which.

    Args:
        limits: The limits.
        admission: Counts connections of clients.
        aborted: Called with the reason for each socket that is reset.

    Attributes:
        count: Number of open sockets.
        idle: Number of open sockets without a client: silent ones, idle ones, and those between two requests.
        incoming: The `ByteBudget` of requests that are arriving; its `held` is the number of bytes.
        outgoing: The `ByteBudget` of answers that wait for slow readers; its `held` is the number of bytes.

    """

    def __init__(self, limits: Limits, admission: Admission, aborted: Callable[[str], object]) -> None:
        self.limits = limits
        self.aborted = aborted
        self.count = self.idle = 0
        self.incoming = ByteBudget(limits.max_incoming_bytes_per_client, limits.max_incoming_bytes, "incoming_bytes")
        self.outgoing = ByteBudget(limits.max_outgoing_bytes_per_client, limits.max_outgoing_bytes, "unread_bytes")
        self._admission = admission
        self._idle: dict[str, dict[Connection, None]] = {}  # by address, the oldest first

    def accept(self, transport: asyncio.Transport, address: str) -> Connection | None:
        """Count a new socket and return its `Connection`, or reset the socket and return None.

        The new socket is reset if its address already has as many idle sockets as the limit per address. If the server
        is full, the address with most idle sockets has its oldest one reset; but the new socket is reset if no other
        address has more of them than its own.

        Args:
            transport: The transport of the new socket.
            address: The client name of its network address.

        """
        limits, own = self.limits, len(self._idle.get(address, ()))
        if own >= (limits.max_connections_per_address or limits.max_connections_per_client):
            self._reset(transport, "address_limit")
            return None
        if self.count >= limits.max_connections + SPARE_CONNECTIONS:
            most = max(self._idle.values(), key=len, default={})
            if len(most) <= own:
                self._reset(transport, "connection_limit")
                return None
            next(iter(most)).abort("connection_limit")
        return Connection(self, transport, address)

    def make_room(self) -> bool:
        """Reset the oldest idle socket of the address with most idle sockets; return False if no socket is idle."""
        most = max(self._idle.values(), key=len, default=None)
        if most is not None:
            next(iter(most)).abort("descriptor_limit")
        return most is not None

    def _reset(self, transport: asyncio.Transport, reason: str) -> None:
        self.aborted(reason)
        transport.abort()

    def connect(self, client: str) -> Callable[[], None]:
        """Take a place for a client's request and return the function that frees it.

        Raise `RequestError` as `Admission.connect`, and if the client has left too many bytes of earlier answers
        unread.
        """
        if not self.outgoing.has_room(client, self.limits.max_answer_bytes):
            raise too_many("bytes of unread answers", self.limits.max_outgoing_bytes_per_client)
        return self._admission.connect(client)

    def mark_idle(self, connection: Connection) -> None:
        """Count a connection as idle, for its address."""
        self.idle += 1
        self._idle.setdefault(connection.address, {})[connection] = None

    def unmark_idle(self, connection: Connection) -> None:
        """Stop counting a connection as idle."""
        here = self._idle[connection.address]
        del here[connection]
        if not here:
            del self._idle[connection.address]
        self.idle -= 1


class Connection:
    """One open socket, with the bytes and the places that it holds.

    Attributes:
        address: The name that its network address has as a client.
        client: The name of the client it counts for: that of its request, or `address` between requests.

    """

    def __init__(self, connections: Connections, transport: asyncio.Transport, address: str) -> None:
        self.address = self.client = address
        self._all = connections
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._places = 0
        self._open = True
        self._calls: list[Callable[[], object]] = []
        self._timer: asyncio.TimerHandle | None = None  # while an answer that is complete is flushed
        self._moved_at = 0.0
        self._turn: asyncio.Future[bool] | None = None  # for which a request of it waits
        connections.count += 1
        connections.mark_idle(self)

    def take(self, client: str) -> Callable[[], None]:
        """Take a place for a client's request; return a function that frees it once all written bytes are flushed.

        Raises `RequestError` as `Connections.connect`.
        """
        free = self._all.connect(client)
        if self._open:
            if not self._places:
                self._all.unmark_idle(self)
            self._places += 1
            self._belong(client)
            free = partial(self._free, free)
        return partial(self.when_flushed, free)

    def _free(self, free: Callable[[], object]) -> None:
        free()
        self._places -= 1
        if not self._places and self._open:
            self._belong(self.address)
            self._all.mark_idle(self)

    def _belong(self, client: str) -> None:
        budgets = (self._all.incoming, self._all.outgoing)
        sizes = [budget.of(self) for budget in budgets]
        for budget in budgets:
            budget.hold(self, 0)
        self.client = client
        for budget, size in zip(budgets, sizes, strict=True):
            budget.hold(self, size)

    def arrive(self, size: int) -> None:
        """Set the number of bytes of the arriving request that the server holds; 0 when it has been read."""
        if self._open:
            self._all.incoming.hold(self, size)

    def has_room(self, size: int) -> bool:
        """Return whether the client may send `size` more bytes without exceeding its limit of incoming bytes."""
        return self._all.incoming.has_room(self.client, size)

    async def until(self, turn: asyncio.Future[bool]) -> None:
        """Wait for a turn, a future of `InputTurns` whose result is False if the socket was closed before.

        Raise `Disconnected` in that case.
        """
        self._turn = turn
        if not self._open:
            self._drop_turn()
        if not await turn:
            raise Disconnected

    def when_flushed(self, call: Callable[[], object]) -> None:
        """Call a function once: when all written bytes are flushed, perhaps now, or the client has disconnected."""
        self.flush()
        if self._timer is None:
            call()
        else:
            self._calls.append(call)

    def flush(self) -> None:
        """Start the stall timeout for the bytes of a complete answer that are not flushed yet."""
        if self._timer is None and self._open and self._transport.get_write_buffer_size():
            self._moved_at = self._loop.time()
            self._later()
            # With zero water marks the transport pauses writing now and resumes once the buffer is empty.
            self._transport.set_write_buffer_limits(0)
            self.pause()

    def pause(self) -> None:
        """Count the unsent bytes as outgoing; called when the transport pauses writing."""
        if self._open:
            self._all.outgoing.hold(self, self._transport.get_write_buffer_size())

    def resume(self) -> None:
        """Stop counting unsent bytes; called when the transport resumes writing."""
        if self._open:
            self._all.outgoing.hold(self, 0)
        if self._timer is not None and not self._transport.get_write_buffer_size():
            if not self._transport.is_closing():
                self._transport.set_write_buffer_limits()
            self._settle()

    def abort(self, reason: str) -> None:
        """Reset the socket, which frees its buffers at once, and report `reason` to the metrics."""
        if self._open:
            self._all.aborted(reason)
            self.close()
        self._transport.abort()

    def close(self) -> None:
        """Release what is counted for a socket that is closed, and run the callbacks of `when_flushed`."""
        if self._open:
            self._all.incoming.hold(self, 0)
            self._all.outgoing.hold(self, 0)
            self._open = False
            self._all.count -= 1
            if not self._places:
                self._all.unmark_idle(self)
        self._drop_turn()
        self._settle()

    def _drop_turn(self) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(False)
        self._turn = None

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        calls, self._calls = self._calls, []
        for call in calls:
            call()

    def _later(self) -> None:
        self._timer = self._loop.call_later(self._all.limits.stall_timeout / 4, self._watch)

    def _watch(self) -> None:
        now, size = self._loop.time(), self._transport.get_write_buffer_size()
        if size < self._all.outgoing.of(self):
            self._moved_at = now
            self._all.outgoing.hold(self, size)
        elif now - self._moved_at >= self._all.limits.stall_timeout:
            self.abort("stalled")
            return
        self._later()


CONNECTION: ContextVar[Connection | None] = ContextVar("connection", default=None)
"""The connection of the current task's request; None under other ASGI servers."""
