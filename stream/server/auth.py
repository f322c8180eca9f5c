"""Who may connect: the API key and the Origin of a websocket's opening handshake.

A websocket is not held back by the browser's same-origin policy: any page that its user visits may open one to
127.0.0.1. The Origin header, which browsers always send and pages cannot forge, is therefore checked. Other programs
send none and may connect; the API key is what keeps those out.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""What precedes the key in a websocket subprotocol: OpenAI's own way for browsers, which cannot set headers here."""


def origin_allowed(origin: str | None, host: str | None, *, origins: Collection[str], own_name: str) -> bool:
    """Whether a page of this origin may connect.

    A page that this server itself delivered may: its origin is the Host header's. That comparison proves nothing where
    the name is one that DNS could point anywhere (rebinding), so such a name counts only if it is the server's own.

    Args:
        origin: The Origin header; None, as from programs that are no browser, is allowed.
        host: The Host header.
        origins: Origins allowed besides, such as `https://chat.example.org`.
        own_name: The host name that the server was told to listen on.

    """
    if origin is None or origin in origins:
        return True
    if host is None or origin.partition("://")[2].lower() != host.lower():
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name in ("localhost", own_name.lower()) or bool(ip_address(name))
    except ValueError:  # a name that is no address, or a Host header that is neither
        return False


def key_offered(authorization: str | None, subprotocols: Iterable[str]) -> str | None:
    """The API key of a request: `Authorization: Bearer KEY`, or the subprotocol `openai-insecure-api-key.KEY`."""
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        return key.strip() if scheme.lower() == "bearer" else None
    return next((name.removeprefix(KEY_SUBPROTOCOL) for name in subprotocols if name.startswith(KEY_SUBPROTOCOL)), None)


def key_accepted(offered: str | None, expected: str | None) -> bool:
    """Whether the key is the server's, compared in constant time; a server without a key accepts any and none."""
    if expected is None:
        return True
    return offered is not None and hmac.compare_digest(offered.encode(), expected.encode())
