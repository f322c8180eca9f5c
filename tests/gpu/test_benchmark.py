"""The benchmark of the GPU runs, merges and writes; on a stand-in for CuPy, without a GPU."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command, **environment):
    """Run a command in the root of the tree; return the process."""
    command = [*map(str, command)]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)


def bench(*args, **environment):
    return run(sys.executable, "bench/gpu.py", *args, **environment)


def program(source, *args, **environment):
    """Run a program that imports from `bench`; return what it printed."""
    done = run(
        sys.executable, "-c", source, *args, PYTHONPATH=f"bench:{os.environ.get('PYTHONPATH', '')}", **environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sections_are_measured_merged_and_written(tmp_path, data, nvrtc):
    data("tokenizers/openai/cl100k_base.tiktoken")
    first, second, page = tmp_path / "first.json", tmp_path / "second.json", tmp_path / "RESULTS.md"
    for sections, out in ((("device",), first), (("kernels",), first), (("device", "power"), second)):
        done = bench("--smoke", *sections, "--out", out, TOKENWEIR_COMMIT="abcd1234")
        assert done.returncode == 0, done.stderr
    of = json.loads(first.read_text())["device"]["of"]
    assert of[0] == "at abcd1234" and "tokenizers " in of[1]
    assert list(json.loads(first.read_text())) == ["device", "kernels"]
    assert "encode_pieces" in json.loads(first.read_text())["kernels"]["numbers"]["64 MB, English"]
    shutil.copy(ROOT / "bench" / "RESULTS.md", page)
    done = bench("--write", first, second, "--page", page)
    assert done.returncode == 0, done.stderr
    assert list(json.loads((tmp_path / "gpu.json").read_text())) == ["device", "kernels", "power"]
    sections = page.read_text().partition("<!-- gpu:begin -->\n")[2].partition("<!-- gpu:end -->")[0]
    assert sections.count("NVIDIA Stand-in; ") == 3


def test_a_section_that_is_cut_off_keeps_its_rows_and_takes_no_whole_ones_place(tmp_path, data, nvrtc):
    """Here by the second vocabulary, which is not there."""
    name, whole, page = "gpt2/tokenizer.json", tmp_path / "whole.json", tmp_path / "RESULTS.md"
    shutil.copytree(data("corpora"), tmp_path / "data" / "corpora")
    (tmp_path / "data" / "tokenizers" / "gpt2").mkdir(parents=True)
    shutil.copy(data("tokenizers") / name, tmp_path / "data" / "tokenizers" / name)
    out, again = tmp_path / "gpu.json", tmp_path / "again.json"
    assert bench("--smoke", "correct", "--out", out, TOKENWEIR_DATA=str(tmp_path / "data")).returncode == 1
    cut_off = json.loads(out.read_text())["correct"]
    assert (cut_off["finished"], [*cut_off["numbers"]]) == (False, [name])
    shutil.copy(ROOT / "bench" / "RESULTS.md", page)
    bench("--write", out, "--page", page)
    assert f"Python {platform.python_version()}; " in page.read_text() and "; it was cut off\n" in page.read_text()

    whole.write_text(json.dumps({"correct": cut_off | {"finished": True, "device": "whole"}}))
    shutil.copy(out, again)
    shorter = tmp_path / "shorter.json"
    shorter.write_text(json.dumps({"correct": cut_off | {"numbers": {}, "device": "shorter"}}))
    bench("--write", out, shorter, "--page", page)
    assert json.loads((tmp_path / "gpu.json").read_text())["correct"] == cut_off, "what has more rows stays"
    for files in ([whole, again], [again]):
        bench("--write", *files, "--page", page)
        assert json.loads((tmp_path / "gpu.json").read_text())["correct"]["device"] == "whole"
    assert "\nwhole; " in page.read_text()


def test_compute_sanitizer_is_shown_every_kernel(data, nvrtc):
    data("tokenizers/sp-test-unigram-ja/tokenizer.model")
    source = """
