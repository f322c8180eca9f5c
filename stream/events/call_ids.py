"""Ids of tool calls."""

from __future__ import annotations

import secrets
import string


def new_call_id() -> str:
    """Return a new random id of a tool call: nine letters and digits, the only form that Mistral's templates accept."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(9))
