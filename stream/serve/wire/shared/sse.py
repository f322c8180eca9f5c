"""Server-sent events."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

KEEP_ALIVE = b": keep-alive\n\n"
"""Heartbeat of a stream: a comment, which clients ignore."""

DONE = b"data: [DONE]\n\n"
"""The last event of OpenAI's streams."""

_encoder = msgspec.json.Encoder()


def sse(value: Any) -> bytes:
    """Encode a value as JSON in a server-sent event: `data: ...` and an empty line."""
    return b"data: " + _encoder.encode(value) + b"\n\n"


def named_sse(event: Struct) -> bytes:
    """Encode a tagged struct as a server-sent event that has the tag as its name."""
    return b"event: %b\ndata: %b\n\n" % (str(event.__struct_config__.tag).encode(), _encoder.encode(event))
