"""Path of events from a response to its socket, without a task of its own.

The broadcast calls back on new events, in the engine's task or by a timer. Nothing is taken from it while the transport
is full, so waiting events are merged and bounded there.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.chat.broadcast import Subscription
from tokenweir.stream.serve.wire.responses.events import LAST_EVENTS, ResponseEvent, encode

logger = logging.getLogger("tokenweir.serve")


class Outbox:
    """Ordered queue of messages to one client; messages wait while the transport's buffer is full.

    Args:
        send: Sends a message; returns an awaitable to await before the next message, or None.

    Attributes:
        full: Whether messages wait because the transport applies backpressure.
        stuck_since: Time of `time.monotonic` at which the backpressure began; infinite without backpressure.

    """

    __slots__ = ("_freed", "_left", "_send", "_waiting", "full", "stuck_since")

    def __init__(self, send: Callable[[bytes], Awaitable[None] | None]) -> None:
        self.full = False
        self.stuck_since = math.inf
        self._send = send
        self._left: deque[bytes] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._freed: list[Callable[[], object]] = []

    def put(self, message: bytes) -> None:
        """Send a message at once, or append it to the queue if messages wait."""
        if self.full:
            self._left.append(message)
        elif (pending := self._send(message)) is not None:
            self._wait(pending)

    def when_free(self, call: Callable[[], object]) -> None:
        """Call a function, once, when the backpressure has ended and all queued messages are sent."""
        self._freed.append(call)

    async def room(self) -> None:
        """Wait until the backpressure has ended and all queued messages are sent."""
        while self._waiting is not None:
            await asyncio.wait({self._waiting})

    def close(self) -> None:
        """Drop the queued messages and the callbacks of `when_free`."""
        self._left.clear()
        self._freed.clear()
        if self._waiting is not None:
            self._waiting.cancel()

    def _wait(self, pending: Awaitable[None]) -> None:
        self.full, self.stuck_since = True, monotonic()
        self._waiting = asyncio.ensure_future(pending)
        self._waiting.add_done_callback(self._go_on)

    def _go_on(self, sent: asyncio.Future[None]) -> None:
        self._waiting, self.full, self.stuck_since = None, False, math.inf
        if not sent.cancelled() and (error := sent.exception()) is not None:
            logger.error("a message could not be sent", exc_info=error)
        while self._left and not self.full:
            self.put(self._left.popleft())
        while self._freed and not self.full:
            self._freed.pop(0)()


class Sender:
    """Sends the events of one response to an outbox as they come, until the response ends.

    Args:
        subscription: The reader of the response's events.
        outbox: The queue to the client.
        on_last: Called before the last event is sent.
        on_end: Called once: with None when everything is sent, or with the error that prevents it.

    """

    __slots__ = ("_blocked", "_ended", "_on_end", "_on_last", "_outbox", "_subscription")

    def __init__(
        self,
        subscription: Subscription[ResponseEvent],
        outbox: Outbox,
        *,
        on_last: Callable[[], object],
        on_end: Callable[[Exception | None], object],
    ) -> None:
        self._subscription = subscription
        self._outbox = outbox
        self._on_last = on_last
        self._on_end = on_end
        self._blocked = self._ended = False
        subscription.listen(self._tell)
        self._tell()

    def _tell(self) -> None:
        """Send the events that are ready, or do so once the outbox has room; called on new events and at the end."""
        subscription, outbox = self._subscription, self._outbox
        if self._ended:
            return
        try:
            while True:
                if outbox.full:
                    if not self._blocked:
                        self._blocked = True
                        outbox.when_free(self._free)
                    return
                if not (events := subscription.take_now()):
                    break
                for event in events:
                    if isinstance(event, LAST_EVENTS):
                        self._on_last()
                    outbox.put(encode(event))
                if not subscription.ready:
                    return
        except DeliveryError as error:
            self._end(error)
        except Exception as error:  # callers are an engine's task and timers, which serve other readers too
            logger.exception("events could not be sent")
            self._end(error)
        else:
            if subscription.ended:
                self._end(None)

    def _free(self) -> None:
        self._blocked = False
        self._tell()

    def _end(self, why: Exception | None) -> None:
        self._ended = True
        self._on_end(why)
