"""One client's conversation: the Responses protocol over any transport that carries text messages both ways.

The session knows neither sockets nor engines: it is given a `Transport` and the responses of its server. A connection
without a response has one task, which reads; a response adds one that sends its events. What is to happen after a time is
a timer, which costs nothing meanwhile. A `send` is never cancelled while the connection is open: a stalled one ends by
closing the connection. It runs under asyncio, as everything of the server does (see `generation.py`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Protocol

import msgspec

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.delivery.broadcast import Subscription
from tokenweir.stream.server.response_task import Responses, ResponseTask
from tokenweir.stream.server.wire.errors import RequestError, error_detail
from tokenweir.stream.server.wire.events import LAST_EVENTS, ErrorEvent, Heartbeat, ResponseEvent, ServerEvent, encode
from tokenweir.stream.server.wire.messages import ChatMessage
from tokenweir.stream.server.wire.requests import ResponseCancel, ResponseCreate, ResponseResume, parse_event

NORMAL = 1000
GOING_AWAY = (1001, "the server is shutting down")
POLICY_VIOLATION = 1008


class Transport(Protocol):
    """A connection that carries messages."""

    async def receive(self) -> str | bytes | None:
        """The next message, a text frame as `str` and a binary one as `bytes`; None once the connection is gone."""
        ...

    async def send(self, data: bytes) -> None:
        """Send a text frame of UTF-8, whole, though several tasks may send; no effect once the connection is gone."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """End the connection, by force if the other side does not go along."""
        ...


class Session:
    """One connection: `run()` until the client is gone.

    Args:
        transport: The connection.
        responses: What answers, and the responses of other connections, which this one may resume.
        client: Who is at the other end; only the same client may resume a response.
        heartbeat: Whether to send heartbeats.

    """

    def __init__(
        self, transport: Transport, responses: Responses, *, client: str = "", heartbeat: bool = False
    ) -> None:
        self._transport = transport
        self._responses = responses
        self._service = responses.service
        self._limits = responses.service.limits
        self._client = client
        self._heartbeat = heartbeat
        self._current: ResponseTask | None = None  # the one whose events are being sent
        self._subscription: Subscription[ResponseEvent] | None = None
        self._last: tuple[str, list[ChatMessage]] | None = None  # what previous_response_id can always continue
        self._draining = False
        self._running = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._sending_since = math.inf
        self._idle_since = math.inf

    async def run(self) -> None:
        """Serve the client until the connection is gone; then the engine is stopped, or abandoned, before this returns.

        A response in the background goes on for the grace period.
        """
        self._running = True
        self._idle_since = monotonic()
        self._watch()
        if self._draining:
            self._spawn(self._transport.close(*GOING_AWAY))
        if self._heartbeat:
            self._later("beat", self._limits.heartbeat, self._beat)
        try:
            while (message := await self._transport.receive()) is not None:
                self._idle_since = monotonic()
                await self._receive(message)
        finally:
            self._running = False
            for timer in self._timers.values():
                timer.cancel()
            self._leave()
            current = self._current
            if current is not None and not current.background:
                current.generation.drop()
            tasks = [task for task in self._tasks if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
        if current is not None and not current.background:
            await current.generation.ended.wait()

    def drain(self) -> None:
        """Take no more requests, and close the connection once no response is in flight."""
        self._draining = True
        if self._current is None and self._running:
            self._spawn(self._transport.close(*GOING_AWAY))

    async def close(self) -> None:
        """Close the connection now, since the server goes away."""
        await self._transport.close(*GOING_AWAY)

    async def _receive(self, message: str | bytes) -> None:
        try:
            match parse_event(message, max_items=self._limits.max_items):
                case ResponseCreate() as request:
                    self._check_free()
                    self._follow(self._responses.create(request, self._client, self._last), 0)
                case ResponseResume() as request:
                    self._check_free()
                    start = 0 if request.starting_after is None else request.starting_after + 1
                    self._follow(self._responses.find(request.response_id, self._client), start)
                case ResponseCancel() as cancel:
                    self._cancel(cancel)
        except RequestError as error:
            self._service.metrics.refuse(error.code)
            await self._send(ErrorEvent(error_detail(error), error.status))

    def _check_free(self) -> None:
        if self._draining:
            raise RequestError("the server is shutting down", code="server_shutting_down", status=503)
        if self._current is not None:
            raise RequestError(
                f"response {self._current.stream.id} is in flight; a connection carries one at a time",
                code="conversation_already_has_active_response",
            )

    def _follow(self, current: ResponseTask, start: int) -> None:
        try:
            self._subscription = current.subscribe(start)
        except (DeliveryError, ValueError) as error:
            code = error.outcome if isinstance(error, DeliveryError) else "invalid_value"
            raise RequestError(f"starting_after={start - 1}: {error}", code=code, param="starting_after") from error
        self._current = current
        self._spawn(self._send_events(current, self._subscription))

    def _cancel(self, cancel: ResponseCancel) -> None:
        if self._current is None or cancel.response_id not in (None, self._current.stream.id):
            wanted = "" if cancel.response_id is None else f" {cancel.response_id[:80]!r}"
            raise RequestError(f"no response{wanted} is in flight", code="response_not_in_flight", param="response_id")
        self._current.generation.cancel()

    async def _send_events(self, current: ResponseTask, subscription: Subscription[ResponseEvent]) -> None:
        """Send the events of one response as they come."""
        try:
            with subscription:
                while events := await subscription.take():
                    subscription.interval = self._service.interval
                    for event in events:
                        if isinstance(event, LAST_EVENTS):  # the client's next request may follow it at once
                            self._keep(current)
                            self._current = None
                        await self._send(event)
        except DeliveryError as error:
            if self._draining:
                await self._transport.close(*GOING_AWAY)
            else:
                self._service.metrics.cut_off += 1
                await self._transport.close(POLICY_VIOLATION, str(error))
            return
        self._idle_since = monotonic()
        if self._draining:
            await self._transport.close(*GOING_AWAY)

    def _leave(self) -> None:
        if self._subscription is not None:
            self._subscription.close()

    def _keep(self, current: ResponseTask) -> None:
        """Remember the conversation for `previous_response_id`; a failed response leaves the one before it."""
        if current.stream.status == "failed":
            return
        messages = current.conversation()
        fits = len(msgspec.json.encode(messages)) <= self._limits.max_message_bytes
        self._last = (current.stream.id, messages) if fits else None

    async def _send(self, event: ServerEvent) -> None:
        if self._sending_since == math.inf:
            self._sending_since = monotonic()
        await self._transport.send(encode(event))
        self._sending_since = math.inf

    def _watch(self) -> None:
        """Close the connection when an event cannot be sent, or no request comes, for too long."""
        stall, idle = self._limits.stall_timeout, self._limits.idle_timeout
        now = monotonic()
        if now - self._sending_since >= stall:
            self._service.metrics.cut_off += 1
            self._give_up(POLICY_VIOLATION, f"stalled: nothing could be sent for {stall:g} s")
        elif self._current is None and now - self._idle_since >= idle:
            self._give_up(NORMAL, f"idle: no request came for {idle:g} s")
        else:
            self._later("watch", min(stall, idle) / 4, self._watch)

    def _give_up(self, code: int, reason: str) -> None:
        self._leave()
        self._spawn(self._transport.close(code, reason))

    def _beat(self) -> None:
        if self._sending_since == math.inf:
            self._spawn(self._send(Heartbeat(self._limits.heartbeat)))
        self._later("beat", self._limits.heartbeat, self._beat)

    def _later(self, name: str, seconds: float, call: Callable[[], object]) -> None:
        self._timers[name] = asyncio.get_running_loop().call_later(seconds, call)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
