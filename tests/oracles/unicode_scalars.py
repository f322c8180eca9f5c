"""The Unicode scalars: every one, and those that a sweep looks at."""

from __future__ import annotations

from full_run import FULL

SCALARS = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))

SWEPT = (
    SCALARS
    if FULL
    else "".join(c for c in SCALARS if c < "\U00033000" or "\U000e0000" <= c < "\U000e0200" or ord(c) % 16 == 0)
)
"""All in a full run, and otherwise every 16th of the planes that have nothing but private use, or no characters yet."""
