"""Deprecated names of keyword arguments: still taken, with a warning that says what to write."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def renamed_keywords(**names: str) -> Callable[[F], F]:
    """Return a decorator for functions that accept deprecated keywords, given as `old="new"`.

    A call with an old keyword emits a `DeprecationWarning` and passes the value by the new name. A call with both raises
    `TypeError`.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            if names.keys() & keywords.keys():
                rename(keywords, names, stacklevel=2)
            return function(*args, **keywords)

        return cast(F, call)

    return decorate


def rename(keywords: dict[str, Any], names: dict[str, str], *, stacklevel: int) -> None:
    """Replace deprecated keys of `keywords` in place, each with a warning.

    Args:
        keywords: The keywords of a call, which are changed.
        names: The new name of each deprecated one.
        stacklevel: As for `warnings.warn`, from the view of this function's caller.

    Raises:
        TypeError: The old and the new name are both given.

    """
    for old, new in names.items():
        if old not in keywords:
            continue
        if new in keywords:
            raise TypeError(f"{old!r} is the deprecated name of {new!r}, and both are given")
        warnings.warn(f"{old!r} is deprecated: write {new!r}", DeprecationWarning, stacklevel=stacklevel + 1)
        keywords[new] = keywords.pop(old)
