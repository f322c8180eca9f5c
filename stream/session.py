"""One client's conversation: the Responses protocol over any transport that carries text messages both ways.

The session knows neither sockets nor engines: it is given a `Transport` and an `Answer`. It runs under asyncio and
trio. Four tasks at most: the reader (which owns the others and ends them when the connection is gone), the watch over a
stalled reader, the heartbeat, and one response with its producer. A `send` is never cancelled while the connection is
open: a stalled one ends by closing the connection.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

import anyio
from anyio.abc import TaskGroup

from tokenweir.encode.errors import TemplateError, TextError, TokenweirError
from tokenweir.stream.engines.protocol import Sampling
from tokenweir.stream.events import Delta, Finish, FinishReason, Usage
from tokenweir.stream.handoff import MergingHandoff
from tokenweir.stream.wire.events import (
    ErrorDetail,
    ErrorEvent,
    Heartbeat,
    MessageItem,
    ReasoningItem,
    ResponseEvent,
    ServerEvent,
    encode,
)
from tokenweir.stream.wire.requests import ChatMessage, RequestError, ResponseCancel, ResponseCreate, parse_event
from tokenweir.stream.wire.responses import ResponseStream

logger = logging.getLogger("tokenweir.serve")

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


class Answer(Protocol):
    """What answers a conversation: `chat()` bound to engines, tokenizer and template."""

    def __call__(
        self, model: str, messages: list[ChatMessage], sampling: Sampling, template_kwargs: dict[str, Any]
    ) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
        """A context in which the deltas arrive, a `Finish` last; leaving it stops the engine."""
        ...


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one client may cost.

    Attributes:
        max_output_tokens: Most tokens a response may have, and what a request without `max_output_tokens` gets.
        max_message_bytes: Longest message of a client; a longer one closes the connection with code 1009. It is also
            the longest conversation, in characters, that `previous_response_id` can continue.
        max_connections: Connections at once; one more is refused with status 503.
        max_pending_chars: Characters that may wait for a slow reader before the engine is held back.
        stall_timeout: Seconds for which not one event can be sent before the connection is closed with code 1008.
        send_interval: Least seconds between two events with text, the first excepted; what comes faster is merged.
        heartbeat: Seconds between two heartbeats to a browser.
        drain_timeout: Seconds that responses in flight get to end once the server is closing.

    """

    max_output_tokens: int = 8192
    max_message_bytes: int = 1 << 20
    max_connections: int = 100
    max_pending_chars: int = 1 << 16
    stall_timeout: float = 30.0
    send_interval: float = 0.01
    heartbeat: float = 15.0
    drain_timeout: float = 10.0

    def __post_init__(self) -> None:
        """Refuse limits that nothing could meet.

        Raises:
            ValueError: Names the limit and its value.

        """
        for limit in fields(self):
            value, may_be_zero = getattr(self, limit.name), limit.name in ("send_interval", "drain_timeout")
            if not (value >= 0 if may_be_zero else value > 0):
                raise ValueError(f"{limit.name}={value} must be {'at least' if may_be_zero else 'above'} 0")


@dataclass
class _Active:
    """The response in flight."""

    stream: ResponseStream
    handoff: MergingHandoff
    messages: list[ChatMessage]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    failure: tuple[str, Literal["server_error", "invalid_prompt"]] | None = None
    usage: Usage | None = None  # of a response that failed


