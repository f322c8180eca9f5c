"""Cache of facts about a tokenizer, which every answer needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tokenweir.encode.decode import check_tokenizer
from tokenweir.encode.tokenizer import Tokenizer

T = TypeVar("T")


def cached_per_tokenizer(find: Callable[..., T]) -> Callable[..., T]:
    """Decorate a function of a tokenizer and other arguments: cache its results as long as the tokenizer exists."""
    found: WeakKeyDictionary[Tokenizer, dict[tuple[Hashable, ...], T]] = WeakKeyDictionary()

    def cached(tok: Tokenizer, *arguments: Any) -> T:
        check_tokenizer(tok)
        known = found.setdefault(tok, {})
        if arguments not in known:
            known[arguments] = find(tok, *arguments)
        return known[arguments]

    return cached
