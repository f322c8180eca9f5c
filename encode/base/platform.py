"""Differences between operating systems; no other module asks for the system.

Linux has everything. macOS spreads no connections over the sockets of one port. Windows has neither `fork` nor unix
sockets nor a terminal by `termios`, and locks files in another way.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
    import resource
    import termios

HAS_WORKERS = sys.platform != "win32"
"""Whether several processes can serve one port: by signals, unix sockets and sockets that processes share."""

SPREADS_CONNECTIONS = sys.platform.startswith("linux")
"""Whether the system spreads connections over the sockets of one port. With SO_REUSEPORT on macOS, one gets all."""

END_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Signals that end a server. Windows sends SIGINT alone."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Options of glibc's `mallopt`."""


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lower_thread_priority() -> None:
    """Lower the priority of the calling thread (niceness 10), so that other threads and programs run first on a busy core.

    Only Linux has a niceness for a thread; elsewhere, and where a sandbox forbids it, this is a no-op.
    """
    if sys.platform.startswith("linux"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def thread_wait() -> float:
    """Return the seconds in all for which the calling thread was ready to run but had no core.

    Other threads had the core, or a quota of its group forbade to run. Only Linux counts them; elsewhere the result is 0.
    """
    if not sys.platform.startswith("linux"):
        return 0.0
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:  # a kernel, or a sandbox, without it
        return 0.0


def set_heap(*, mapped: int, trimmed: int, heaps: int) -> None:
    """Configure glibc's allocator, for all threads of this process; a no-op where the C library is another one.

    Args:
        mapped: Bytes from which on a block is mapped by itself, and so returned to the system when it is freed.
        trimmed: Free bytes at the end of a heap, above which they are returned to the system.
        heaps: The most heaps that threads share.

    """
    if not sys.platform.startswith("linux"):  # Windows cannot even ask for the functions of the process
        return
    import ctypes  # slow to load, and servers alone come here

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # musl, or a static executable
        return
    for option, value in ((_M_MMAP_THRESHOLD, mapped), (_M_TRIM_THRESHOLD, trimmed), (_M_ARENA_MAX, heaps)):
        mallopt(option, value)


def limit_unsent(connection: socket.socket, size: int) -> None:
    """Let at most `size` bytes wait unsent in the kernel's buffer of a socket; Linux and macOS can, elsewhere a no-op."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, size)


def raise_file_limit(wanted: int) -> None:
    """Raise this process's soft limit on file descriptors to `wanted`, within the hard limit; Windows has no such limit."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def call_after_fork(call: Callable[[], object]) -> None:
    """Call a function in each process that is forked from this one, before anything else; Windows has no `fork`."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def open_unfollowed(path: str | os.PathLike[str]) -> int:
    """Open a file for reading; return its descriptor. Symbolic links are not followed; opening a pipe does not wait."""
    names = ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY")  # Windows has the last one alone
    return os.open(path, sum((getattr(os, name, 0) for name in names), os.O_RDONLY))


def is_own_file(state: os.stat_result) -> bool:
    """Return whether the state of a file (`os.stat`) is that of a regular file that this user owns and no other may write.

    Windows has access lists instead of these bits: there, a file in the user's own folder counts as the user's.
    """
    if not stat.S_ISREG(state.st_mode):
        return False
    return sys.platform == "win32" or (state.st_uid == os.geteuid() and not state.st_mode & 0o022)


def lock_file(file: IO[str]) -> None:
    """Lock a file until it is closed; raise `OSError` at once if another process has it locked."""
    if sys.platform == "win32":
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def claim_port(listener: socket.socket, *, shared: bool) -> None:
    """Set the options of a socket before it is bound to a port.

    With `shared`, several processes may bind the same port and the system spreads connections over them, where it can.
    """
    if sys.platform == "win32":  # SO_REUSEADDR would let other programs take the port over
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        return
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared and SPREADS_CONNECTIONS:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


@contextmanager
def keys_unseen() -> Iterator[bool]:
    """Turn off the terminal's echo and line editing inside the context; typed keys stay for the next reader.

    Ctrl-C and Ctrl-Z still act. Yields True; False if there is no terminal, or on Windows, where nothing is changed.
    """
    if sys.platform == "win32":
        yield False
        return
    try:
        before = termios.tcgetattr(sys.stdin)
    except (termios.error, ValueError, OSError):  # not a terminal
        yield False
        return
    quiet = [*before[:3], before[3] & ~(termios.ECHO | termios.ICANON), *before[4:]]
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, quiet)
    try:
        yield True
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
