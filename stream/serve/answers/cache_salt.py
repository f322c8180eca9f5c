"""Salts of clients, by which an engine's prefix cache keeps their prompts apart."""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

from msgspec.structs import replace

from tokenweir.encode.base.cache import cache_folder, read_own, store
from tokenweir.stream.engines.protocol import Engine
from tokenweir.stream.events.sampling import Sampling

SECRET_BYTES = 32
SECRET_FILE = "salt-secret"
"""File of the cache folder with the secret of this installation, readable by its owner only."""
LEAST_SECRET = 16
"""Least characters of a secret that is configured."""


def installation_secret() -> bytes:
    """Return the secret of this user on this machine, which restarts of a server share; it is made at first use.

    It is random for this process where the cache folder cannot be written.
    """
    path = cache_folder() / SECRET_FILE
    with suppress(OSError):
        if len(kept := read_own(path)) == SECRET_BYTES:
            return kept
    secret = os.urandom(SECRET_BYTES)
    with suppress(OSError):
        store(path, secret)
    return secret


def make_secret(keys: Sequence[str], secret: bytes) -> bytes:
    """Return the key from which the clients' cache salts are derived.

    Clients see their salts. Without the secret they could guess other clients' API keys by them.

    Args:
        keys: The server's API keys. A client with a new key has a new salt.
        secret: A secret that all servers with the same salts share, such as `installation_secret`.

    """
    return hmac.new(secret, "\0".join(keys).encode(), sha256).digest()


def salted(sampling: Sampling, engine: Engine, client: str, secret: bytes) -> Sampling:
    """Return the sampling parameters with the client's cache salt added to `extra`.

    The option's name is the engine's attribute `cache_salt`; the parameters are unchanged if the engine has no such
    attribute.

    Args:
        sampling: The parameters.
        engine: The engine that will get them.
        client: The name of the client.
        secret: The result of `make_secret`.

    """
    name: str | None = getattr(engine, "cache_salt", None)
    if name is None:
        return sampling
    return replace(sampling, extra=sampling.extra | {name: client_salt(client, secret)})


def rendered_salt(engine: Engine, client: str, secret: bytes, asked: str | None) -> str | None:
    """Return the cache salt for a rendered request that another program sends to its engine; None if it needs no salt.

    It is None if the client asked for no salt and the engine's `cache_salt` is None: all clients then share a prefix
    cache.

    Args:
        engine: The engine.
        client: The name of the client.
        secret: The result of `make_secret`.
        asked: The salt in the client's request, which is mixed into the result but not passed on as it is.

    """
    if asked is None and getattr(engine, "cache_salt", "") is None:
        return None
    return client_salt(client, secret, asked)


def client_salt(client: str, secret: bytes, asked: str | None = None) -> str:
    """Return a client's cache salt, in hexadecimal: an HMAC of its name by `secret`.

    With `asked`, a salt from the client's request, it is a different salt of the same client.
    """
    salt = hmac.new(secret, client.encode("utf-8", "surrogatepass"), sha256)
    if asked is not None:
        salt = hmac.new(salt.digest(), asked.encode("utf-8", "surrogatepass"), sha256)
    return salt.hexdigest()
