"""Responses in flight: the Responses protocol over a generation, for readers on any connection."""

from __future__ import annotations

import logging
from collections import Counter

from msgspec.structs import replace

from tokenweir.encode.errors import ProtocolError
from tokenweir.stream.chat.broadcast import Subscription
from tokenweir.stream.chat.replay_buffer import ReplayBuffer
from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.events.merge import merge
from tokenweir.stream.serve.answers.conversations import EMPTY, decoded, encoded
from tokenweir.stream.serve.answers.job import response_job
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.wire.responses.events import ResponseEvent
from tokenweir.stream.serve.wire.responses.input_items import repeat_item
from tokenweir.stream.serve.wire.responses.kept_events import event_size, merge_events
from tokenweir.stream.serve.wire.responses.requests import InputFields, ResponseCreate
from tokenweir.stream.serve.wire.responses.response_object import Item, text_of
from tokenweir.stream.serve.wire.responses.response_stream import ResponseStream
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage, MessageBuilder

logger = logging.getLogger("tokenweir.serve")


class ResponseTask:
    """One response in progress: the generation of its answer, and the conversion to Responses events.

    Creating it starts the generation.

    Args:
        service: The server's state.
        request: The client's request.
        model: The name of the engine.
        conversation: The messages, without `instructions`.
        data: The same messages as JSON, to be stored with the answer.
        client: The name of the client.
        kept: Whether the conversation is stored, so that a later request can continue it.
        caches: Whether the prompt may be cached and be encoded from cached ones.

    Attributes:
        stream: Converter of deltas to events; it has the response's id and status.
        background: Whether the response outlives its connection, by up to `Limits.resume_grace` seconds.

    """

    __slots__ = ("_conversations", "_kept", "_private", "background", "client", "generation", "model", "stream")

    def __init__(
        self,
        service: Service,
        request: ResponseCreate,
        *,
        model: str,
        conversation: list[ChatMessage],
        data: bytes,
        client: str,
        kept: bool,
        caches: bool,
    ) -> None:
        limits = service.limits
        self.stream = ResponseStream(
            request,
            model=model,
            max_output_tokens=service.max_tokens(request.max_output_tokens, model),
            reasoning_events=service.reasoning_events,
            response_id=new_id("resp", service.worker),
            prompt_ids=lambda: generation.prompt_ids,
        )
        self.model = model
        self.background = bool(request.background)
        self.client = client
        self._conversations = service.conversations
        self._private = request.store is False
        self._kept = kept
        self.generation = generation = service.generate(
            self.stream.id,
            replace(response_job(request, model, conversation), caches=caches),
            client,
            replay=ReplayBuffer(limits.max_replay_bytes if self.background else 0, merge_events, event_size),
            make=self._events,
            ending=self._last_events,
            grace=limits.resume_grace if self.background else 0.0,
            first=self.stream.start(),
        )
        if kept:  # private until its end; has the conversation's beginning
            self._conversations.keep(client, self.stream.id, data, private=True)

    def subscribe(self, start: int = 0) -> Subscription[ResponseEvent]:
        """Return a new reader of the events from sequence number `start` on.

        Raise `DeliveryError` if that event has been dropped, and `ValueError` if `start` is above the number of the
        next event.
        """
        return self.generation.subscribe(start)

    def forget(self) -> None:
        """Delete the stored conversation if it is private to a connection, which has closed."""
        if self._private:
            self._kept = False
            self._conversations.forget(self.client, self.stream.id)

    def _answer(self) -> list[ChatMessage]:
        """Return the output items of the answer as messages for a chat template."""
        conversation = MessageBuilder()
        for item in self.stream.output:
            repeat_item(conversation, item)
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
            self._conversations.forget(self.client, self.stream.id)
            code = failure.code
            usage = self.generation.usage
            return self.stream.fail(str(failure), code, usage=usage)
        events = (
            self.stream.cancel() if self.generation.stopping else self.stream.fail("the answer ended without a finish")
        )
        self._keep()
        return events

    def _keep(self) -> None:
        """Store the conversation with its answer, unless its beginning was evicted meanwhile.

        Of a failed response nothing is stored, so that the client can continue the response before it again.
        """
        conversations, response_id = self._conversations, self.stream.id
        if self.stream.status == "failed":
            conversations.forget(self.client, response_id)
        elif self._kept and (data := conversations.find(self.client, response_id, private=True)) is not None:
            data = encoded(self._answer(), data)
            digest = self.generation.conversation
            conversations.keep(
                self.client, response_id, data, private=self._private, digest=digest, items=self.stream.output
            )


