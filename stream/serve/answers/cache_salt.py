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
    """Return the secret of a server's salts.

    Args:
        keys: The server's API keys. All servers with the same keys have the same salts, also after a restart.
        shared: The secret of its workers, for a server without keys; None makes a random one.

    """
    if keys:
        return hmac.new(b"tokenweir cache salt", "\0".join(keys).encode(), sha256).digest()
    return os.urandom(SECRET_BYTES) if shared is None else shared


def salted(sampling: Sampling, engine: Engine, client: str, secret: bytes) -> Sampling:
    """Return a sampling with the client's salt, if the engine takes one: `Engine.cache_salt` names the option."""
    name: str | None = getattr(engine, "cache_salt", None)
    if name is None:
        return sampling
    return replace(sampling, extra=sampling.extra | {name: client_salt(client, secret)})


def rendered_salt(engine: Engine, client: str, secret: bytes, asked: str | None) -> str | None:
    """Return the salt of a request that somebody else sends to an engine.

    It is None without a salt that the client `asked` for, if the engine's `cache_salt` is None: clients then share a prefix
    cache. An asked one divides the client's own prompts, and is never passed on.
    """
    if asked is None and getattr(engine, "cache_salt", "") is None:
        return None
    return client_salt(client, secret, asked)


def client_salt(client: str, secret: bytes, asked: str | None = None) -> str:
    """Return the salt of a client, or of the part of its prompts for which it asked for a salt."""
    salt = hmac.new(secret, client.encode("utf-8", "surrogatepass"), sha256)
    if asked is not None:
        salt = hmac.new(salt.digest(), asked.encode("utf-8", "surrogatepass"), sha256)
    return salt.hexdigest()
