"""The kernels under ThreadSanitizer: no race between real threads, and a barrier that is missing is one.

A full run encodes all kinds of documents; others only those that take seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from full_run import FULL
from threads_device import DOCUMENTS

from tokenweir.gpu.kernels import SOURCES

PROGRAM = Path(__file__).parents[1] / "devices" / "threads_device.py"
KINDS = (*DOCUMENTS,) if FULL else ("medium",)
RACE = "WARNING: ThreadSanitizer: data race"


@cache
def sanitizer() -> str:
    """ThreadSanitizer's library; skips the test where the compiler has none."""
    found = subprocess.run(["g++", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)
    library = found.stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("g++ has no ThreadSanitizer")
    return library


def run(kind: str, *kernels: Path) -> subprocess.CompletedProcess[str]:
    """Encode the documents of a kind, and compare their ids."""
    return subprocess.run(
        # ThreadSanitizer wants addresses that are not random.
        ["setarch", "-R", sys.executable, "-P", str(PROGRAM), kind, *map(str, kernels)],
        env={
            **os.environ,
            "LD_PRELOAD": sanitizer(),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(PROGRAM.parent), os.environ.get("PYTHONPATH")))),
            "TSAN_OPTIONS": "report_signal_unsafe=0 halt_on_error=1 exitcode=0 history_size=4",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_no_thread_races_another(kind):
    done = run(kind)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:4000]
    assert done.stdout.startswith(f"{kind}: ")


@pytest.mark.timeout(600)
def test_a_missing_barrier_is_a_race(tmp_path):
    """The second barrier of a warp's merges: on a GPU, the minimum that follows makes lanes wait but orders no memory."""
    kernels = shutil.copytree(SOURCES, tmp_path / "kernels")
    merge = kernels / "merge.cu"
    parts = re.split(r"(__syncwarp\(\);)", merge.read_text("utf-8"))
    assert len(parts) >= 5
    merge.write_text("".join(part for place, part in enumerate(parts) if place != 3), encoding="utf-8")
    assert RACE in run("medium", kernels).stderr
