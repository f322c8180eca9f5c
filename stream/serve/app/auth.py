"""Authentication: API keys, and the Origin and Host headers of browsers.

The browser's same-origin policy does not cover websockets: any page that a user visits may open one to 127.0.0.1.
Browsers always send the Origin header with it, and pages cannot forge it, so it is checked. Other programs do not send
it and may connect; API keys restrict those.

A page can also point its own name to 127.0.0.1 (DNS rebinding), and then has the server's origin. The Host header shows
the name, so a server without keys answers only under names that others cannot own.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from hashlib import blake2b
from ipaddress import ip_address
from urllib.parse import urlsplit

from tokenweir.encode.values.texts import several_texts

DIGEST = 32
"""Length in bytes of a key's digest, and of the salt."""

KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""Prefix of a key in a websocket subprotocol: OpenAI's convention for browsers, which cannot set headers there."""


class Gate:
    """Access control of connections.

    Args:
        keys: The API keys, each ASCII and not empty; if empty, no key is needed and any is accepted.
        origins: Origins of web pages that may connect besides the server's own, such as `https://chat.example.org`.
        hosts: Names under which the server answers besides addresses, `localhost` and `own_name`; `*` is for any. A
            server with keys and without names of its own answers under any.
        own_name: The host name that the server was told to listen on.

    Raises:
        TypeError: `origins` or `hosts` is not a collection of str, or a key is not a str.
        ValueError: A key is empty or not ASCII.

    """

    def __init__(
        self,
        *,
        keys: Iterable[str] = (),
        origins: Collection[str] = (),
        hosts: Collection[str] = (),
        own_name: str = "localhost",
    ) -> None:
        given = list(keys)
        for key in given:
            if not isinstance(key, str):
                raise TypeError(f"api_key must be str, or several of them, not {type(key).__name__}")
            if not key or not key.isascii():
                raise ValueError("api_key must be ASCII and not empty; leave it out for a server without one")
        hosts = several_texts("hosts", hosts)
        self._salt = os.urandom(DIGEST)
        self._keys = {self._digest(key): index for index, key in reversed([*enumerate(given)])}  # the first of equals
        self._origins = frozenset(several_texts("origins", origins))
        self._names = frozenset(name.lower() for name in (*hosts, "localhost", own_name))
        self._any_host = "*" in hosts or bool(self._keys and not hosts)

    @property
    def has_keys(self) -> bool:
        """Whether clients must send an API key."""
        return bool(self._keys)

    def host_allowed(self, host: str | None) -> bool:
        """Return whether the server answers under this Host header; True if the request has no such header."""
        return self._any_host or host is None or self._is_own_name(host)

    def origin_allowed(self, origin: str | None, host: str | None) -> bool:
        """Return whether a page of this origin may connect.

        Allowed are the `origins` given to the constructor, and the server's own page: its origin without the scheme
        equals the Host header, which must be an IP address or one of the server's own names. DNS could point any other
        name here.

        Args:
            origin: The Origin header; None, as from programs other than browsers, is allowed.
            host: The Host header; if None, only the given `origins` are allowed.

        """
        if origin is None or origin in self._origins:
            return True
        return host is not None and origin.partition("://")[2].lower() == host.lower() and self._is_own_name(host)

    def is_foreign(self, origin: str | None) -> bool:
        """Return whether the origin is one of the allowed origins of other pages, whose answers need CORS headers."""
        return origin in self._origins

    def key_index(self, offered: str | None) -> int | None:
        """Return the index of an offered API key among the server's keys; None if it is not one of them.

        Keys are looked up by digests with a random salt, which clients cannot compute. The time depends only on the
        length of the offered key, and reveals neither the characters nor lengths nor number of the server's keys.
        """
        return self._keys.get(self._digest(offered or ""))

    def _digest(self, key: str) -> bytes:
        return blake2b(key.encode("utf-8", "replace"), digest_size=DIGEST, key=self._salt).digest()

    def _is_own_name(self, host: str) -> bool:
        if any(sign in host for sign in ", @/"):  # two headers, or not a host name
            return False
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
            return name in self._names or bool(ip_address(name))
        except ValueError:  # a name, or an invalid Host header
            return False


def key_offered(authorization: str | None, subprotocols: Iterable[str]) -> str | None:
    """Return the API key that a request offers, or None.

    It comes from `Authorization: Bearer KEY` or, without such a header, from a websocket subprotocol
    `openai-insecure-api-key.KEY`.

    Args:
        authorization: The Authorization header.
        subprotocols: The subprotocols that a websocket's handshake offers.

    """
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        return key.strip() if scheme.lower() == "bearer" else None
    return next((name.removeprefix(KEY_SUBPROTOCOL) for name in subprotocols if name.startswith(KEY_SUBPROTOCOL)), None)
