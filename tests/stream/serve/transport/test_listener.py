"""A server in a process with few file descriptors: one line of log, and newcomers are still answered."""

import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest
from case_tables import cases

from tokenweir.stream.serve.transport.listener import Listener, raise_descriptor_limit

CASES = cases(__file__)

LIMIT = 64
SERVER = f"""
import asyncio, resource, sys
import tokenweir
from tokenweir.stream.engines.no_engine import NoEngine

async def main():
    tokenizer = tokenweir.Tokenizer.default()
    async with tokenweir.serve(engine=NoEngine(), tokenizer=tokenizer, port=0) as server:
        resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, {LIMIT}))
        print(server.port, flush=True)
        await server.serve_forever()

asyncio.run(main())
"""
GET = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def port():
    """The port of a server with few file descriptors, which must write few lines to its log."""
    command = [sys.executable, "-P", "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGKILL)
        log = process.stderr.read()
    assert log.count("\n") <= 3, log[:2000]
    assert "ulimit -n" in log


def connected(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=20)
    client.settimeout(20)
    return client


def test_newcomers_are_answered_while_idle_connections_take_all_descriptors(port):
    with ExitStack() as stack:
        for _ in range(4 * LIMIT):
            stack.enter_context(connected(port))
        newcomer = stack.enter_context(connected(port))
        newcomer.sendall(GET)
        assert newcomer.recv(1 << 12).startswith(b"HTTP/1.1 200 ")
    with connected(port) as later:
        later.sendall(GET)
        assert later.recv(1 << 12).startswith(b"HTTP/1.1 200 ")


@pytest.fixture
def exhausted(caplog):
    """A listening socket without room, in a process whose descriptors are all in use."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    made = Listener(listening, lambda: False)
    client = connected(made.getsockname()[1])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 8, before[1]))
    held = []
    try:
        while True:
            try:
                held.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        yield made, client
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        client.close()
        made.close()


def test_a_connection_is_closed_by_the_reserve_where_none_is_idle(exhausted, caplog):
    made, client = exhausted
    for _ in range(50):
        with pytest.raises(BlockingIOError):
            made.accept()
    assert client.recv(1) == b""
    assert len(caplog.records) == 1


@pytest.mark.parametrize(("soft", "hard", "wanted"), CASES["the_limit_is_raised_to_what_the_connections_need"])
def test_the_limit_is_raised_to_what_the_connections_need(soft, hard, wanted, monkeypatch):
    calls = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: calls.append(limits))
    raise_descriptor_limit(1024)
    assert calls == ([] if wanted is None else [(wanted, hard)])
