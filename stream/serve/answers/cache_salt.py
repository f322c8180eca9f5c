"""Salts of clients, by which an engine's prefix cache keeps their prompts apart."""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from hashlib import sha256

from msgspec.structs import replace

from tokenweir.stream.engines.protocol import Engine
from tokenweir.stream.events.sampling import Sampling

SECRET_BYTES = 32


def make_secret(keys: Sequence[str], shared: bytes | None = None) -> bytes:
    """Return the key from which the clients' cache salts are derived.

    Args:
        keys: The server's API keys, from which the secret is made. All servers with the same keys have the same salts,
            also after a restart.
        shared: The secret to use without keys, which the workers of one server share; None makes a random one.

    """
    if keys:
        return hmac.new(b"tokenweir cache salt", "\0".join(keys).encode(), sha256).digest()
    return os.urandom(SECRET_BYTES) if shared is None else shared


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
