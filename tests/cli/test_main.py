"""The command itself: help and version at once, without what the commands need."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest
from case_tables import cases
from click.testing import CliRunner
from pseudo_terminal import take_ctrl_c

from tokenweir.cli import main

CASES = cases(__file__)

HEAVY = (
    "anyio",
    "asyncio",
    "ctranslate2",
    "numpy",
    "tokenweir.encode._core",
    "tokenweir.templates._native",
    "websockets",
)
HELP = f"""
import sys
from tokenweir.cli import main
main(["chat", "--help"], standalone_mode=False)
assert not set({HEAVY}) & set(sys.modules), sorted(set({HEAVY}) & set(sys.modules))
"""


def test_help_imports_nothing_heavy():
    result = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "--temperature" in result.stdout


def test_every_command_is_listed_with_its_purpose():
    text = CliRunner().invoke(main, ["--help"]).stdout
    for command in ("chat", "serve", "encode", "decode", "count", "render", "inspect"):
        assert f"\n  {command} " in text
        assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0


def test_version_and_the_module():
    result = subprocess.run(
        [sys.executable, "-m", "tokenweir", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"{version('tokenweir')}\n"


@pytest.mark.parametrize(("closing", "status", "told"), CASES["streams_that_are_closed_or_full"])
def test_streams_that_are_closed_or_full(closing, status, told):
    command = f"{shlex.quote(sys.executable)} -m tokenweir count {closing}"
    result = subprocess.run(command, shell=True, input="", capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (status, told)


def test_without_a_command_it_prints_its_help():
    alone, asked = (CliRunner().invoke(main, arguments) for arguments in ([], ["--help"]))
    assert (alone.exit_code, alone.stdout, alone.stderr) == (0, asked.stdout, "")


def test_ctrl_c_ends_by_its_own_code():
    command = [sys.executable, "-m", "tokenweir", "count", "--lines"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes, preexec_fn=take_ctrl_c) as process:  # noqa: PLW1509 - it takes no lock
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"1\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert b"Traceback" not in process.stderr.read()


def test_a_name_cannot_steer_the_terminal():
    for arguments in (["count", "--file", "/no\x1b[31m"], ["count", "--no\x1b[31m"], ["no\x1b[31m"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 2 and "\x1b" not in result.output


def test_memory_that_runs_out(monkeypatch):
    def run_out(*arguments):
        raise MemoryError

    monkeypatch.setattr("tokenweir.cli.count.load_tokenizer", run_out)
    result = CliRunner().invoke(main, ["count", "hi"])
    assert (result.exit_code, result.output) == (1, "tokenweir: error: out of memory\n")
