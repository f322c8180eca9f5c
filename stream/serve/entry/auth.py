"""Who may connect: API keys, and the Origin and Host headers that browsers send.

A websocket is not held back by the browser's same-origin policy: any page that its user visits may open one to
127.0.0.1. The Origin header, which browsers always send with it and pages cannot forge, is therefore checked. Other
programs send none and may connect; API keys are what keeps those out.

A page can also make its own name point to 127.0.0.1 (DNS rebinding), and is then of the same origin as the server. The
Host header shows the name, so a server without keys answers only under names that nobody else can have.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from hashlib import blake2b
from ipaddress import ip_address
from urllib.parse import urlsplit

from tokenweir.encode.texts import several_texts

DIGEST = 32
"""Bytes of a key's digest, and of the salt."""

KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""What precedes the key in a websocket subprotocol: OpenAI's own way for browsers, which cannot set headers here."""


class Gate:
    """Decides who may connect.

    Args:
        keys: The API keys, each ASCII and not empty; without one, any key and none is accepted.
        origins: Origins of web pages that may connect besides the server's own, such as `https://chat.example.org`.
        hosts: Names under which the server answers besides addresses, `localhost` and `own_name`; `*` is for any. A
            server with keys and without names of its own answers under any.
        own_name: The host name that the server was told to listen on.

    Raises:
        TypeError: `origins` or `hosts` are not several texts, or a key is no str.
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
        """Whether a key is needed."""
        return bool(self._keys)

    def host_allowed(self, host: str | None) -> bool:
        """Whether the server answers under this Host header; programs that send none are no browsers."""
        return self._any_host or host is None or self._is_own_name(host)

    def origin_allowed(self, origin: str | None, host: str | None) -> bool:
        """Whether a page of this origin may connect.

        A page that this server itself delivered may: its origin is the Host header's. That comparison proves nothing
        where the name is one that DNS could point anywhere, so such a name counts only if it is the server's own.

        Args:
            origin: The Origin header; None, as from programs that are no browser, is allowed.
            host: The Host header.

        """
        if origin is None or origin in self._origins:
            return True
        return host is not None and origin.partition("://")[2].lower() == host.lower() and self._is_own_name(host)

    def is_foreign(self, origin: str | None) -> bool:
        """Whether a browser wants to be told that pages of this origin may read the answer (CORS)."""
        return origin in self._origins

    def key_index(self, offered: str | None) -> int | None:
        """The place of a key among the server's, or None.

        Keys are looked up by digests with a random salt, which clients cannot compute. The time depends on the length of
        the offered key alone, and reveals nothing of the server's keys: their letters, lengths and number.
        """
        return self._keys.get(self._digest(offered or ""))

    def _digest(self, key: str) -> bytes:
        return blake2b(key.encode("utf-8", "replace"), digest_size=DIGEST, key=self._salt).digest()

    def _is_own_name(self, host: str) -> bool:
        if any(sign in host for sign in ", @/"):  # two headers, or what is no name at all
            return False
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
            return name in self._names or bool(ip_address(name))
        except ValueError:  # a name that is no address, or a Host header that is neither
            return False


def key_offered(authorization: str | None, subprotocols: Iterable[str]) -> str | None:
    """The API key of a request: `Authorization: Bearer KEY`, or the subprotocol `openai-insecure-api-key.KEY`."""
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        return key.strip() if scheme.lower() == "bearer" else None
    return next((name.removeprefix(KEY_SUBPROTOCOL) for name in subprotocols if name.startswith(KEY_SUBPROTOCOL)), None)
