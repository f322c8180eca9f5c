"""Caches of facts about a tokenizer, which are dropped with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tokenweir.encode.tokenizer import check_tokenizer

T = TypeVar("T")


def weakly_cached(find: Callable[..., T]) -> Callable[..., T]:
    """Decorate a function: cache its results, by its arguments, as long as the first argument exists.

    The results must not refer to that argument.
    """
    found: WeakKeyDictionary[Any, dict[tuple[Hashable, ...], T]] = WeakKeyDictionary()

    @wraps(find)
    def cached(key: Any, *arguments: Any) -> T:
        known = found.setdefault(key, {})
        if arguments not in known:
            known[arguments] = find(key, *arguments)
        return known[arguments]

    return cached


def per_tokenizer(find: Callable[..., T]) -> Callable[..., T]:
    """Decorate a function of a `Tokenizer`, as `weakly_cached` does.

    The function then raises `TypeError` if its first argument is anything else.
    """
    cached = weakly_cached(find)

    @wraps(find)
    def checked(tokenizer: Any, *arguments: Any) -> T:
        check_tokenizer(tokenizer)
        return cached(tokenizer, *arguments)

    return checked
