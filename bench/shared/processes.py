"""Functions in processes of their own, and figures of processes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any


def apart(work: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a process of its own, and return its result."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


@contextmanager
def child(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a program, whose lines are read, until the context ends."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def line_from(process: subprocess.Popen[str]) -> str:
    """The next line that a program prints."""
    assert process.stdout is not None
    return process.stdout.readline()


def number_from(process: subprocess.Popen[str]) -> int:
    """The next number that a program prints."""
    return int(line_from(process))


def cpu_seconds(*pids: int) -> float:
    """The CPU time that processes have taken, by the clocks that Linux has for them."""
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def cpu_of_all() -> float:
    """CPU seconds of this process, of those under it that live (Ray's workers are three deep) and of those that ended."""
    import psutil

    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(one.user + one.system + one.children_user + one.children_system for one in times)


def memory(pid: int | str = "self") -> float:
    """The resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
