"""Other projects' own suites, unmodified, under the patch.

TOKENWEIR_PEERS names a folder with their sources, which are not part of this repository: `tokenizers` and `fastokens` (their
repositories), `transformers`, `renderers` and `vllm` (their source packages; of vLLM the folder `tests` alone, so that the installed
package is imported). Each suite runs twice, without the patch and with it: what passes without must pass with it, except for the tests
that `LISTED` gives a reason for. Suites that are absent are skipped.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from case_tables import cases

CASES = cases(__file__)

HERE = Path(__file__).parent
PEERS = os.environ.get("TOKENWEIR_PEERS")
TIMEOUT = 1800
DRIVERS = ("transformers_suite.py", "golden_suite.py")
"""Test modules of this folder that run a project's tests for the tokenizers at hand."""


class Suite(NamedTuple):
    """A suite.

    Attributes:
        folder: Its project's folder.
        run_in: The folder in which pytest runs.
        files: What pytest is given.
        plugins: Plugins of this folder.
        needs: A package that has to be installed.

    """

    folder: str
    run_in: str
    files: tuple[str, ...]
    plugins: tuple[str, ...] = ("stand_ins",)
    needs: str | None = None


RENDERERS = CASES["renderers"]
RENDERED = ("Qwen3-8B", "Qwen2.5-0.5B", "Llama-3.2-1B", "GLM-4.7", "MiniMax", "Kimi-K2-Instruct", "Nemotron-3-Nano")
"""Models of `renderers_suite.py`, as parts of their names."""

VLLM = CASES["vllm"]
"""Files of vLLM's suite that need neither a model nor a GPU, and folders of them."""

SUITES = {
    "fastokens": Suite("fastokens", "python/tests", ("test_patch_transformers.py", "test_thread_safety.py")),
    "tokenizers": Suite(
        "tokenizers",
        "bindings/python",
        ("tests", "--ignore-glob=*benchmarks*", "--ignore-glob=*freethreaded*", "--ignore-glob=*golden*"),
    ),
    "golden": Suite("tokenizers/bindings/python/tests/golden", ".", (DRIVERS[1],)),
    "transformers": Suite("transformers", ".", (DRIVERS[0],)),
    "renderers": Suite(
        "renderers",
        ".",
        (*(f"tests/test_{name}.py" for name in RENDERERS), "-k", " or ".join(RENDERED)),
        ("stand_ins", "renderers_suite"),
        "renderers",
    ),
    "vllm": Suite(
        "vllm",
        ".",
        (*(f"tests/{name}" for name in VLLM), "-W", "ignore", "-k", "not Pixtral"),
        ("stand_ins", "vllm_suite"),
        "vllm",
    ),
}

LISTED = CASES["listed"]
"""Tests of a suite, by patterns of their names, that pass without the patch and fail with it, and why that is right."""


def outcomes(suite: Suite, root: Path, tmp: Path, data: Path, *, patched: bool) -> dict[str, str]:
    """Run a suite; return the outcome of each test."""
    found = tmp / f"{'patched' if patched else 'plain'}.xml"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "TOKENWEIR_DATA": str(data),
        "TOKENWEIR_PEERS_TMP": str(tmp),
        "TOKENWEIR_SUITE": str(root),
        "TOKENWEIR_PATCH": "1" if patched else "",
    }
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    command += [part for name in suite.plugins for part in ("-p", name)]
    command += [
        "-c",
        os.devnull,
        "--rootdir",
        str(root),
        "--import-mode=importlib",
        "-n0",
        "--continue-on-collection-errors",
    ]
    files = [
        shutil.copy(HERE / name, tmp) if name in DRIVERS else name for name in suite.files
    ]  # beside no conftest.py
    command += [f"--junitxml={found}", *files]
    run = subprocess.run(
        command, check=False, cwd=root / suite.run_in, env=environment, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert found.exists(), run.stdout[-3000:] + run.stderr[-3000:]
    results = {}
    for case in ElementTree.parse(found).iter("testcase"):
        bad = next((part for part in case if part.tag in ("failure", "error", "skipped")), None)
        name = f"{case.get('classname')}::{case.get('name')}"
        results[name] = "passed" if bad is None else f"{bad.tag}: {bad.get('message', '')[:200]}"
    return results


@pytest.mark.timeout(2 * TIMEOUT)
@pytest.mark.parametrize("name", SUITES)
def test_suite(name, data, tmp_path, record_property):
    suite = SUITES[name]
    root = Path(PEERS or "") / suite.folder
    if not PEERS or not root.exists():
        pytest.skip(f"TOKENWEIR_PEERS has no {suite.folder}")
    if suite.needs is not None and find_spec(suite.needs) is None:
        pytest.skip(f"{suite.needs} is not installed")
    files = data("tokenizers").parent
    plain = outcomes(suite, root, tmp_path, files, patched=False)
    patched = outcomes(suite, root, tmp_path, files, patched=True)
    passed = [test for test, outcome in plain.items() if outcome == "passed"]
    assert passed
    worse = {test: patched.get(test, "not run") for test in passed if patched.get(test) != "passed"}
    reached = f"{len(plain)} tests, {len(passed)} pass without the patch, {len(passed) - len(worse)} of them with it"
    record_property("reached", reached)
    logging.getLogger("peers").warning("%s: %s", name, reached)
    listed = LISTED.get(name, {})
    unlisted = {test: why for test, why in worse.items() if not any(re.search(pattern, test) for pattern in listed)}
    assert not unlisted, "\n".join(f"{test}: {why}" for test, why in unlisted.items())
    assert [pattern for pattern in listed if not any(re.search(pattern, test) for test in worse)] == []
