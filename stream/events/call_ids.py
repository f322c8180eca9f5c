"""Ids of tool calls."""

from __future__ import annotations

import secrets
import string


def new_call_id() -> str:
    """Return nine letters and digits, the only form of a call's id that Mistral's chat templates accept."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(9))
