"""Kernels with a line changed, each beside the kernels as they are; and a profile of the kernels as they are.

A variant is a package beside this one: links to all its files, and copies of the kernels with the change. A process of its
own imports it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from device.clock import Bench, Row, Rows
from shared.report import ROOT

import tokenweir


class Change(NamedTuple):
    """A part of a file in gpu/kernels, which has it once, and what stands there instead."""

    file: str
    old: str
    new: str


VARIANTS: dict[str, Change | None] = {
    "as it is": None,
    "no cuts": Change("cut.cu", "joins ? *joins :", "joins && n == 0 ? *joins :"),
    "6 blocks cut": Change("cut.cu", "__launch_bounds__(256, 5)", "__launch_bounds__(256, 6)"),
    "4 blocks cut": Change("cut.cu", "__launch_bounds__(256, 5)", "__launch_bounds__(256, 4)"),
    "8 blocks encode": Change("encode.cu", "__launch_bounds__(256, 6)", "__launch_bounds__(256, 8)"),
    "4 blocks encode": Change("encode.cu", "__launch_bounds__(256, 6)", "__launch_bounds__(256, 4)"),
    "tiny is 4 bytes": Change("common/pieces.cuh", "kTinyBytes = 8", "kTinyBytes = 4"),
    "short is 16 bytes": Change("common/pieces.cuh", "kShortBytes = 32", "kShortBytes = 17"),
}
"""Changes that answer whether cuts pay, what the registers of a kernel cost, and where the lengths of short pieces divide."""

MAIN = "cut_pieces|encode_pieces|merge_short_pieces|merge_pieces|collect_ids"
"""The kernels that are profiled."""


@contextmanager
def package(change: Change | None) -> Iterator[Path]:
    """A folder to be put first on the path, with the package as a variant has it."""
    own = Path(tokenweir.__path__[0])
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "tokenweir"
        for there, but in ((other, "gpu"), (other / "gpu", "kernels")):
            there.mkdir()
            for path in (own / there.relative_to(other)).iterdir():
                if path.name != but:
                    (there / path.name).symlink_to(path.resolve())
        kernels = other / "gpu" / "kernels"
        shutil.copytree(own / "gpu" / "kernels", kernels)
        if change:
            path = kernels / change.file
            before, *after = path.read_text("utf-8").split(change.old)
            if len(after) != 1:
                raise ValueError(f"{change.file} has {change.old!r} {len(after)} times")
            path.write_text(before + change.new + after[0], encoding="utf-8")
        yield Path(folder)


def run_variant(name: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run bench/gpu.py by a variant of the package."""
    with package(VARIANTS[name]) as folder:
        path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
        program = [sys.executable, str(ROOT / "bench" / "gpu.py"), *arguments]
        return subprocess.run(
            program, env={**os.environ, "PYTHONPATH": path}, check=False, capture_output=True, text=True
        )


def variants(bench: Bench) -> Rows:
    """Microseconds of exact mode's kernels, cl100k, 64 MB, with one change each; ids are compared with the CPU's."""
    for name in VARIANTS if not bench.smoke else ("as it is", "no cuts"):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "gpu.json"
            run = run_variant(name, ["kernels", "--out", str(out), *(["--smoke"] if bench.smoke else [])])
            if run.returncode:
                yield name, {"failed": run.stderr.strip().splitlines()[-1][:200].replace("|", "/")}
                continue
            for batch, row in json.loads(out.read_text("utf-8"))["kernels"]["numbers"].items():
                if batch.startswith("64 MB"):
                    yield f"{batch.partition(', ')[2]}, {name}", row


def profile(bench: Bench) -> Rows:
    """Nsight Compute's profile of the main kernels, in a file beside the results, whose name is in the table."""
    ncu = shutil.which("ncu", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if bench.smoke or ncu is None:
        yield "ncu", {"status": "not run", "file": "it needs a GPU, and to be on the PATH"}
        return
    file = bench.folder / "ncu.txt"
    options = ["--kernel-name", f"regex:^({MAIN})$", "--set", "detailed", "--launch-count", "20"]
    program = [sys.executable, str(ROOT / "bench" / "gpu.py"), "--profiled"]
    with file.open("w") as output:
        run = subprocess.run([ncu, *options, *program], check=False, stdout=output, stderr=subprocess.STDOUT)
    row: Row = {"status": str(run.returncode), "file": file.name}
    yield "ncu", row
