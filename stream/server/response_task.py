"""Responses in flight: each in tasks of its own, read by the connections that want it, and stopped when none is left."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, Protocol

import anyio
from anyio.abc import TaskGroup

from tokenweir.encode.errors import DeliveryError, ProtocolError, TemplateError, TextError, TokenweirError
from tokenweir.stream.delivery.broadcast import Broadcast, Subscription
from tokenweir.stream.delivery.merge import merge
from tokenweir.stream.delivery.replay_buffer import ReplayBuffer
from tokenweir.stream.engines.protocol import Sampling
from tokenweir.stream.events import Delta, Finish, FinishReason, Usage
from tokenweir.stream.pipeline.cancellable import Deltas
from tokenweir.stream.pipeline.task_scope import background_tasks
from tokenweir.stream.server.limits import Limits
from tokenweir.stream.server.wire.events import ResponseEvent, event_size, merge_events
from tokenweir.stream.server.wire.messages import ChatMessage
from tokenweir.stream.server.wire.requests import RequestError, ResponseCreate
from tokenweir.stream.server.wire.responses import ResponseStream

logger = logging.getLogger("tokenweir.serve")


class Answer(Protocol):
    """What answers a conversation: `chat()` bound to engines, tokenizer and template."""

    def __call__(
        self,
        model: str,
        messages: list[ChatMessage],
        sampling: Sampling,
        template_kwargs: dict[str, Any],
        tools: list[dict[str, Any]] | None,
        alignment: bool,
    ) -> AbstractAsyncContextManager[Deltas]:
        """A context in which the deltas arrive, a `Finish` last; leaving it stops the engine."""
        ...


class LiveResponse:
    """One response: the engine at one end, the readers of its events at the other.

    Attributes:
        stream: The response as events.
        messages: The conversation that it answers, without `instructions`.
        background: Whether it outlives its connection.
        ended: Set once the engine is stopped and nobody can read any more.

    """

    def __init__(
        self,
        stream: ResponseStream,
        answer: AbstractAsyncContextManager[Deltas],
        messages: list[ChatMessage],
        limits: Limits,
        *,
        background: bool,
    ) -> None:
        self.stream = stream
        self.messages = messages
        self.background = background
        self.ended = anyio.Event()
        self._answer = answer
        self._deltas: Deltas | None = None
        self._cancelled = anyio.CancelScope()  # before there are deltas
        self._ending = False  # they have been cancelled, and few come
        self._dropped = anyio.CancelScope()
        self._usage: Usage | None = None  # of a response that failed
        self._grace = limits.resume_grace if background else 0.0
        self._interval = limits.send_interval
        replay = ReplayBuffer(limits.max_replay_bytes if background else 0, merge_events, event_size)
        self._broadcast = Broadcast(replay, self._events, max_ahead=limits.max_pending_bytes)
        self._broadcast.append(stream.start())

    @property
    def watched(self) -> bool:
        """Whether anybody reads it."""
        return self._broadcast.watched

    def subscribe(self, start: int = 0) -> Subscription[ResponseEvent]:
        """Read its events from a sequence number on; raises as `Broadcast.subscribe`."""
        return self._broadcast.subscribe(start, interval=self._interval)

    def cancel(self) -> None:
        """Stop the engine; the text that was held, the usage and the events that say so can still be read."""
        if self._deltas is None:
            self._cancelled.cancel()
        else:
            self._ending = True
            self._deltas.cancel()
            self._broadcast.seal()  # makes room, or the engine would stay open until a slow reader has taken something

    def drop(self) -> None:
        """Stop the engine and let nobody read any more."""
        self._dropped.cancel()

    async def run(self) -> None:
        """Answer until the answer has ended and been read, or nobody is left to read it."""
        try:
            with self._dropped:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._produce)
                    await self._broadcast.abandoned(self._grace)
                    tasks.cancel_scope.cancel()
        finally:
            self._broadcast.close(DeliveryError("closed: the response was closed before its end", "closed"))
            self.ended.set()

    async def _produce(self) -> None:
        """Move the deltas into the broadcast; a failure becomes the last events."""
        failure: tuple[str, Literal["server_error", "invalid_prompt"]] | None = None
        try:
            with self._cancelled:
                async with self._answer as self._deltas:
                    async for delta in self._deltas:
                        if isinstance(delta, Finish) and delta.reason is FinishReason.ERROR:
                            self._usage = delta.usage  # the error itself is raised next
                        else:
                            if self._ending:
                                self._broadcast.seal()
                            await self._broadcast.put(delta)
        except (TemplateError, TextError) as error:
            failure = str(error), "invalid_prompt"
        except TokenweirError as error:
            logger.warning("response %s failed: %s", self.stream.id, error)
            failure = str(error), "server_error"
        except Exception as error:
            logger.exception("response %s failed", self.stream.id)
            failure = f"internal error: {type(error).__name__}; the server's log has more", "server_error"
        self._broadcast.seal()
        if not self.stream.finished:
            if failure is not None:
                self._broadcast.append(self.stream.fail(*failure, usage=self._usage))
            elif self._cancelled.cancelled_caught:
                self._broadcast.append(self.stream.cancel())
            else:
                self._broadcast.append(self.stream.fail("the answer ended without a finish"))
        self._broadcast.close()

    def _events(self, deltas: Iterable[Delta]) -> list[ResponseEvent]:
        events: list[ResponseEvent] = []
        for delta in merge(deltas):
            if self.stream.finished:
                break
            try:
                events += self.stream.step(delta)
            except ProtocolError as error:
                logger.warning("response %s failed: %s", self.stream.id, error)
                events += self.stream.fail(str(error))
                self.cancel()
        return events


class LiveResponses:
    """The responses of a server; `live_responses` makes it.

    Args:
        answer: What answers.
        limits: What a client may cost.
        tasks: Where the responses run.

    """

    def __init__(self, answer: Answer, limits: Limits, tasks: TaskGroup) -> None:
        self._answer = answer
        self._limits = limits
        self._tasks = tasks
        self._background: dict[str, LiveResponse] = {}

    def start(
        self, request: ResponseCreate, *, model: str, max_tokens: int, conversation: list[ChatMessage]
    ) -> LiveResponse:
        """Start a response; it ends by itself once those that `subscribe` it have left."""
        system = [] if request.instructions is None else [{"role": "system", "content": request.instructions}]
        answer = self._answer(
            model,
            system + conversation,
            request.sampling(max_tokens=max_tokens),
            request.template_kwargs(),
            request.definitions(),
            bool(request.include),
        )
        stream = ResponseStream(request, model=model, max_output_tokens=max_tokens)
        live = LiveResponse(stream, answer, conversation, self._limits, background=bool(request.background))
        if live.background:
            self._make_room()
            self._background[stream.id] = live
        self._tasks.start_soon(self._run, live)
        return live

    def find(self, response_id: str) -> LiveResponse:
        """The background response of this id.

        Raises:
            RequestError: There is none.

        """
        if response_id not in self._background:
            raise RequestError(
                f"no response {response_id[:80]!r} to resume: it was not created with background, or nobody has read it "
                f"for {self._limits.resume_grace:g} s",
                code="response_not_found",
                param="response_id",
            )
        return self._background[response_id]

    def _make_room(self) -> None:
        """Drop the oldest of those that nobody reads, if there are too many."""
        detached = [live for live in self._background.values() if not live.watched]
        for live in detached[: max(0, len(detached) - self._limits.max_detached)]:
            live.drop()

    async def _run(self, live: LiveResponse) -> None:
        try:
            await live.run()
        finally:
            self._background.pop(live.stream.id, None)


@asynccontextmanager
async def live_responses(answer: Answer, limits: Limits) -> AsyncIterator[LiveResponses]:
    """Hold responses while the context lasts; leaving it stops all of them."""
    async with background_tasks() as tasks:
        yield LiveResponses(answer, limits, tasks)