from device.checks import once
from device.clock import Bench
from tokenweir.gpu.kernels import Kernels, kernel_names, kernel_sources
names, of_name = {name for source in kernel_sources() for name in kernel_names(source)}, Kernels.__getitem__
Kernels.__getitem__ = lambda kernels, name: (names.discard(name), of_name(kernels, name))[1]
bench = Bench(smoke=True)
with bench.device.use():
    once(bench)
print(*names)
"""
    assert program(source) == "\n"


def test_what_warps_do_is_counted():
    """A sector for each lane whose place has its own, a few for neighbouring places; and steps only of warps that take them."""
    source = """
import numpy as np
from device.counted import BLOCKS, MEMORY, CountedDevice
for flags in (MEMORY, BLOCKS):
    for places in (np.arange(64), 8 * np.arange(64), np.arange(32)):
        device = CountedDevice(flags)
        arrays = (device.to_device(array.astype(np.uint32)) for array in (places, places))
        device.launch("put_ids", 1, 256, *arrays, np.uint32(len(places)), *device.words([512, 16], zero=True))
        print(*device.counts["put_ids"])
"""
    near, far, half, *executed = (tuple(map(int, line.split())) for line in program(source).splitlines())
    assert 2 * (4 + 4 + 4 + 1) <= near[1] <= 2 * (5 + 5 + 5 + 1) + 8
    assert 54 <= far[1] - near[1] <= 68
    assert half[1] < near[1] and near[2] >= near[3] > half[3]
    assert 3 <= near[5] <= 5
    both, _, one = (counts[0] for counts in executed)
    assert 0 < one < both < 2 * one


def test_a_time_is_taken_after_a_first_run_that_warms_up():
    """By a clock that runs count forward: the first takes five seconds, the others as long as `each`."""
    source = """
from device import peers
def clocked(each):
    now, runs = [0.0], []
    peers.time.perf_counter = lambda: now[0]
    def run():
        now[0] += each if runs else 5.0
        runs.append(each)
    return peers.median_seconds(run, 20), len(runs)
print(clocked(0.01), clocked(0.125), clocked(3.0))
"""
    found = [tuple(map(float, pair.strip("() \n").split(","))) for pair in program(source).split(") (")]
    assert [(pytest.approx(seconds), runs) for seconds, runs in found] == [(0.01, 21), (0.125, 4), (3.0, 2)]


def test_prompts_of_agieval_are_made_where_its_texts_are(tmp_path):
    source = """
import sys
from shared.agieval import EXAMS
from shared.table1 import prompts
if sys.argv[1:]:
    for name in (name for exam in EXAMS.values() for name in exam.files):
        open(f"{sys.argv[1]}/{name}.jsonl", "w")
    open(f"{sys.argv[1]}/sat-en.jsonl", "w").write('{"passage": "Rain.", "question": "Wet?", "options": ["(A)Yes", "(B)No"]}\\n')
    open(f"{sys.argv[1]}/gaokao-mathcloze.jsonl", "w").write('{"passage": null, "question": "1+1", "options": null}\\n')
