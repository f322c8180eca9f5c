"""What leads from a response to its socket: events are sent in the moment in which they come, without a task.

The broadcast calls when something new is there, in the task of the engine that brought it or by a timer. Nothing is taken
from it while the transport is full, so what waits is merged there, and bounded.
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
from tokenweir.stream.serve.wire.events import LAST_EVENTS, ResponseEvent, encode

logger = logging.getLogger("tokenweir.serve")


class Outbox:
    """Messages to one client, in order.

    Args:
        send: Sends one, as `Transport.send` does.

    Attributes:
        full: Whether the transport takes nothing more at the moment.
        stuck_since: Since when, by `time.monotonic`; infinite while it does.

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
        """Send a message, now or when those before it are sent."""
        if self.full:
            self._left.append(message)
        elif (pending := self._send(message)) is not None:
            self._wait(pending)

    def when_free(self, call: Callable[[], object]) -> None:
        """Call a function, once, when everything is sent."""
        self._freed.append(call)

    async def room(self) -> None:
        """Wait until everything is sent."""
        while self._waiting is not None:
            await asyncio.wait({self._waiting})

    def close(self) -> None:
        """Forget what is not sent."""
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
    """Puts the events of one response into an outbox.

    Args:
        subscription: Where the events come from.
        outbox: Where they go.
        on_last: Called before the last event is sent.
        on_end: Called once, when all is sent, or with why nothing more can be.

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
        """There is something new, or nothing more comes: send it, or see to it that it is sent when there is room."""
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
        except Exception as error:  # this is called by an engine's task and by timers, which serve others too
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
