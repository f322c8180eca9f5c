"""Plain HTTP beside the websocket: headers read, responses made."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from http import HTTPStatus

import msgspec
from websockets.datastructures import Headers
from websockets.http11 import Response


def header(headers: Headers, name: str) -> str | None:
    """The header's value; repeated ones joined, as the standard reads them."""
    values = headers.get_all(name)
    return ", ".join(values) if values else None


def subprotocols(headers: Headers) -> list[str]:
    """What a websocket handshake offers."""
    return [name.strip() for value in headers.get_all("Sec-WebSocket-Protocol") for name in value.split(",")]


def model_list(models: Sequence[str]) -> bytes:
    """The answer to `GET /v1/models`, as JSON."""
    created = int(time.time())
    data = [{"id": name, "object": "model", "created": created, "owned_by": "tokenweir"} for name in models]
    return msgspec.json.encode({"object": "list", "data": data})


def refuse(status: HTTPStatus, message: str, extra: Mapping[str, str] | None = None) -> Response:
    """A response that says no, with the error as OpenAI writes it."""
    error = {"message": message, "type": "invalid_request_error", "code": status.phrase.lower().replace(" ", "_")}
    return respond(status, "application/json", msgspec.json.encode({"error": error}), extra)


def respond(status: HTTPStatus, content_type: str, body: bytes, extra: Mapping[str, str] | None = None) -> Response:
    """A response that ends its connection, may not be cached and is what it says it is; `extra` are more headers."""
    headers = Headers(
        {
            "Date": formatdate(usegmt=True),
            "Connection": "close",
            "Content-Length": str(len(body)),
            "Content-Type": content_type,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            **(extra or {}),
        }
    )
    return Response(status.value, status.phrase, headers, body)
