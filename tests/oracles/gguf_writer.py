"""Writes GGUF files for tests and benchmarks: metadata without tensors."""

from __future__ import annotations

import struct
from collections.abc import Mapping


def gguf_bytes(values: Mapping[str, object], *, version: int = 3) -> bytes:
    """Return the bytes of a GGUF file with metadata and without tensors.

    Args:
        values: Key to value. A str, bool, int (UINT32), float (FLOAT32), a list of them (integers are INT32, an empty list
            is of strings), or bytes for an array of UINT8.
        version: The format's version.

    """
    return struct.pack("<4sIQQ", b"GGUF", version, 0, len(values)) + b"".join(
        _string(key) + _value(value) for key, value in values.items()
    )


def _string(text: str | bytes) -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: object) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _string(value)
        case bytes():
            return struct.pack("<IIQ", 9, 0, len(value)) + value
        case [int(), *_]:
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
        case [float(), *_]:
            return struct.pack(f"<IIQ{len(value)}f", 9, 6, len(value), *value)
        case [*texts]:
            return struct.pack("<IIQ", 9, 8, len(texts)) + b"".join(map(_string, texts))
    raise TypeError(f"{value!r} has no type in a GGUF file")
