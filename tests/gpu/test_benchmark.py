"""The benchmark of the GPU runs, merges and writes; on a stand-in for CuPy, without a GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def bench(*args):
    return subprocess.run(
        [sys.executable, str(ROOT / "bench" / "gpu.py"), *map(str, args)], capture_output=True, text=True, check=False
    )


def test_sections_are_measured_merged_and_written(tmp_path, data, nvrtc):
    data("tokenizers/openai/cl100k_base.tiktoken")
    first, second, page = tmp_path / "first.json", tmp_path / "second.json", tmp_path / "RESULTS.md"
    for sections, out in ((("device",), first), (("kernels",), first), (("device", "power"), second)):
        run = bench("--smoke", *sections, "--out", out)
        assert run.returncode == 0, run.stderr
    assert list(json.loads(first.read_text())) == ["device", "kernels"]
    assert "encode_pieces" in json.loads(first.read_text())["kernels"]["numbers"]["64 MB, Chinese"]
    shutil.copy(ROOT / "bench" / "RESULTS.md", page)
    run = bench("--write", first, second, "--page", page)
    assert run.returncode == 0, run.stderr
    assert list(json.loads((tmp_path / "gpu.json").read_text())) == ["device", "kernels", "power"]
    assert page.read_text().count("NVIDIA Stand-in; ") == 3


def test_every_section_has_its_place_on_the_page():
    page = (ROOT / "bench" / "RESULTS.md").read_text()
    for section in bench("--list").stdout.split():
        assert page.count(f"<!-- gpu-{section}:begin -->") == page.count(f"<!-- gpu-{section}:end -->") == 1


def test_what_is_no_python_3_12_is_named():
    pack = [str(ROOT / "scripts" / "gpu_day"), "pack"]
    run = subprocess.run(pack, env=os.environ | {"PYTHON3_12": "false"}, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (
        1,
        "scripts/gpu_day needs a Python 3.12, and false is none: name one by PYTHON3_12\n",
    )


def test_an_unknown_section_is_named():
    run = bench("--smoke", "warp")
    assert run.returncode == 2
    assert "no section warp; there are correct, tests," in run.stderr
