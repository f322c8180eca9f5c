"""Conversations that `previous_response_id` can continue, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from tokenweir.stream.serve.wire.messages import ChatMessage


class Conversations:
    """The last conversations of a server, each known to the client that had it.

    Args:
        max_bytes: Bytes of all conversations together, as JSON; the oldest goes first.
        max_conversation_bytes: Bytes that one may have; a longer one is not kept.

    """

    def __init__(self, max_bytes: int, max_conversation_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_conversation_bytes = max_conversation_bytes
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._bytes = 0

    def keep(self, client: str, response_id: str, messages: list[ChatMessage]) -> bool:
        """Keep a conversation; whether it is short enough."""
        data = msgspec.json.encode(messages)
        if len(data) > min(self._max_bytes, self._max_conversation_bytes):
            return False
        self.adopt(client, response_id, data)
        return True

    def adopt(self, client: str, response_id: str, data: bytes) -> None:
        """Keep a conversation as `all` of another worker gave it."""
        self._kept[client, response_id] = data
        self._bytes += len(data)
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._kept.popitem(last=False)[1])

    def all(self) -> list[tuple[str, str, bytes]]:
        """All conversations, the oldest first: client, id and messages as JSON."""
        return [(client, response_id, data) for (client, response_id), data in self._kept.items()]

    def find(self, client: str, response_id: str) -> list[ChatMessage] | None:
        """The conversation up to and with this response, or None."""
        data = self._kept.get((client, response_id))
        return None if data is None else msgspec.json.decode(data, type=list[ChatMessage])
