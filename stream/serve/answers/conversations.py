"""Conversations that `previous_response_id` can continue: each encoded once, and counted in the server's ledger."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from tokenweir.stream.prompts.cache.ledger import Ledger, LedgerEntry
from tokenweir.stream.serve.wire.responses.response_object import Item, MessageItem, OutputText, text_of
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage

EMPTY = b"[]"
ITEM_SIZE = 500
"""Bytes of an item besides its text."""


def encoded(messages: Sequence[ChatMessage], after: bytes = EMPTY) -> bytes:
    """Encode messages as a JSON array; the messages of `after`, which is such an array, come first."""
    data = msgspec.json.encode(messages)
    if after == EMPTY:
        return data
    return after if data == EMPTY else b"".join((memoryview(after)[:-1], b",", memoryview(data)[1:]))


def decoded(data: bytes) -> list[ChatMessage]:
    """Decode the messages of a JSON array that `encoded` has made."""
    messages: list[ChatMessage] = msgspec.json.decode(data, type=list[ChatMessage])
    return messages


class _Kept:
    """A kept conversation.

    A private one is visible only to the connection it belongs to. `digest` is that of its prompt in the prompt cache,
    and `items` are the output items of its last answer.
    """

    __slots__ = ("data", "digest", "entry", "items", "private")

    def __init__(self, data: bytes, private: bool, digest: int | None, items: list[Item]) -> None:
        self.data = data
        self.private = private
        self.digest = digest
        self.items = items
        self.entry: LedgerEntry | None = None


def _bare(item: Item) -> Item:
    """Return the item without logprobs, which would take more memory than its text."""
    return replace(item, content=[OutputText(text_of(item))]) if isinstance(item, MessageItem) else item


class Conversations:
    """Store of the conversations that a later request can continue by `previous_response_id`.

    It holds those of stored responses, of responses in progress, and of the last response of each connection. Each is
    visible to its client only. All may be evicted, those in progress included: the client then gets
    `previous_response_not_found` and sends the conversation again.

    Args:
        ledger: Counts the bytes of all clients and decides what is evicted.
        max_bytes: Most bytes of one conversation as JSON; a longer one is not kept.

    """

    def __init__(self, ledger: Ledger, max_bytes: int) -> None:
        self._ledger = ledger
        self._max_bytes = max_bytes
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._items: dict[tuple[str, str], Item] = {}  # of clients, by their ids

    def keep(
        self,
        client: str,
        response_id: str,
        data: bytes,
        *,
        private: bool = False,
        digest: int | None = None,
        items: Sequence[Item] = (),
    ) -> None:
        """Store the conversation up to and including a response, in place of an earlier one with the same id.

        Args:
            client: The client that may see it.
            response_id: The id of the response.
            data: The messages as JSON.
            private: Whether only the connection of the response may see it.
            digest: The key of the conversation's prompt in the prompt cache; None if it is not cached.
            items: The output items of the answer, to which the client may refer by their ids.

        """
        key = client, response_id
        self._drop(key)
        if len(data) > self._max_bytes:
            return
        kept = self._kept[key] = _Kept(data, private, digest, [] if private else [_bare(item) for item in items])
        self._items |= {(client, item.id): item for item in kept.items}
        size = len(data) + sum(ITEM_SIZE + len(text_of(item)) for item in kept.items)
        kept.entry = self._ledger.enter(client, size, partial(self._evict, key, kept))

    def all(self) -> list[tuple[str, str, bytes, list[Item]]]:
        """Return all conversations that are not private, oldest first.

        Each is a tuple of client, response id, messages as JSON, and output items.
        """
        return [(*key, kept.data, kept.items) for key, kept in self._kept.items() if not kept.private]

    def find(self, client: str, response_id: str, *, private: bool = False) -> bytes | None:
        """Return the messages up to and including a response as JSON; None if they are not stored for this client.

        Private conversations are found only if `private` is set.
        """
        kept = self._kept.get((client, response_id))
        return None if kept is None or (kept.private and not private) else kept.data

    def item(self, client: str, item_id: str) -> Item | None:
        """Return the output item of a stored answer of this client; None if there is no such item."""
        return self._items.get((client, item_id))

    def delete(self, client: str, response_id: str, *, private: bool = False) -> tuple[bool, int | None]:
        """Delete a conversation; a private one only if `private` is set.

        Returns:
            Whether the conversation was stored, and the key of its prompt in the prompt cache or None.

        """
        kept = self._kept.get((client, response_id))
        if kept is None or (kept.private and not private):
            return False, None
        self._drop((client, response_id))
        return True, kept.digest

    def forget(self, client: str, response_id: str) -> None:
        """Delete the conversation of a response if it is private, which means visible to its connection only.

        Call it when the response has failed, or the connection has closed or has continued with another response.
        """
        kept = self._kept.get((client, response_id))
        if kept is not None and kept.private:
            self._drop((client, response_id))

    def _evict(self, key: tuple[str, str], kept: _Kept) -> None:
        if self._kept.get(key) is kept:  # another thread may evict it while it is replaced
            self._take(key)

    def _take(self, key: tuple[str, str]) -> LedgerEntry | None:
        """Delete a conversation, if there is one, and return its entry in the ledger."""
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        for item in kept.items:
            self._items.pop((key[0], item.id), None)
        return kept.entry

    def _drop(self, key: tuple[str, str]) -> None:
        if (entry := self._take(key)) is not None:
            self._ledger.leave(entry)
