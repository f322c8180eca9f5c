"""`serve --workers`: processes that share an address, are replaced, die, and end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import run
from serve_program import request, serve_process, signal_group
from websockets.sync.client import connect

from tokenweir.stream.serve.wire.shared.ids import worker_of

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="the workers' ids are read from /proc")
IDS = [71] * 60


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """An engine that takes three seconds for an answer."""
    path = tmp_path_factory.mktemp("recordings") / "slow.json"
    path.write_text(json.dumps({"name": "slow", "prompt": "?", "ids": IDS, "waits_ms": [50] * len(IDS)}))
    return f"--engine=replay:{path}"


ONE_SOCKET = """\
import sys
from tokenweir.encode.base import platform
platform.SPREADS_CONNECTIONS = False
from tokenweir.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""
"""The program on a system that does not spread connections over the sockets of a port."""


def starting(*args, program=("-m", "tokenweir")):
    """A server of two workers that is being started."""
    return serve_process(*args, command=[sys.executable, *program, "serve", "--port=0", "--workers=2"])


@contextmanager
def server(*args, **options):
    with starting(*args, **options) as process:
        address = wait_for(process, " served at http://").split("http://")[1].strip()
        wait_for(process, "2 workers share the work.")
        yield process, address


def wait_for(process, text):
    """Read what the server says up to a line, and return that."""
    while text not in (line := process.stderr.readline()):
        assert line, f"it ended without {text!r}"
    return line


def workers(process):
    """The process ids of the workers: the children that are not Python's own helper."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def respond(address, **body):
    return request(address, "/v1/responses", {"input": "hi", "max_output_tokens": 1} | body).json()


def both_answer(address):
    """Ask until both workers have answered; one of them may still be starting."""
    names, deadline = set(), time.monotonic() + 30
    while len(names) < 2:
        answer = respond(address)
        assert answer["status"] == "incomplete"
        names.add(worker_of(answer["id"]))
        assert time.monotonic() < deadline


def until(websocket, kind):
    for message in websocket:
        event = json.loads(message)
        if event["type"] == kind:
            return event
        assert event["type"] not in ("error", "response.failed"), event
    raise AssertionError(f"the connection ended before {kind}")


def start(websocket, **fields):
    websocket.send(json.dumps({"type": "response.create", "input": "hi", **fields}))
    return until(websocket, "response.created")["response"]["id"]


@pytest.fixture(scope="module", params=["sockets", "one-socket"])
def running(request, slow, tmp_path_factory):
    """A server that several tests ask, and that ends well after all of them."""
    program = ["-m", "tokenweir"]
    if request.param == "one-socket":
        program = [tmp_path_factory.mktemp("program") / "program.py"]
        program[0].write_text(ONE_SOCKET)
    with server(slow, program=program) as (process, address):
        yield process, address
        signal_group(process, signal.SIGTERM)  # as a service manager does it; the parent sends word to all as well
        assert process.wait(30) == 0


def answered(address):
    """Return the number of answers that the metrics of all workers count, up to `max_output_tokens`."""
    counted = re.search(r'request_success_total\{finished_reason="length".*\} (\d+)', request(address, "/metrics").text)
    return int(counted[1]) if counted else 0


def test_two_workers_are_one_server(running):
    _, address = running
    before = answered(address)
    answers, deadline = [respond(address)], time.monotonic() + 30
    with ThreadPoolExecutor(4) as clients:
        # Which worker accepts a connection is up to the system: while one is idle, it may get them all.
        while len(answers) < 30 or len({worker_of(answer["id"]) for answer in answers}) < 2:
            continued = [answers[-1]["id"]] * 8
            answers += clients.map(lambda last: respond(address, previous_response_id=last), continued)
            assert time.monotonic() < deadline
    assert answered(address) - before == len(answers)


def test_a_stream_outlives_its_worker_s_replacement_and_nobody_is_turned_away(running):
    process, address = running
    before, first = set(workers(process)), respond(address)
    with connect(f"ws://{address}/v1/responses") as websocket:
        name = start(websocket)
        process.send_signal(signal.SIGHUP)
        answers, deadline = [], time.monotonic() + 30
        while not before.isdisjoint(workers(process)) or len(answers) < 5:  # new connections all the while
            answers.append(respond(address))
            if len(answers) == 5:
                last = until(websocket, "response.completed")
                assert last["response"]["id"] == name
                assert last["response"]["usage"]["output_tokens"] == len(IDS)
            assert time.monotonic() < deadline
    wait_for(process, "All workers are replaced")
    assert all(answer["status"] == "incomplete" for answer in answers)  # by max_output_tokens
    for earlier in (first["id"], name):  # whose workers are gone
        assert respond(address, previous_response_id=earlier)["status"] == "incomplete"


def test_a_worker_that_dies_is_started_again(running):
    process, address = running
    before = workers(process)
    os.kill(before[0], signal.SIGKILL)
    wait_for(process, "A worker has died, by exit code 9; another one takes its place.")
    both_answer(address)
    assert before[0] not in workers(process) and before[1] in workers(process)


SLOW_SECOND = """\
import os, sys, time
from pathlib import Path
from tokenweir.cli import main, serve
folder, load = Path({folder!r}), serve.load_model

