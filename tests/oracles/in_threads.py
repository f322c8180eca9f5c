"""A function that several threads call at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any


def in_threads(work: Callable[..., object], arguments: Iterable[Any]) -> None:
    """Call `work` with each argument in a thread of its own, and wait for all."""
    threads = [Thread(target=work, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