print(list(prompts().items())[4:])
"""
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "gsm8k-test.jsonl").write_text('{"question": "?", "answer": "!"}\n' * 5)
    english, chinese = (
        "Rain.Q: Wet? Answer Choices: (A)Yes (B)No\nA: Among A through B, the answer is",
        "问题：1+1\n答案：",
    )
    wanted = [("AGIEval, English", [english]), ("AGIEval, Chinese", [chinese]), ("AGIEval, all", [english, chinese])]
    for folder, found in (((), []), ((str(tmp_path / "agieval"),), wanted)):
        for path in map(Path, folder):
            path.mkdir()
        assert program(source, *folder, TOKENWEIR_DATA=str(tmp_path), TOKENWEIR_AGIEVAL="") == f"{found}\n"


def test_what_is_no_python_3_12_is_named():
    done = run("scripts/gpu_day", "pack", PYTHON3_12="false")
    assert (done.returncode, done.stderr) == (
        1,
        "scripts/gpu_day needs a Python 3.12, and false is not one: name one by PYTHON3_12\n",
    )


def test_a_run_names_what_failed_and_what_is_left(tmp_path):
    """With a Python that only says how each section ends; `killed` is by the time that is over."""
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\n[ "$1" = bench/gpu.py ] || exit 0\ncase $2 in fails | --list) exit 1 ;; killed) exit 124 ;; *) echo "is $2" ;; esac\n'
    )
    python.chmod(0o755)

    def day(*sections, **environment):
        return run("scripts/gpu_day", "run", *sections, PYTHON=str(python), OUT=str(tmp_path / "out"), **environment)

    found = day("first", "fails", "killed", "last")
    assert (found.returncode, found.stdout.splitlines()[-4:]) == (
        1,
        ["is first", "is last", "failed: fails", "left: scripts/gpu_day run killed"],
    )
    with tarfile.open(tmp_path / "out" / "gpu_day.tar") as archive:
        assert archive.extractfile("./gpu.log").read() == b"is first\nis last\n"
    assert day("first").returncode == 0
    found = day("first", "last", LIMIT="0")
    assert (found.returncode, found.stdout.splitlines()[-1]) == (1, "left: scripts/gpu_day run first last")

    assert day().returncode == 1, "the benchmark does not even name its sections"

    python.write_text(
        '#!/bin/sh\n[ "$1" = bench/gpu.py ] || exit 0\n'
        'case $2 in --list) printf "correct\\ntests\\nfirst\\n" ;; tests) exit 1 ;; *) echo "is $2 into ${4##*/}" ;; esac\n'
    )
    found = day()
    assert (found.returncode, found.stdout.splitlines()[-3:]) == (
        1,
        ["is correct into correct.json", "is first into gpu.json", "failed: tests"],
    )

    timeout = tmp_path / "timeout"
    timeout.write_text('#!/bin/sh\necho "$5 has $2 seconds"\n')
    timeout.chmod(0o755)
    found = day("first", "last", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert found.stdout.splitlines()[-2:] == ["first has 160 seconds", "last has 160 seconds"]


def test_an_unknown_section_is_named():
    done = bench("--smoke", "warp")
    assert done.returncode == 2
    assert "no warp; there are correct, tests," in done.stderr


def test_a_variant_is_a_package_with_one_change():
    """Every one can be made of the kernels as they are."""
    source = """
from pathlib import Path
from device.variants import VARIANTS, package
for name, change in VARIANTS.items():
    with package(change) as folder:
        same = [path for path in Path("gpu/kernels").rglob("*.cu*")
                if (folder / "tokenweir" / path).read_text() != path.read_text()]
        assert [str(path) for path in same] == ([f"gpu/kernels/{change.file}"] if change else []), name
        assert (folder / "tokenweir" / "encode" / "tokenizer.py").read_text()
print("made")
"""
    assert program(source) == "made\n"


def test_sections_of_processes_of_their_own(tmp_path, data, nvrtc):
    data("tokenizers/openai/cl100k_base.tiktoken")
    out = tmp_path / "gpu.json"
    done = bench("--smoke", "pinned", "profile", "--variant", "no cuts", "--out", out)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert "copy, the default" in found["pinned"]["numbers"] and found["profile"]["finished"]


def test_threads_and_instructions_are_measured_without_a_device(tmp_path, data):
    data("tokenizers/openai/cl100k_base.tiktoken")
    out = tmp_path / "gpu.json"
    done = bench("--smoke", "threads", "--out", out)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["threads"]
    assert (found["device"], found["finished"]) == ("no GPU", True)
    assert found["numbers"]["64 MB, English, tokenweir portable, 1"]["GB/s"] > 0
