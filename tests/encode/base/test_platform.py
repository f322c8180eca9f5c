import ctypes
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tokenweir.encode.base import platform


def test_cores_are_those_that_the_process_may_use():
    assert 1 <= platform.usable_cores() <= os.cpu_count()


def test_systems_without_affinity_count_all_cores(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert platform.usable_cores() == os.cpu_count()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness for a thread")
def test_the_priority_of_one_thread_alone_is_lowered():
    def niceness():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = niceness()
    with ThreadPoolExecutor(1, initializer=platform.lower_thread_priority) as thread:
        assert thread.submit(niceness).result() == 10
    assert niceness() == before


def test_a_thread_waits_while_others_have_its_core(monkeypatch):
    assert platform.thread_wait() >= 0
    monkeypatch.setattr(platform.sys, "platform", "darwin")
    assert platform.thread_wait() == 0


@pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="the kernel does not count it")
def test_a_busy_core_is_waited_for():
    core = min(os.sched_getaffinity(0))
    command = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", command]) as other:

        def wait_on_the_same_core():
            os.sched_setaffinity(0, {core})  # of this thread alone
            before, worked = platform.thread_wait(), time.thread_time()
            while platform.thread_wait() - before < 0.01:
                assert time.thread_time() - worked < 20
            return True

        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(wait_on_the_same_core).result()
        other.kill()


def test_a_sandbox_may_forbid_to_lower_a_priority(monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse, raising=False)
    platform.lower_thread_priority()


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError):
        platform.open_unfollowed(tmp_path / "link")


def test_a_pipe_without_a_writer_opens_at_once_and_is_no_own_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    descriptor = platform.open_unfollowed(tmp_path / "pipe")
    try:
        assert not platform.is_own_file(os.fstat(descriptor))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(("mode", "own"), [(0o600, True), (0o644, True), (0o664, False), (0o646, False)])
def test_a_file_that_others_may_write_is_not_ones_own(tmp_path, mode, own):
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    assert platform.is_own_file(path.stat()) is own


def test_a_locked_file_is_locked_for_other_processes_until_it_is_closed(tmp_path):
    def try_elsewhere():
        program = "import sys; from tokenweir.encode.base.platform import lock_file; lock_file(open(sys.argv[1], 'w'))"
        command = [sys.executable, "-c", program, tmp_path / "lock"]
        return subprocess.run(command, capture_output=True, check=False).returncode

    with open(tmp_path / "lock", "w") as file:
        platform.lock_file(file)
        assert try_elsewhere() == 1
    assert try_elsewhere() == 0


@pytest.mark.parametrize("spreads", [True, False])
def test_a_port_is_shared_only_where_connections_are_spread(monkeypatch, spreads):
    monkeypatch.setattr(platform, "SPREADS_CONNECTIONS", spreads)
    with socket.socket() as first, socket.socket() as second:
        for listener in (first, second):
            platform.claim_port(listener, shared=True)
        first.bind(("127.0.0.1", 0))
        first.listen()
        if spreads:
            second.bind(first.getsockname())
        else:
            with pytest.raises(OSError):
                second.bind(first.getsockname())


def test_keys_are_seen_where_there_is_no_terminal(monkeypatch, tmp_path):
    with open(tmp_path / "input", "w+") as file:
        monkeypatch.setattr(sys, "stdin", file)
        with platform.keys_unseen() as unseen:
            assert unseen is False


def test_other_systems_have_no_heap_to_set(monkeypatch):
    def refuse(name):
        raise TypeError("LoadLibrary() argument 1 must be str, not None")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    for system in ("win32", "darwin"):
        monkeypatch.setattr(platform.sys, "platform", system)
        platform.set_heap(mapped=1 << 17, trimmed=1 << 20, heaps=2)


@pytest.mark.parametrize(
    "error", [AttributeError("Symbol not found: mallopt"), OSError("Dynamic loading not supported")]
)
def test_another_c_library_has_no_heap_to_set(monkeypatch, error):
    class Library:
        def __getattr__(self, name):
            raise error

    monkeypatch.setattr(platform.sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    platform.set_heap(mapped=1 << 17, trimmed=1 << 20, heaps=2)


def test_a_system_without_fork_calls_nothing_after_it(monkeypatch):
    monkeypatch.delattr(os, "register_at_fork", raising=False)
    platform.call_after_fork(pytest.fail)


def test_a_system_without_the_option_leaves_a_socket_alone(monkeypatch):
    monkeypatch.delattr(socket, "TCP_NOTSENT_LOWAT", raising=False)
    with socket.socket() as connection:
        platform.limit_unsent(connection, 1 << 14)


QUESTIONS = re.compile(
    r"sys\.platform|\bos\.name\b|\bhasattr\((os|signal|socket|time)\b|register_at_fork|/proc/|"
    r"^\s*(import|from) (ctypes|fcntl|grp|msvcrt|platform|pwd|resource|termios|winreg)\b",
    re.MULTILINE,
)


def test_no_other_module_asks_for_the_system():
    root = Path(platform.__file__).resolve().parents[1]
    folders = ("encode", "gpu", "stream", "templates", "src")
    asking = [
        f"{path.relative_to(root)}: {found[0]}"
        for folder in folders
        for path in (root / folder).rglob("*.py")
        if path != Path(platform.__file__).resolve() and (found := QUESTIONS.search(path.read_text())) is not None
    ]
    assert asking == []
