"""The Unicode scalars: every one, and those that a sweep looks at."""

from __future__ import annotations

from itertools import chain

from full_run import FULL


def _characters(*ranges: range) -> str:
    return "".join(map(chr, chain(*ranges)))


SCALARS = _characters(range(0xD800), range(0xE000, 0x110000))

SWEPT = (
    SCALARS
    if FULL
    else _characters(
        range(0xD800),
        range(0xE000, 0x20000),
        range(0x20000, 0x2F800, 16),
        range(0x2F800, 0x2FA20),
        range(0x2FA20, 0xE0000, 16),
        range(0xE0000, 0xE0200),
        range(0xE0200, 0x110000, 16),
    )
)
"""All in a full run, and otherwise every 16th of the planes that have Chinese, private use or no characters yet."""
