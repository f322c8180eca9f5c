"""What is found out about a tokenizer once and then remembered, since every answer asks it again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tokenweir.encode.decode import check_tokenizer
from tokenweir.encode.tokenizer import Tokenizer

T = TypeVar("T")


def once_a_tokenizer(find: Callable[..., T]) -> Callable[..., T]:
    """Remember what a function of a tokenizer and other arguments gives, as long as the tokenizer lives."""
    found: WeakKeyDictionary[Tokenizer, dict[tuple[Hashable, ...], T]] = WeakKeyDictionary()

    def remembered(tok: Tokenizer, *arguments: Any) -> T:
        check_tokenizer(tok)
        known = found.setdefault(tok, {})
        if arguments not in known:
            known[arguments] = find(tok, *arguments)
        return known[arguments]

    return remembered
