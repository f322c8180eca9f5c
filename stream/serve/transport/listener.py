"""Listening sockets of processes that run out of file descriptors."""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from tokenweir.encode.base.platform import raise_file_limit

logger = logging.getLogger("tokenweir.serve")

LOG_INTERVAL = 10.0
"""Least seconds between two log lines about the same lack."""
SPARE_DESCRIPTORS = 64
"""File descriptors of a server besides those of its clients and their engines: files, event loop, libraries."""


class Listener(socket.socket):
    """Listening socket that makes room for a connection if the process has no file descriptor left for it.

    asyncio would log a traceback for each attempt, and make ever more of them.

    Args:
        listening: The socket, which is detached.
        make_room: Closes an idle connection, soon, and returns True; False if none is idle. Then the new connection is
            closed, by the descriptor that is kept in reserve for it.

    """

    def __init__(self, listening: socket.socket, make_room: Callable[[], bool]) -> None:
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._make_room = make_room
        self._reserve: int | None = os.open(os.devnull, os.O_RDONLY)
        self._logged_at = -LOG_INTERVAL

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; raise `BlockingIOError` if no connection waits, or there is no room for it yet."""
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._report(error)
            if not self._make_room():
                self._refuse()
            raise BlockingIOError(error.errno, error.strerror) from error

    def _refuse(self) -> None:
        """Accept a connection by the reserve's descriptor, and close it."""
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
        with suppress(OSError):
            super().accept()[0].close()
        with suppress(OSError):
            self._reserve = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        """Close the socket and the reserve."""
        super().close()
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None

    def _report(self, error: OSError) -> None:
        now = monotonic()
        if now - self._logged_at >= LOG_INTERVAL:
            self._logged_at = now
            logger.warning("connections are closed to accept others: %s; raise `ulimit -n`", error.strerror)


def raise_descriptor_limit(connections: int) -> None:
    """Raise this process's soft limit on file descriptors to what so many connections need, within the hard limit."""
    raise_file_limit(2 * connections + SPARE_DESCRIPTORS)  # a request may have a connection to an engine's server