class Responses:
    """Registry of a server's responses: creates them, and finds and deletes stored and background ones."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._background: dict[str, ResponseTask] = {}

    @property
    def resumable(self) -> bool:
        """Whether a background response, running or ended, can still be resumed."""
        self._forget()
        return bool(self._background)

    async def create(
        self,
        request: ResponseCreate,
        client: str,
        *,
        last: str | None = None,
        lasting: bool = False,
        caches: bool = True,
    ) -> ResponseTask:
        """Start a response.

        It is stopped when its last reader leaves; a background response at the latest when none has come back within
        `Limits.resume_grace` seconds.

        Args:
            request: The client's request.
            client: The name of the client.
            last: The id of the connection's last response, which may be continued although it is private; None without
                one.
            lasting: Whether the connection may continue the response even if the request says not to store it.
            caches: Whether the prompt may be cached and be encoded from cached ones.

        Raises:
            RequestError: The server is closing or has too many answers in progress, the request is invalid, or it
                continues an unknown response.

        """
        service = self.service
        service.check_open()
        model = service.model(request.model)
        service.check_max_tokens(request.max_output_tokens, "max_output_tokens")
        conversation, before, data = await self._asked(request, client, last)
        kept = request.stored or (lasting and not request.continue_final_message)
        if kept:
            data = encoded(conversation[before:], data)
            self._check_bytes(len(data))
        task = ResponseTask(
            service,
            request,
            model=model,
            conversation=conversation,
            data=data,
            client=client,
            kept=kept,
            caches=caches,
        )
        if task.background:
            self._make_room()
            self._background[task.stream.id] = task
        return task

    async def conversation(self, request: InputFields, client: str) -> list[ChatMessage]:
        """Return the conversation that the request continues, followed by its own messages.

        Raise `RequestError` for an unknown response or item, and for invalid messages.
        """
        return (await self._asked(request, client, None))[0]

    async def _asked(self, request: InputFields, client: str, last: str | None) -> tuple[list[ChatMessage], int, bytes]:
        """Return the whole conversation, the number of its messages that the request continues, and these as JSON.

        `last` is the id of the connection's last response, which may be private.
        """
        service = self.service
        data = await self._continued(request.previous_response_id, client, last)
        await service.turns.take(len(data))
        before = decoded(data)
        items = await self._items(request.references, client)
        messages = request.messages(before, max_items=service.limits.max_items, find=items.get)
        return messages, len(before), data

    async def _items(self, item_ids: list[str], client: str) -> dict[str, Item]:
        """Return the client's output items with these ids, from this worker and the others; unknown ids are left out.

        Raise `RequestError` if their texts together are too long. An item counts as often as `item_ids` names it.
        """
        service, once = self.service, dict.fromkeys(item_ids)
        found = {each: item for each in once if (item := service.conversations.item(client, each)) is not None}
        if (peers := service.peers) is not None and len(found) < len(once):
            found |= await peers.items([each for each in once if each not in found], client)
        self._check_bytes(sum(len(text_of(found[each])) for each in item_ids if each in found))
        return found

    def find(self, response_id: str, client: str) -> ResponseTask:
        """Return the client's background response with this id; raise `RequestError` if it cannot be resumed."""
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

    async def delete(self, response_id: str, client: str) -> None:
        """Delete a client's response, in this worker or another one, as `drop` does.

        Raise `RequestError` for an unknown id.
        """
        if self.drop(response_id, client):
            return
        if (peers := self.service.peers) is not None and await peers.delete(response_id, client):
            return
        raise RequestError(
            f"no response {response_id[:80]!r} is stored",
            code="response_not_found",
            param="response_id",
            status=404,
        )

    def drop(self, response_id: str, client: str) -> bool:
        """Delete a client's stored or background response in this worker, and its cached prompt; stop it if it runs.

        Return whether it existed.
        """
        service = self.service
        task = self._background.get(response_id)
        if task is not None and task.client != client:
            return False
        found, digest = service.conversations.delete(client, response_id, private=task is not None)
        if task is not None:
            found, digest = True, task.generation.conversation
            del self._background[response_id]
            task.generation.drop()
        if digest is not None and service.prompts is not None:
            service.prompts.forget(client, digest)
        return found

    def _check_bytes(self, size: int) -> None:
        """Raise `RequestError` if `size`, the bytes of a conversation as JSON, exceeds `max_message_bytes`."""
        if size > (limit := self.service.limits.max_message_bytes):
            raise RequestError(
                f"the conversation has {size} bytes as JSON, with what it continues; max_message_bytes is {limit}",
                code="conversation_too_long",
                param="input",
            )

    async def _continued(self, response_id: str | None, client: str, last: str | None) -> bytes:
        """Return the messages up to and including a response, as JSON; an empty array if `response_id` is None.

        `last` is as for `_asked`. Raise `RequestError` if the response is unknown.
        """
        if response_id is None:
            return EMPTY
        found = self.service.conversations.find(client, response_id, private=response_id == last)
        if found is None and (peers := self.service.peers) is not None:
            found = await peers.conversation(response_id, client)
        if found is None:
            limits = self.service.limits
            raise RequestError(
                f"no response {response_id[:80]!r} to continue; the last ones are kept, up to max_stored_bytes="
                f"{limits.max_stored_bytes}, each up to max_message_bytes={limits.max_message_bytes}",
                code="previous_response_not_found",
                param="previous_response_id",
                status=404,
            )
        return found

    def _forget(self) -> None:
        """Forget background responses that can no longer be resumed."""
        self._background = {key: task for key, task in self._background.items() if not task.generation.dropped}

    def _make_room(self) -> None:
        """Stop background responses without readers while there are more than `max_detached`.

        The oldest ones of the client with the most go first.
        """
        self._forget()
        detached = [task for task in self._background.values() if not task.generation.watched]
        while len(detached) > self.service.limits.max_detached:
            [(greedy, _)] = Counter(task.client for task in detached).most_common(1)
            oldest = next(task for task in detached if task.client == greedy)
            detached.remove(oldest)
            oldest.generation.drop()
