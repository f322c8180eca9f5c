"""Figures of processes."""

from __future__ import annotations

import os
import time
from pathlib import Path


def cpu_seconds(*pids: int) -> float:
    """The CPU time that processes have taken, by the clocks that Linux has for them."""
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def memory(pid: int | str = "self") -> float:
    """The resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