class Session:
    """One connection: `run()` until the client is gone.

    Args:
        transport: The connection.
        answer: What answers.
        models: The names that a request may give as `model`; the first is the default.
        limits: What the client may cost.
        heartbeat: Whether to send heartbeats.

    """

    def __init__(
        self,
        transport: Transport,
        answer: Answer,
        *,
        models: Collection[str],
        limits: Limits | None = None,
        heartbeat: bool = False,
    ) -> None:
        self._transport = transport
        self._answer = answer
        self._models = models
        self._limits = limits or Limits()
        self._heartbeat = heartbeat
        self._active: _Active | None = None
        self._last: tuple[str, list[ChatMessage]] | None = None  # what previous_response_id can continue
        self._draining = False
        self._tasks: TaskGroup | None = None
        self._send_lock = anyio.Lock()
        self._sending_since: float | None = None

    async def run(self) -> None:
        """Serve the client until the connection is gone; then the engine is stopped before this returns."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._watch)
            if self._draining:
                self._tasks.start_soon(self._go_away)
            if self._heartbeat:
                self._tasks.start_soon(self._beat)
            while (message := await self._transport.receive()) is not None:
                await self._receive(message, self._tasks)
            self._tasks.cancel_scope.cancel()

    def drain(self) -> None:
        """Take no more requests, and close the connection once no response is in flight."""
        self._draining = True
        if self._active is None and self._tasks is not None:
            self._tasks.start_soon(self._go_away)

    async def _receive(self, message: str | bytes, tasks: TaskGroup) -> None:
        try:
            match parse_event(message):
                case ResponseCreate() as request:
                    self._create(request, tasks)
                case ResponseCancel() as cancel:
                    self._cancel(cancel)
        except RequestError as error:
            await self._send(ErrorEvent(ErrorDetail(str(error), error.code, error.param)))

    def _create(self, request: ResponseCreate, tasks: TaskGroup) -> None:
        if self._draining:
            raise RequestError("the server is shutting down", code="server_shutting_down")
        if self._active is not None:
            raise RequestError(
                f"response {self._active.stream.id} is in flight; a connection carries one at a time",
                code="conversation_already_has_active_response",
            )
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
        max_tokens = request.max_output_tokens or limit
        conversation = [*self._continued(request.previous_response_id), *request.messages()]
        system = [] if request.instructions is None else [{"role": "system", "content": request.instructions}]
        if not conversation and not system:
            raise RequestError("input is missing", code="missing_required_parameter", param="input")
        stream = ResponseStream(request, model=model, max_output_tokens=max_tokens)
        active = _Active(stream, MergingHandoff(self._limits.max_pending_chars), conversation)
        self._active = active
        answer = self._answer(
            model, system + conversation, request.sampling(max_tokens=max_tokens), request.template_kwargs()
        )
        tasks.start_soon(self._respond, active, answer)

    def _continued(self, response_id: str | None) -> list[ChatMessage]:
        if response_id is None:
            return []
        if self._last is None or self._last[0] != response_id:
            raise RequestError(
                f"no response {response_id[:80]!r} to continue; a connection keeps its last one, while the conversation "
                f"is no longer than {self._limits.max_message_bytes} characters",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        return self._last[1]

    def _cancel(self, cancel: ResponseCancel) -> None:
        if self._active is None or cancel.response_id not in (None, self._active.stream.id):
            wanted = "" if cancel.response_id is None else f" {cancel.response_id[:80]!r}"
            raise RequestError(f"no response{wanted} is in flight", code="response_not_in_flight", param="response_id")
        self._active.scope.cancel()

    async def _respond(self, active: _Active, answer: AbstractAsyncContextManager[AsyncIterator[Delta]]) -> None:
        """Send the events of one response while its deltas are being produced."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._produce, active, answer)
            await self._emit(active, active.stream.start())
            while deltas := await active.handoff.take():
                for delta in deltas:
                    await self._emit(active, active.stream.step(delta))
                await anyio.sleep(self._limits.send_interval)
            if not active.stream.finished:
                await self._emit(active, self._unfinished(active))
        if self._draining:
            await self._go_away()

    async def _produce(self, active: _Active, answer: AbstractAsyncContextManager[AsyncIterator[Delta]]) -> None:
        """Move the deltas into the hand-off; `active.scope` stops the engine and nothing else."""
        try:
            with active.scope:
                async with answer as deltas:
                    async for delta in deltas:
                        if isinstance(delta, Finish) and delta.reason is FinishReason.ERROR:
                            active.usage = delta.usage  # the error itself is raised next
                        else:
                            await active.handoff.put(delta)
        except (TemplateError, TextError) as error:
            active.failure = (str(error), "invalid_prompt")
        except TokenweirError as error:
            logger.warning("response %s failed: %s", active.stream.id, error)
            active.failure = (str(error), "server_error")
        except Exception as error:
            logger.exception("response %s failed", active.stream.id)
            active.failure = (f"internal error: {type(error).__name__}; the server's log has more", "server_error")
        finally:
            active.handoff.close()

    def _unfinished(self, active: _Active) -> list[ResponseEvent]:
        """The last events of a response whose deltas ended without a `Finish`."""
        if active.failure is not None:
            return active.stream.fail(*active.failure, usage=active.usage)
        if active.scope.cancelled_caught:
            return active.stream.cancel()
        return active.stream.fail("the answer ended without a finish")

    async def _emit(self, active: _Active, events: list[ResponseEvent]) -> None:
        if active.stream.finished:  # before the last event is out, since the client's next request may follow at once
            self._active = None
            self._keep(active)
        for event in events:
            await self._send(event)

    def _keep(self, active: _Active) -> None:
        """Remember the conversation for `previous_response_id`; a failed response leaves the one before it."""
        if active.stream.status == "failed":
            return
        reply: ChatMessage = {"role": "assistant", "content": ""}
        for item in active.stream.output:
            key = {MessageItem: "content", ReasoningItem: "reasoning_content"}[type(item)]
            reply[key] = reply.get(key, "") + "".join(part.text for part in item.content)
        conversation = [*active.messages, reply]
        length = sum(len(text) for message in conversation for text in message.values())
        self._last = (active.stream.id, conversation) if length <= self._limits.max_message_bytes else None

    async def _send(self, event: ServerEvent) -> None:
        async with self._send_lock:
            self._sending_since = anyio.current_time()
            await self._transport.send(encode(event))
            self._sending_since = None

    async def _watch(self) -> None:
        """Close the connection when one event cannot be sent for too long: its reader has stalled."""
        timeout = self._limits.stall_timeout
        while True:
            await anyio.sleep(timeout / 4)
            if self._sending_since is not None and anyio.current_time() - self._sending_since >= timeout:
                break
        if self._active is not None:
            self._active.scope.cancel()
        await self._transport.close(POLICY_VIOLATION, f"stalled: nothing could be sent for {timeout:g} s")

    async def _beat(self) -> None:
        while True:
            await anyio.sleep(self._limits.heartbeat)
            await self._send(Heartbeat(self._limits.heartbeat))

    async def _go_away(self) -> None:
        await self._transport.close(*GOING_AWAY)
