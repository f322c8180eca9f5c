"""One client's conversation: the Responses protocol over any transport that carries text messages both ways.

The session knows neither sockets nor engines: it is given a `Transport` and the responses of its server. It runs under
asyncio and trio. Four tasks at most: the reader (which owns the others and ends them when the connection is gone), the
watch over a stalled or idle client, the heartbeat, and one that sends the events of a response. A `send` is never cancelled
while the connection is open: a stalled one ends by closing the connection.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.delivery.broadcast import Subscription
from tokenweir.stream.server.limits import Limits
from tokenweir.stream.server.response_task import LiveResponse, LiveResponses
from tokenweir.stream.server.wire.events import (
    LAST_EVENTS,
    ErrorDetail,
    ErrorEvent,
    FunctionCallItem,
    Heartbeat,
    MessageItem,
    ReasoningItem,
    ResponseEvent,
    ServerEvent,
    encode,
)
from tokenweir.stream.server.wire.messages import ChatMessage, Conversation
from tokenweir.stream.server.wire.requests import (
    RequestError,
    ResponseCancel,
    ResponseCreate,
    ResponseResume,
    parse_event,
)

NORMAL = 1000
GOING_AWAY = (1001, "the server is shutting down")
POLICY_VIOLATION = 1008


class Transport(Protocol):
    """A connection that carries messages."""

    async def receive(self) -> str | bytes | None:
        """The next message, a text frame as `str` and a binary one as `bytes`; None once the connection is gone."""
        ...

    async def send(self, data: bytes) -> None:
        """Send a text frame of UTF-8; without effect once the connection is gone."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """End the connection, by force if the other side does not go along."""
        ...


class Session:
    """One connection: `run()` until the client is gone.

    Args:
        transport: The connection.
        responses: What answers, and the responses of other connections, which this one may resume.
        models: The names that a request may give as `model`; the first is the default.
        limits: What the client may cost.
        heartbeat: Whether to send heartbeats.

    """

    def __init__(
        self,
        transport: Transport,
        responses: LiveResponses,
        *,
        models: Collection[str],
        limits: Limits | None = None,
        heartbeat: bool = False,
    ) -> None:
        self._transport = transport
        self._responses = responses
        self._models = models
        self._limits = limits or Limits()
        self._heartbeat = heartbeat
        self._live: LiveResponse | None = None  # the one whose events are being sent
        self._subscription: Subscription[ResponseEvent] | None = None
        self._last: tuple[str, list[ChatMessage]] | None = None  # what previous_response_id can continue
        self._draining = False
        self._tasks: TaskGroup | None = None
        self._send_lock = anyio.Lock()
        self._sending_since = math.inf
        self._idle_since = math.inf

    async def run(self) -> None:
        """Serve the client until the connection is gone; then the engine is stopped before this returns.

        A response in the background goes on for the grace period.
        """
        async with anyio.create_task_group() as self._tasks:
            self._idle_since = anyio.current_time()
            self._tasks.start_soon(self._watch)
            if self._draining:
                self._tasks.start_soon(self._go_away)
            if self._heartbeat:
                self._tasks.start_soon(self._beat)
            try:
                while (message := await self._transport.receive()) is not None:
                    self._idle_since = anyio.current_time()
                    await self._receive(message, self._tasks)
            finally:
                self._tasks.cancel_scope.cancel()
                self._leave()
        if self._live is not None and not self._live.background:
            with anyio.CancelScope(shield=True):
                await self._live.ended.wait()

    def drain(self) -> None:
        """Take no more requests, and close the connection once no response is in flight."""
        self._draining = True
        if self._live is None and self._tasks is not None:
            self._tasks.start_soon(self._go_away)

    async def _receive(self, message: str | bytes, tasks: TaskGroup) -> None:
        try:
            match parse_event(message):
                case ResponseCreate() as request:
                    self._create(request, tasks)
                case ResponseResume() as request:
                    self._resume(request, tasks)
                case ResponseCancel() as cancel:
                    self._cancel(cancel)
        except RequestError as error:
            await self._send(ErrorEvent(ErrorDetail(str(error), error.code, error.param)))

    def _create(self, request: ResponseCreate, tasks: TaskGroup) -> None:
        self._check_free()
        model = request.model if request.model is not None else next(iter(self._models))
        if model not in self._models:
            raise RequestError(
                f"no model {model[:80]!r}; served are {', '.join(self._models)}", code="model_not_found", param="model"
            )
        limit = self._limits.max_output_tokens
        if request.max_output_tokens is not None and request.max_output_tokens > limit:
            raise RequestError(
                f"max_output_tokens is {request.max_output_tokens}; this server gives {limit} at most",
                param="max_output_tokens",
            )
        conversation = request.messages(self._continued(request.previous_response_id))
        if not conversation and request.instructions is None:
            raise RequestError("input is missing", code="missing_required_parameter", param="input")
        live = self._responses.start(
            request, model=model, max_tokens=request.max_output_tokens or limit, conversation=conversation
        )
        self._follow(live, 0, tasks)

    def _resume(self, request: ResponseResume, tasks: TaskGroup) -> None:
        self._check_free()
        start = 0 if request.starting_after is None else request.starting_after + 1
        self._follow(self._responses.find(request.response_id), start, tasks)

    def _check_free(self) -> None:
        if self._draining:
            raise RequestError("the server is shutting down", code="server_shutting_down")
        if self._live is not None:
            raise RequestError(
                f"response {self._live.stream.id} is in flight; a connection carries one at a time",
                code="conversation_already_has_active_response",
            )

    def _follow(self, live: LiveResponse, start: int, tasks: TaskGroup) -> None:
        try:
            self._subscription = live.subscribe(start)
        except (DeliveryError, ValueError) as error:
            code = error.outcome if isinstance(error, DeliveryError) else "invalid_value"
            raise RequestError(f"starting_after={start - 1}: {error}", code=code, param="starting_after") from error
        self._live = live
        tasks.start_soon(self._send_events, live, self._subscription)

    def _continued(self, response_id: str | None) -> list[ChatMessage]:
        if response_id is None:
            return []
        if self._last is None or self._last[0] != response_id:
            raise RequestError(
                f"no response {response_id[:80]!r} to continue; a connection keeps its last one, while the conversation "
                f"is no longer than {self._limits.max_message_bytes} bytes",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        return self._last[1]

    def _cancel(self, cancel: ResponseCancel) -> None:
        if self._live is None or cancel.response_id not in (None, self._live.stream.id):
            wanted = "" if cancel.response_id is None else f" {cancel.response_id[:80]!r}"
            raise RequestError(f"no response{wanted} is in flight", code="response_not_in_flight", param="response_id")
        self._live.cancel()

    async def _send_events(self, live: LiveResponse, subscription: Subscription[ResponseEvent]) -> None:
        """Send the events of one response as they come."""
        try:
            with subscription:
                async for events in subscription:
                    for event in events:
                        if isinstance(event, LAST_EVENTS):  # the client's next request may follow it at once
                            self._keep(live)
                            self._live = None
                        await self._send(event)
        except DeliveryError as error:
            await self._transport.close(POLICY_VIOLATION, str(error))
            return
        self._idle_since = anyio.current_time()
        if self._draining:
            await self._go_away()

    def _leave(self) -> None:
        if self._subscription is not None:
            self._subscription.close()

    def _keep(self, live: LiveResponse) -> None:
        """Remember the conversation for `previous_response_id`; a failed response leaves the one before it."""
        if live.stream.status == "failed":
            return
        conversation = Conversation(live.messages)
        for item in live.stream.output:
            match item:
                case MessageItem():
                    conversation.say("assistant", "".join(part.text for part in item.content))
                case ReasoningItem():
                    conversation.think("".join(part.text for part in item.content))
                case FunctionCallItem(status="completed"):  # templates refuse arguments that are cut short
                    conversation.call(item.call_id, item.name, item.arguments)
        messages = conversation.end()
        fits = len(msgspec.json.encode(messages)) <= self._limits.max_message_bytes
        self._last = (live.stream.id, messages) if fits else None

    async def _send(self, event: ServerEvent) -> None:
        async with self._send_lock:
            self._sending_since = anyio.current_time()
            await self._transport.send(encode(event))
            self._sending_since = math.inf

    async def _watch(self) -> None:
        """Close the connection when an event cannot be sent, or no request comes, for too long."""
        stall, idle = self._limits.stall_timeout, self._limits.idle_timeout
        while True:
            await anyio.sleep(min(stall, idle) / 4)
            now = anyio.current_time()
            if now - self._sending_since >= stall:
                code, reason = POLICY_VIOLATION, f"stalled: nothing could be sent for {stall:g} s"
                break
            if self._live is None and now - self._idle_since >= idle:
                code, reason = NORMAL, f"idle: no request came for {idle:g} s"
                break
        self._leave()
        await self._transport.close(code, reason)

    async def _beat(self) -> None:
        while True:
            await anyio.sleep(self._limits.heartbeat)
            await self._send(Heartbeat(self._limits.heartbeat))

    async def _go_away(self) -> None:
        await self._transport.close(*GOING_AWAY)
