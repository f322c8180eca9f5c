"""Other projects' own suites, unmodified, under the patch.

TOKENWEIR_PEERS names a folder with their sources, which are not part of this repository: `tokenizers` and `fastokens` (their
repositories), `transformers` (its source package). Each suite runs twice, without the patch and with it: what passes without
must pass with it, except for the tests that `LISTED` gives a reason for. Suites that are absent are skipped.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).parent
PEERS = os.environ.get("TOKENWEIR_PEERS")
TIMEOUT = 1800
DRIVER = "transformers_suite.py"


class Suite(NamedTuple):
    """A suite.

    Attributes:
        folder: Its project's folder.
        run_in: The folder in which pytest runs.
        files: What pytest is given.
        deselected: Tests that are not run, with the reason.

    """

    folder: str
    run_in: str
    files: tuple[str, ...]
    deselected: tuple[str, ...] = ()


SUITES = {
    "fastokens": Suite("fastokens", "python/tests", ("test_patch_transformers.py", "test_thread_safety.py")),
    "tokenizers": Suite(
        "tokenizers",
        "bindings/python",
        ("tests", "--ignore-glob=*benchmarks*", "--ignore-glob=*freethreaded*"),
    ),
    "transformers": Suite("transformers", ".", (DRIVER,)),
}

LISTED = {
    "tests.bindings.test_tokenizer.TestTokenizer::test_decode_stream_fallback": (
        "the first step repeats a character that the prompt's ids have begun; ours gives the new character only"
    ),
    "tests.bindings.test_tokenizer.TestTokenizer::test_multiprocessing_with_parallelism": (
        "expects that a fork hangs with parallelism; ours does not"
    ),
}
"""Tests that pass without the patch and fail with it, and why that is right."""


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
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "stand_ins", "-p", "no:cacheprovider", "--tb=short"]
    command += [
        "-c",
        os.devnull,
        "--rootdir",
        str(root),
        "--import-mode=importlib",
        "-n0",
        "--continue-on-collection-errors",
    ]
    driver = shutil.copy(HERE / "transformers_suite.py", tmp)  # beside no conftest.py
    files = [str(driver) if name == DRIVER else name for name in suite.files]
    command += [f"--junitxml={found}", *(f"--deselect={name}" for name in suite.deselected), *files]
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
    files = data("tokenizers").parent
    plain = outcomes(suite, root, tmp_path, files, patched=False)
    patched = outcomes(suite, root, tmp_path, files, patched=True)
    passed = [test for test, outcome in plain.items() if outcome == "passed"]
    assert passed
    worse = {test: patched.get(test, "not run") for test in passed if patched.get(test) != "passed"}
    reached = f"{len(plain)} tests, {len(passed)} pass without the patch, {len(passed) - len(worse)} of them with it"
    record_property("reached", reached)
    logging.getLogger("peers").warning("%s: %s", name, reached)
    assert worse.keys() == {test for test in LISTED if test in plain}, "\n".join(f"{k}: {v}" for k, v in worse.items())
