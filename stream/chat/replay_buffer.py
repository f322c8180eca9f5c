"""The tail of a stream, kept for readers that are late, slow or reconnect; no I/O.

Items are numbered from 0. The items from any kept number on can be read repeatedly, merged into as few items as mean the
same. The buffer is bounded in bytes. Reading a dropped item raises; it is never skipped silently.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Generic, TypeVar

from tokenweir.encode.errors import DeliveryError

T = TypeVar("T")


class ReplayBuffer(Generic[T]):
    """Queue of numbered items that can be read again from any kept number, and whose oldest items `trim` drops.

    Args:
        max_bytes: Bytes of items above which `trim` drops the oldest.
        merge: Joins neighbouring items without changing order or meaning.
        size: Returns the bytes that an item counts for.

    Attributes:
        first: The number of the oldest item that is kept.
        next: The number that the next item gets.
        keeps: Whether `max_bytes` is above 0.
        bytes: The bytes of all kept items.

    """

    __slots__ = ("_items", "_max_bytes", "_merge", "_size", "bytes", "first", "keeps", "next")

    def __init__(self, max_bytes: int, merge: Callable[[Iterable[T]], list[T]], size: Callable[[T], int]) -> None:
        self.first = self.next = 0
        self.bytes = 0
        self.keeps = max_bytes > 0
        self._max_bytes = max_bytes
        self._merge = merge
        self._size = size
        self._items: deque[tuple[T, int]] = deque()

    def append(self, items: Iterable[T]) -> None:
        """Add items, without dropping any."""
        for item in items:
            size = self._size(item)
            self._items.append((item, size))
            self.bytes += size
            self.next += 1

    def check(self, number: int) -> None:
        """Raise an error for an item's number from which `since` cannot read; the next item's number is allowed.

        Raises:
            DeliveryError: The item has been dropped.
            ValueError: There is no such number yet.

        """
        if number < self.first:
            raise DeliveryError(
                f"too far behind: item {number} is no longer kept, the oldest is {self.first}", "too_far_behind"
            )
        if number > self.next:
            raise ValueError(f"there is no item {number} yet; the next is {self.next}")

    def since(self, number: int) -> list[T]:
        """Return all items from a number on, merged; an empty list for the next item's number.

        Raises:
            DeliveryError: The item has been dropped.
            ValueError: There is no such number yet.

        """
        self.check(number)
        newest_first = [item for item, _ in islice(reversed(self._items), self.next - number)]
        return self._merge(reversed(newest_first)) if len(newest_first) > 1 else newest_first

    def trim(self, before: int) -> None:
        """Drop the oldest items until `max_bytes` are left, but never an item with a number of `before` or higher."""
        while self.bytes > self._max_bytes and self.first < before and self._items:
            self.bytes -= self._items.popleft()[1]
            self.first += 1
