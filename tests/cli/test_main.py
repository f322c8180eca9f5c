"""The command itself: help and version at once, without what the commands need."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.metadata import version

import pytest
from click.testing import CliRunner

from tokenweir.cli import main

HEAVY = ("anyio", "asyncio", "ctranslate2", "jinja2", "numpy", "tokenweir.encode._core", "websockets")
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


@pytest.mark.parametrize(
    ("closing", "status"), [("<&-", 0), (">&-", 0), ("2>&-", 0), ("--tokenizer /nowhere 2>&-", 1), ("<&- >&- 2>&-", 0)]
)
def test_streams_that_are_closed(closing, status):
    command = f"{shlex.quote(sys.executable)} -m tokenweir count {closing}"
    result = subprocess.run(command, shell=True, input="", capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (status, "")
