"""Keys of KV-cache blocks, as engines compute them from ids.

A key covers a block of ids and, through its parent's key, all ids before it. A router that knows the keys of a prompt knows
which engine holds how much of it.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

BlockScheme = Literal["sha256", "sha256_cbor", "sglang", "llm-d"]
"""`sha256` and `sha256_cbor`: vLLM 0.33 by those values of `--prefix-caching-hash-algo`. `sglang`: page hashes of SGLang's
hierarchical cache. `llm-d`: llm-d-kv-cache's FNV-64a over CBOR."""


def block_keys(
    ids: NDArray[np.int32], size: int, scheme: BlockScheme, salt: str | None = None, *, seed: str = "", model: str = ""
) -> list[bytes]:
    """Return the keys of the KV-cache blocks of a prompt, one for each full block in order; ids behind the last are left out.

    Args:
        ids: The ids of the prompt.
        size: The number of ids in a block.
        scheme: The engine's way of hashing.
        salt: The cache salt of the request; None for no salt. "sglang" and "llm-d" take no salt.
        seed: The engine's seed: `PYTHONHASHSEED` of vLLM's process where it is set, and llm-d's `HashSeed`.
        model: The model's name, which llm-d hashes.

    Raises:
        ValueError: `size` is below 1, the scheme is unknown, or it takes no salt.

    """
    if size < 1:
        raise ValueError(f"size={size} is below 1")
    if scheme not in get_args(BlockScheme):
        raise ValueError(f"scheme must be one of {', '.join(get_args(BlockScheme))}, not {scheme!r}")
    if scheme == "sglang":
        if salt is not None:
            raise ValueError("SGLang puts the salt into a namespace of its own; pass no salt")
        return list(_sglang(ids, size))
    if scheme == "llm-d":
        if salt is not None:
            raise ValueError("llm-d hashes no salt")
        return list(_llm_d(ids.tolist(), size, seed, model))
    digest = _pickled if scheme == "sha256" else _cbor_digest
    return list(_vllm(ids.tolist(), size, salt, digest, seed))


def _vllm(
    ids: Sequence[int], size: int, salt: str | None, digest: Callable[[object], bytes], seed: str
) -> Iterator[bytes]:
    parent = digest(seed or "vllm-none-hash")
    for start in range(0, len(ids) - size + 1, size):
        extra = (("cache_salt", salt),) if salt and start == 0 else None
        parent = digest((parent, tuple(ids[start : start + size]), extra))
        yield parent


def _pickled(value: object) -> bytes:
    return hashlib.sha256(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)).digest()


def _cbor_digest(value: object) -> bytes:
    return hashlib.sha256(cbor(value)).digest()


def _sglang(ids: NDArray[np.int32], size: int) -> Iterator[bytes]:
    data = ids.astype("<u4").tobytes()
    parent = b""
    for start in range(0, len(data) - 4 * size + 1, 4 * size):
        parent = hashlib.sha256(parent + data[start : start + 4 * size]).digest()
        yield parent


def _llm_d(ids: Sequence[int], size: int, seed: str, model: str) -> Iterator[bytes]:
    def hashed(parent: int, tokens: object, extra: object) -> int:
        return _fnv64a(cbor([parent, tokens, extra]))

    parent = hashed(_fnv64a(seed.encode()), None, model)
    for start in range(0, len(ids) - size + 1, size):
        parent = hashed(parent, list(ids[start : start + size]), None)
        yield parent.to_bytes(8, "big")


def _fnv64a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def cbor(value: object) -> bytes:
    """Encode None, an int of at least 0, a str, bytes, or a list or tuple of these as canonical CBOR (RFC 8949, 4.2.1).

    Raises:
        TypeError: The value is of another type, or a negative int.

    """
    match value:
        case None:
            return b"\xf6"
        case int() if value >= 0:
            return _head(0, value)
        case bytes():
            return _head(2, len(value)) + value
        case str():
            data = value.encode()
            return _head(3, len(data)) + data
        case list() | tuple():
            return _head(4, len(value)) + b"".join(map(cbor, value))
        case _:
            raise TypeError(f"{type(value).__name__} is not encoded")


def _head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes((major << 5 | number,))
    for code, form in ((24, ">B"), (25, ">H"), (26, ">I")):
        if number < 1 << 8 * struct.calcsize(form):
            return bytes((major << 5 | code,)) + struct.pack(form, number)
    return bytes((major << 5 | 27,)) + struct.pack(">Q", number)
