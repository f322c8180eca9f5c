"""Ids of answers and of their items."""

from __future__ import annotations

import secrets

ITEMS = ("msg", "rs", "fc", "ctc")
"""Prefixes of the ids of messages, thinking, calls, and calls of custom tools."""


def new_id(prefix: str, worker: str | None = None) -> str:
    """Return a random, unguessable id that begins with `prefix`, such as `resp_6f1c...`.

    Behind the prefix it contains `worker`, the name of the worker process that keeps the response, if given.
    """
    return f"{prefix}_{worker}_{secrets.token_hex(16)}" if worker else f"{prefix}_{secrets.token_hex(16)}"


def worker_of(response_id: str, prefixes: tuple[str, ...] = ("resp",)) -> str | None:
    """Return the name of the worker that an id such as `resp_WORKER_6f1c...` contains.

    Args:
        response_id: The id of a response, or of an item.
        prefixes: The accepted prefixes; `ITEMS` for the ids of items.

    Returns:
        The name; None if the id contains no worker's name or has another prefix.

    """
    match response_id.split("_"):
        case [prefix, worker, _] if prefix in prefixes and worker.isascii() and worker.isalnum():
            return worker
        case _:
            return None
