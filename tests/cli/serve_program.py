"""The program `tokenweir serve`, and requests to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

import httpx

SERVE = (sys.executable, "-m", "tokenweir", "serve", "--port=0")


@contextmanager
def serve_process(*args, command=SERVE, **env):
    """A server that is being started, the leader of a group of processes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOKENWEIR")} | env
    with subprocess.Popen(
        [*command, *args], env=kept, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            signal_group(process, signal.SIGKILL)


@contextmanager
def server(*args, **options):
    """Run a server; gives the process and its address."""
    with serve_process(*args, **options) as process:
        line = process.stderr.readline()
        address = re.fullmatch(r".+ served at http://(\S+)\n", line)
        assert address, line + process.stderr.read()
        yield process, address[1]


def signal_group(process, number):
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def request(address, path, body=None, **headers):
    """Send a request over a connection of its own, with a body as JSON if one is given; return the response."""
    method = "GET" if body is None else "POST"
    return httpx.request(method, f"http://{address}{path}", json=body, headers=headers, timeout=30, trust_env=False)
