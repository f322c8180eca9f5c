"""One client's conversation: the Responses protocol over any transport that carries text messages both ways.

The session knows neither sockets nor engines, only a `Transport` and the responses of its server. A connection has one
task, which reads; the events of a response are sent by callbacks (`outbox.py`). Timeouts are timers instead of tasks. A
`send` is never cancelled while the connection is open: a stalled one ends by closing the connection. It runs under
asyncio, as everything of the server does (see `generation.py`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from functools import partial
from time import monotonic
from typing import Any

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.chat.broadcast import Subscription
from tokenweir.stream.serve.answers.response_task import Responses, ResponseTask
from tokenweir.stream.serve.limits.connections import Disconnected
from tokenweir.stream.serve.limits.fair_queue import CLIENT
from tokenweir.stream.serve.sockets.outbox import Outbox, Sender
from tokenweir.stream.serve.wire.responses.events import LAST_EVENTS, ErrorEvent, Heartbeat, ResponseEvent, encode
from tokenweir.stream.serve.wire.responses.requests import (
    ResponseCancel,
    ResponseCreate,
    ResponseResume,
    parse_event,
    previous_response_id_of,
)
from tokenweir.stream.serve.wire.shared.errors import RequestError, error_detail
from tokenweir.stream.serve.wire.shared.transport import Transport

NORMAL = 1000
GOING_AWAY = (1001, "the server is shutting down")
POLICY_VIOLATION = 1008
INTERNAL_ERROR = 1011

LAST_MESSAGES = tuple(f'{{"type":"{event.__struct_config__.tag}"' for event in LAST_EVENTS)
"""Prefixes of the last messages of a response."""
ERROR_MESSAGE = f'{{"type":"{ErrorEvent.__struct_config__.tag}"'


class Session:
    """One connection of the Responses protocol, such as a websocket; `run` serves it.

    Args:
        transport: The connection.
        responses: The server's responses. The client may resume those of its own that were created with `background`.
        client: The client's name; for another client, resuming a response is answered with the error
            `response_not_found`.
        heartbeat: Whether to send heartbeats.
        caches: Whether prompts may be cached, and be encoded from cached ones.

    """

    def __init__(
        self,
        transport: Transport,
        responses: Responses,
        *,
        client: str = "",
        heartbeat: bool = False,
        caches: bool = True,
    ) -> None:
        self._transport = transport
        self._responses = responses
        self._service = responses.service
        self._limits = responses.service.limits
        self._client = client
        self._heartbeat = heartbeat
        self._caches = caches
        self._current: ResponseTask | None = None  # the one whose events are being sent
        self._model = responses.service.model(None)  # that of the last response
        self._subscription: Subscription[ResponseEvent] | None = None
        self._link: Transport | None = None  # to the worker whose response is being sent in its place
        self._last: str | None = None  # the response that this connection may continue, though it is not stored
        self._draining = False
        self._running = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._outbox = Outbox(transport.send)
        self._idle_since = math.inf

    async def run(self) -> None:
        """Serve the client until the connection is gone, then stop its response.

        Returns once the response's engine has stopped or been abandoned. A background response continues for its grace
        period.
        """
        CLIENT.set(self._client)
        self._running = True
        self._idle_since = monotonic()
        self._watch()
        if self._draining:
            self._spawn(self._transport.close(*GOING_AWAY))
        if self._heartbeat:
            self._later("beat", self._limits.heartbeat, self._beat)
        try:
            while (message := await self._transport.receive()) is not None:
                self._idle_since = math.inf  # no idle timeout while it is processed
                await self._receive(message)
                del message  # frees a possibly large message while waiting for the next
                self._idle_since = monotonic()
        finally:
            self._running = False
            for timer in self._timers.values():
                timer.cancel()
            self._leave()
            self._outbox.close()
            current = self._current
            if current is not None:
                current.forget()
            self._remember(None)
            tasks = [task for task in self._tasks if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            await self._outbox.room()
        if current is not None and not current.background:
            await current.generation.ended.wait()

    @property
    def _busy(self) -> bool:
        """Whether a response of this or another worker is being sent on the connection."""
        return self._current is not None or self._link is not None

    def drain(self) -> None:
        """Refuse new requests, and close the connection once no response is being sent on it."""
        self._draining = True
        if self._running and not self._busy:
            self._spawn(self._transport.close(*GOING_AWAY))

    async def close(self) -> None:
        """Close the connection now with code 1001, which says that the server shuts down."""
        await self._transport.close(*GOING_AWAY)

    async def _receive(self, message: str | bytes) -> None:
        try:
            await self._service.turns.take(len(message))
            match parse_event(message, max_items=self._limits.max_items):
                case ResponseCreate() as request:
                    self._check_free()
                    self._service.rates.request(self._client)
                    task = await self._responses.create(
                        request, self._client, last=self._last, lasting=True, caches=self._caches
                    )
                    self._follow(task, 0)
                case ResponseResume() as request:
                    self._check_free()
                    await self._resume(request, message)
                case ResponseCancel() as cancel if self._link is None:
                    self._cancel(cancel)
                case ResponseCancel():
                    await self._forward_to_owner(message)
        except Disconnected:
            pass  # and so the next message is None
        except RequestError as error:
            self._service.metrics.refuse(error.code)
            self._forget(previous_response_id_of(message))
            self._outbox.put(encode(ErrorEvent(error_detail(error), error.status)))
            await self._outbox.room()  # bounds the errors for a client that does not read

    def _check_free(self) -> None:
        if self._draining:
            raise RequestError("the server is shutting down", code="server_shutting_down", status=503)
        if self._busy:
            which = "another worker's" if self._current is None else self._current.stream.id
            raise RequestError(
                f"response {which} is in flight; a connection carries one at a time",
                code="conversation_already_has_active_response",
            )

    async def _resume(self, request: ResponseResume, message: str | bytes) -> None:
        if (peers := self._service.peers) is not None:
            self._link = await peers.converse(request.response_id, self._client)
        if self._link is not None:
            self._spawn(self._relay_to_client(self._link))
            await self._forward_to_owner(message)
        else:
            start = 0 if request.starting_after is None else request.starting_after + 1
            self._follow(self._responses.find(request.response_id, self._client), start)

    async def _forward_to_owner(self, message: str | bytes) -> None:
        """Forward a message of the client to the other worker whose response is being sent."""
        assert self._link is not None and isinstance(message, str)
        if (sending := self._link.send(message.encode())) is not None:
            await sending

    async def _relay_to_client(self, link: Transport) -> None:
        """Forward another worker's messages from `link` to the client, up to a response's last event or an error."""
        begun = over = False
        try:
            while not over and (message := await link.receive()) is not None:
                assert isinstance(message, str)
                over = message.startswith(LAST_MESSAGES) or not begun and message.startswith(ERROR_MESSAGE)
                begun = True
                if over:
                    self._link = None
                    self._idle_since = monotonic()
                self._outbox.put(message.encode())
                await self._outbox.room()
        finally:
            self._link = None
            await link.close(NORMAL, "")
        if self._draining:
            await self._transport.close(*GOING_AWAY)
        elif not over:
            await self._transport.close(INTERNAL_ERROR, "the worker that has the response is gone")

    def _follow(self, current: ResponseTask, start: int) -> None:
        try:
            self._subscription = current.subscribe(start)
        except (DeliveryError, ValueError) as error:
            code = error.outcome if isinstance(error, DeliveryError) else "invalid_value"
            raise RequestError(f"starting_after={start - 1}: {error}", code=code, param="starting_after") from error
        self._current, self._model = current, current.model
        Sender(
            self._subscription,
            self._outbox,
            on_last=partial(self._answered, current),
            on_end=partial(self._followed, self._subscription),
        )

    def _cancel(self, cancel: ResponseCancel) -> None:
        if self._current is None or cancel.response_id not in (None, self._current.stream.id):
            wanted = "" if cancel.response_id is None else f" {cancel.response_id[:80]!r}"
            raise RequestError(f"no response{wanted} is in flight", code="response_not_in_flight", param="response_id")
        self._current.generation.cancel()

    def _answered(self, current: ResponseTask) -> None:
        """Mark the response as ended, and as the one that may be continued unless it failed.

        This is called before its last event is sent: the client may send its next request at once after that.
        """
        if current.stream.status == "failed":
            self._forget(current.stream.previous_id)
        else:
            self._remember(current.stream.id)
        self._current = None
        self._idle_since = math.inf  # until it is sent

    def _followed(self, subscription: Subscription[ResponseEvent], why: Exception | None) -> None:
        """Clean up once all events of a response are sent, or once the error `why` has ended the sending.

        The connection is closed after an error, or if the server is closing.
        """
        subscription.close()
        if self._subscription is subscription:
            self._subscription = None
        self._idle_since = monotonic()
        if not self._running:
            return
        if self._draining:
            self._spawn(self._transport.close(*GOING_AWAY))
        elif isinstance(why, DeliveryError):
            self._service.metrics.cut_off(self._model)
            self._spawn(self._transport.close(POLICY_VIOLATION, str(why)))
        elif why is not None:
            self._spawn(self._transport.close(INTERNAL_ERROR, "the server failed; its log says why"))

    def _leave(self) -> None:
        if self._subscription is not None:
            self._subscription.close()

    def _forget(self, response_id: str | None) -> None:
        """Forget the connection's last response if it is the one that a failed request was to continue.

        Open Responses requires it. Stored responses can still be continued.
        """
        if self._last is not None and self._last == response_id:
            self._remember(None)

    def _remember(self, response_id: str | None) -> None:
        """Set this connection's last response, or None; delete the previous one's conversation if it is private."""
        if self._last is not None and self._last != response_id:
            self._responses.service.conversations.forget(self._client, self._last)
        self._last = response_id

    def _watch(self) -> None:
        """Close the connection if nothing could be sent, or no request came, for too long; else check again later."""
        stall, idle = self._limits.stall_timeout, self._limits.idle_timeout
        now = monotonic()
        if now - self._outbox.stuck_since >= stall:
            self._service.metrics.cut_off(self._model)
            self._give_up(POLICY_VIOLATION, f"stalled: nothing could be sent for {stall:g} s")
        elif not self._busy and now - self._idle_since >= idle:
            self._give_up(NORMAL, f"idle: no request came for {idle:g} s")
        else:
            self._later("watch", min(stall, idle) / 4, self._watch)

    def _give_up(self, code: int, reason: str) -> None:
        self._leave()
        self._spawn(self._transport.close(code, reason))

    def _beat(self) -> None:
        if not self._outbox.full:
            self._outbox.put(encode(Heartbeat(self._limits.heartbeat)))
        self._later("beat", self._limits.heartbeat, self._beat)

    def _later(self, name: str, seconds: float, call: Callable[[], object]) -> None:
        self._timers[name] = asyncio.get_running_loop().call_later(seconds, call)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
