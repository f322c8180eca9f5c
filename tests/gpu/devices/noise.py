"""Memory with random bytes, as a device's is before something is written there.

Most of it is never read: large arrays are mapped from one file, so that untouched pages cost nothing.
"""

from __future__ import annotations

import mmap
import os
from functools import cache

import numpy as np
from numpy.typing import NDArray

_PERIOD = 1 << 20
"""After so many bytes they come again."""


def noise(size: int, seed: int) -> NDArray[np.uint8]:
    """Return an array of `size` random bytes; equal arguments give equal bytes."""
    begin = seed * mmap.PAGESIZE % _PERIOD
    if begin + size <= _PERIOD:
        return _period()[begin : begin + size].copy()
    file = _file()
    for _ in range(os.fstat(file).st_size, begin + size, _PERIOD):
        os.write(file, _period())
    return np.frombuffer(mmap.mmap(file, size, access=mmap.ACCESS_COPY, offset=begin), np.uint8)


@cache
def _period() -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, _PERIOD, np.uint8)


@cache
def _file() -> int:
    """Return the descriptor of a file in memory, to which `noise` appends random bytes as needed."""
    return os.memfd_create("noise")
