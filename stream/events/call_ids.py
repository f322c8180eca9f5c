"""Ids of tool calls."""

from __future__ import annotations

import secrets
import string


def new_call_id() -> str:
    """Return nine letters and digits: what Mistral's chat templates want of a call, and others do not mind."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(9))
