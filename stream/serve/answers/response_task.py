"""Responses in flight: the Responses protocol over a generation, for readers on any connection."""

from __future__ import annotations

import logging
from collections import Counter

from tokenweir.encode.errors import ProtocolError
from tokenweir.stream.chat.broadcast import Subscription
from tokenweir.stream.chat.replay_buffer import ReplayBuffer
from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.events.merge import merge
from tokenweir.stream.serve.answers.job import response_job
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.wire.errors import RequestError
from tokenweir.stream.serve.wire.events import FunctionCallItem, MessageItem, ReasoningItem, ResponseEvent
from tokenweir.stream.serve.wire.items import new_response_id
from tokenweir.stream.serve.wire.kept_events import event_size, merge_events
from tokenweir.stream.serve.wire.messages import ChatMessage, Conversation
from tokenweir.stream.serve.wire.requests import InputFields, ResponseCreate
from tokenweir.stream.serve.wire.responses import ResponseStream

logger = logging.getLogger("tokenweir.serve")


class ResponseTask:
    """One response: its events, and the generation that they are made of.

    Attributes:
        stream: The response as events.
        model: What answers.
        messages: The conversation that it answers, without `instructions`.
        background: Whether it outlives its connection.
        generation: The engine and the readers.

    """

    __slots__ = ("_service", "_store", "background", "client", "generation", "messages", "model", "stream")

    def __init__(
        self, service: Service, request: ResponseCreate, *, model: str, conversation: list[ChatMessage], client: str
    ) -> None:
        limits = service.limits
        self.stream = ResponseStream(
            request,
            model=model,
            max_output_tokens=request.max_output_tokens or limits.max_output_tokens,
            reasoning_events=service.reasoning_events,
            response_id=new_response_id(service.worker),
            prompt_ids=lambda: generation.prompt_ids,
        )
        self.model = model
        self.messages = conversation
        self.background = bool(request.background)
        self.client = client
        self._service = service
        self._store = request.store is not False
        self.generation = generation = service.generate(
            self.stream.id,
            response_job(request, model, conversation),
            client,
            replay=ReplayBuffer(limits.max_replay_bytes if self.background else 0, merge_events, event_size),
            make=self._events,
            ending=self._last_events,
            grace=limits.resume_grace if self.background else 0.0,
        )
        generation.start(self.stream.start())

    def subscribe(self, start: int = 0) -> Subscription[ResponseEvent]:
        """Read its events from a sequence number on; raises as `Broadcast.subscribe`."""
        return self.generation.subscribe(start)

    def conversation(self) -> list[ChatMessage]:
        """The conversation with what was answered, for `previous_response_id`."""
        conversation = Conversation(self.messages)
        for item in self.stream.output:
            match item:
                case MessageItem():
                    conversation.say("assistant", "".join(part.text for part in item.content))
                case ReasoningItem():
                    conversation.think("".join(part.text for part in item.content))
                case FunctionCallItem(status="completed"):  # templates refuse arguments that are cut short
                    conversation.call(item.call_id, item.name, item.arguments)
                case FunctionCallItem():
                    pass
        return conversation.end()

    def _events(self, deltas: list[Delta]) -> list[ResponseEvent]:
        events: list[ResponseEvent] = []
        for delta in deltas if len(deltas) == 1 else merge(deltas):
            if self.stream.finished:
                break
            try:
                events += self.stream.step(delta)
            except ProtocolError as error:
                logger.warning("response %s failed: %s", self.stream.id, error)
                events += self.stream.fail(str(error))
                self.generation.cancel()
        if self.stream.finished:
            self._keep()
        return events

    def _last_events(self, failure: RequestError | None) -> list[ResponseEvent]:
        if self.stream.finished:
            return []
        if failure is not None:
            code = failure.code
            usage = self.generation.usage
            return self.stream.fail(str(failure), code, usage=usage)
        events = (
            self.stream.cancel() if self.generation.stopping else self.stream.fail("the answer ended without a finish")
        )
        self._keep()
        return events

    def _keep(self) -> None:
        """Remember the conversation, which is whole; a failed response leaves the one before it."""
        if self._store and self.stream.status != "failed":
            self._service.conversations.keep(self.client, self.stream.id, self.conversation())


class Responses:
    """The responses of a server.

    Args:
        service: What answers them.

    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._background: dict[str, ResponseTask] = {}

    @property
    def resumable(self) -> bool:
        """Whether there are background responses, running or ended, that somebody may still resume."""
        self._forget()
        return bool(self._background)

    async def create(
        self, request: ResponseCreate, client: str, last: tuple[str, list[ChatMessage]] | None = None
    ) -> ResponseTask:
        """Start a response; it ends by itself once those that read it have left.

        Args:
            request: What is asked.
            client: Who asks.
            last: The id and the conversation of the connection's last response.

        Raises:
            RequestError: It cannot be answered; says why.

        """
        service = self.service
        service.check_open()
        model = service.model(request.model)
        service.check_max_tokens(request.max_output_tokens, "max_output_tokens")
        conversation = await self.conversation(request, client, last)
        task = ResponseTask(service, request, model=model, conversation=conversation, client=client)
        if task.background:
            self._make_room()
            self._background[task.stream.id] = task
        return task

    async def conversation(
        self, request: InputFields, client: str, last: tuple[str, list[ChatMessage]] | None = None
    ) -> list[ChatMessage]:
        """What a request says, after what it continues; raises as `create`."""
        return request.messages(await self._continued(request.previous_response_id, client, last))

    def find(self, response_id: str, client: str) -> ResponseTask:
        """The client's background response of this id.

        Raises:
            RequestError: There is none.

        """
        self._forget()
        task = self._background.get(response_id)
        if task is None or task.client != client:
            raise RequestError(
                f"no response {response_id[:80]!r} to resume: it was not created with background, or nobody has read it "
                f"for {self.service.limits.resume_grace:g} s",
                code="response_not_found",
                param="response_id",
                status=404,
            )
        return task

    async def _continued(
        self, response_id: str | None, client: str, last: tuple[str, list[ChatMessage]] | None
    ) -> list[ChatMessage]:
        if response_id is None:
            return []
        if last is not None and last[0] == response_id:
            return last[1]
        found = self.service.conversations.find(client, response_id)
        if found is None and (elsewhere := self.service.elsewhere) is not None:
            found = await elsewhere.conversation(response_id, client)
        if found is None:
            raise RequestError(
                f"no response {response_id[:80]!r} to continue; the last ones are kept, while their conversations are no "
                f"longer than {self.service.limits.max_message_bytes} bytes",
                code="previous_response_not_found",
                param="previous_response_id",
                status=404,
            )
        return found

    def _forget(self) -> None:
        """Forget those that can no longer be resumed."""
        self._background = {key: task for key, task in self._background.items() if not task.generation.dropped}

    def _make_room(self) -> None:
        """Drop the oldest of those that nobody reads, if there are too many: of the client that has most of them."""
        self._forget()
        detached = [task for task in self._background.values() if not task.generation.watched]
        while len(detached) > self.service.limits.max_detached:
            [(greedy, _)] = Counter(task.client for task in detached).most_common(1)
            oldest = next(task for task in detached if task.client == greedy)
            detached.remove(oldest)
            oldest.generation.drop()
