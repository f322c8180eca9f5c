"""scripts/venv compiles what changed, with build tools that stay where they are. pip and venv are doubles that keep their arguments."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PIP = """
import os, sys
from pathlib import Path

arguments = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
with open(os.environ["CALLS"], "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + chr(10))
if os.environ.get("FAILS") in arguments:
    sys.exit("error: " + os.environ["FAILURE"])
if "wheel" in arguments:
    print("  [0/2] Re-checking globbed directories...", flush=True)
    print("  [1/14] Building CXX object CMakeFiles/_core.dir/Unity/unity_encoder_cxx.cxx.o", flush=True)
    if "WAITS" in os.environ:  # until the line above is shown
        Path(os.environ["WAITS"]).read_bytes()
    print("  [3/14] Building CXX object CMakeFiles/nanobind-static.dir/unity_0_cxx.cxx.o", flush=True)
    if "WAITS" in os.environ:
        Path(os.environ["WAITS"]).read_bytes()
    folder = Path(sys.argv[sys.argv.index("--wheel-dir") + 1])
    folder.mkdir(exist_ok=True)
    (folder / "tokenweir-1-py3-none-any.whl").touch()
"""

VENV = """
import sys
from pathlib import Path

python = Path(sys.argv[-1], "bin", "python")
python.parent.mkdir(parents=True)
python.symlink_to(sys.executable)
"""


class Tree:
    """A tree of sources with scripts/venv, and its environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = root.parent / "calls"
        for folder in ("scripts", "encode", "stream", "templates", "gpu", "src"):
            (root / folder).mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "venv", root / "scripts")
        (root / "CMakeLists.txt").touch()
        self.require("nanobind>=2.9")
        doubles = root.parent / "doubles"
        for name, program in (("pip", PIP), ("venv", VENV)):
            (doubles / name).mkdir(parents=True)
            (doubles / name / "__init__.py").touch()
            (doubles / name / "__main__.py").write_text(program)
        self.environment = {
            **os.environ,
            "PYTHON": sys.executable,
            "PYTHONPATH": str(doubles),
            "CALLS": str(self.calls),
        }

    def require(self, requirement: str) -> None:
        (self.root / "pyproject.toml").write_text(f'[build-system]\nrequires = ["{requirement}"]\n')

    def command(self, *extras: str) -> list[str]:
        return [str(self.root / "scripts" / "venv"), str(self.root / ".venv"), *extras]

    def run(self, *extras: str, **variables: str) -> tuple[list[str], subprocess.CompletedProcess[str]]:
        """Return the calls of pip by this run, each without its options, and the process."""
        self.calls.write_text("")
        process = subprocess.run(
            self.command(*extras), check=False, env=self.environment | variables, capture_output=True, text=True
        )
        return self.calls.read_text().splitlines(), process


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path / "tree")


def words(call):
    return [word for word in call.split() if not word.startswith("--")]


def test_a_first_run_makes_a_wheel_and_a_second_one_nothing(tree):
    (tools, wheel, package, extras), process = tree.run("chat", "serve")
    assert process.returncode == 0
    assert process.stderr.startswith("Installing tokenweir into ")
    assert words(tools) == ["install", "cmake", "ninja", "nanobind>=2.9"]
    assert "--no-build-isolation" in wheel.split()
    made = tree.root / "build" / "package"
    kept = f"build-dir={tree.root}/build/kept/{{wheel_tag}}"
    assert words(wheel) == ["wheel", str(made), kept, str(tree.root)]
    assert words(package) == ["install", str(made / "tokenweir-1-py3-none-any.whl")]
    assert words(extras) == ["install", "tokenweir[chat,serve]"]
    calls, process = tree.run("chat", "serve")
    assert (calls, process.returncode, process.stderr) == ([], 0, "")


def test_a_change_keeps_the_build_tools(tree):
    tree.run("chat")
    (tree.root / "encode" / "new.cpp").touch()
    calls, process = tree.run("chat")
    assert process.returncode == 0
    assert [words(call)[0] for call in calls] == ["wheel", "install", "install"]
    assert "--force-reinstall" in calls[1].split()  # the version is the same


def test_another_requirement_makes_the_build_tools_anew(tree):
    tree.run("chat")
    tree.require("nanobind>=3")
    calls, _ = tree.run("chat")
    assert words(calls[0]) == ["install", "cmake", "ninja", "nanobind>=3"]
    assert [words(call)[0] for call in calls[1:]] == ["wheel", "install", "install"]


def test_another_extra_does_not_compile(tree):
    tree.run("chat")
    calls, _ = tree.run("serve")
    assert [words(call) for call in calls] == [["install", "tokenweir[serve]"]]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        ("bpe.h:3: no such type", "error: bpe.h:3: no such type"),
        ("NewConnectionError: refused", "there is no network, or no package index answers"),
    ],
)
def test_a_failure_is_told_and_tried_again(tree, failure, told):
    _, process = tree.run("chat", FAILS="wheel", FAILURE=failure)
    assert process.returncode == 1
    assert told in process.stderr
    calls, process = tree.run("chat")
    assert process.returncode == 0
    assert [words(call)[0] for call in calls] == ["wheel", "install", "install"]


def test_a_terminal_shows_what_is_compiled_and_what_is_left(tree, tmp_path):
    waits = tmp_path / "waits"
    os.mkfifo(waits)
    terminal, its_end = pty.openpty()
    process = subprocess.Popen(tree.command(), env=tree.environment | {"WAITS": str(waits)}, stderr=its_end)
    os.close(its_end)
    shown = ""

    def read_until(text):
        nonlocal shown
        while text not in shown:
            shown += os.read(terminal, 1000).decode()

    read_until("compiling 1 of 14, ")
    assert "left" not in shown
    waits.write_bytes(b"")
    read_until(" s left")
    assert "compiling 3 of 14, " in shown
    assert ", about " in shown
    waits.write_bytes(b"")
    assert process.wait() == 0
    os.close(terminal)
