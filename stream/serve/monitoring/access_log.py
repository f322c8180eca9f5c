"""Access log: one JSON line per request with client, path and outcome, never content.

The lines go to the logger `tokenweir.access` at level INFO, and cost nothing while that is off. A client is the index
of its key or its address, never the key.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from http import HTTPStatus
from time import monotonic
from typing import Any

import msgspec

from tokenweir.encode.base.visible_text import SIGNS

logger = logging.getLogger("tokenweir.access")

_ESCAPES = {code: f"\\u{code:04x}" for code in SIGNS}
"""JSON escapes of C1 controls and bidirectional controls, which JSON allows and terminals obey."""


class AccessLog:
    """ASGI middleware that logs one JSON line at the end of each HTTP request and websocket."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket") or not logger.isEnabledFor(logging.INFO):
            await self._app(scope, receive, send)
            return
        status: int | None = None  # until the server has answered
        size = 0
        begun = monotonic()

        async def watched(message: Any) -> None:
            nonlocal status, size
            kind = message["type"]
            if kind in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
            elif kind == "websocket.accept":
                status = HTTPStatus.SWITCHING_PROTOCOLS
            size += len(message.get("body") or b"")
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            address = scope.get("client")
            line = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "client": scope.get("tokenweir.client") or (f"address {address[0]}" if address else None),
                "method": scope.get("method", "WEBSOCKET"),
                "path": scope["path"],
                "status": status,
                "bytes": size,
                "seconds": round(monotonic() - begun, 4),
            }
            logger.info("%s", msgspec.json.encode(line).decode().translate(_ESCAPES))