def load_model(*args, **kwargs):
    is_second = len(list(folder.iterdir())) == 1
    (folder / str(os.getpid())).touch()
    while is_second and not (folder / "go").exists():
        time.sleep(0.01)
    return load(*args, **kwargs)

serve.load_model = load_model
if __name__ == "__main__":
    sys.exit(main())
"""


def test_a_worker_that_dies_before_the_last_one_has_started_is_started_again(slow, tmp_path):
    folder, program = tmp_path / "started", tmp_path / "program.py"
    folder.mkdir()
    program.write_text(SLOW_SECOND.format(folder=str(folder)))

    with starting(slow, program=[program]) as process:
        while len(started := list(folder.iterdir())) < 2:
            time.sleep(0.01)
        first = min(started, key=lambda path: path.stat().st_mtime_ns)
        os.kill(int(first.name), signal.SIGKILL)
        wait_for(process, "A worker has died, by exit code 9; another one takes its place.")
        (folder / "go").touch()
        address = wait_for(process, " served at http://").split("http://")[1].strip()
        wait_for(process, "2 workers share the work.")
        both_answer(address)


def test_workers_end_with_their_parent_and_let_answers_end(slow):
    with server(slow) as (process, address), connect(f"ws://{address}/v1/responses") as websocket:
        start(websocket)
        process.kill()
        assert until(websocket, "response.completed")["response"]["usage"]["output_tokens"] == len(IDS)
        with pytest.raises(AssertionError, match="the connection ended"):
            until(websocket, "anything")


def test_the_second_signal_cuts_answers_off(slow):
    with server(slow) as (process, address), connect(f"ws://{address}/v1/responses") as websocket:
        start(websocket)
        process.terminate()
        until(websocket, "response.output_text.delta")
        process.terminate()
        assert process.wait(10) == 9


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("--engine=vllm:http://127.0.0.1:1", "--engine-wait=0"), 1, "127.0.0.1:1"),
        (("--engine=nothing",), 2, "unknown engine 'nothing'"),
    ],
)
def test_what_cannot_start_says_so_once(args, code, text):
    command = [sys.executable, "-m", "tokenweir", "serve", "--port=0", "--workers=2", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert done.stderr.count(text) == 1 and "Traceback" not in done.stderr


def test_a_worker_that_dies_before_it_answers_ends_the_server(tmp_path):
    """A program without `if __name__ == "__main__"` cannot be run again for its workers: each ends at once."""
    program = tmp_path / "program.py"
    program.write_text("import sys\nfrom tokenweir.cli import main\nsys.exit(main())\n")
    command = [sys.executable, str(program), "serve", "--port=0", "--workers=2", "--engine=ngram"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "if __name__ == '__main__':" in done.stderr


def test_a_system_without_unix_sockets_refuses_workers_by_name(monkeypatch):
    monkeypatch.setattr("tokenweir.cli.serve.HAS_WORKERS", False)
    found = run("serve", "--port=0", "--workers=2", "--engine=ngram")
    assert found.exit_code == 2
    assert "--workers 2 needs POSIX signals and unix sockets" in found.stderr
