"""The demos of engines that distribute work run on these, and give the ids of `encode`.

`scripts/check --engines` has an environment for each engine. Elsewhere those that are not installed are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tokenweir import Tokenizer

pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")

DEMOS = Path(__file__).resolve().parents[2] / "demos" / "engines"
PACKAGES = {"ray": "ray", "spark": "pyspark", "daft": "daft", "dask": "distributed", "datasets": "datasets"}
TEXTS = [f"Text {n}: naïve 你好 \U0001f600 {'word ' * (n % 50)}" for n in range(3000)]


def required(package):
    """Skip the test without the package of an engine, unless that is the one to check."""
    if os.environ.get("REQUIRE_ENGINE") != package and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def run(name, *arguments, folder):
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "RAY_agent_register_timeout_ms": "600000",  # a machine that other work shares
        "RAY_raylet_start_wait_time_s": "600",
    }
    command = [sys.executable, DEMOS / f"on_{name}.py", *map(str, arguments)]
    found = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=folder, timeout=1780, check=False
    )
    assert found.returncode == 0, found.stderr[-3000:]


@pytest.fixture
def texts(tmp_path):
    """A folder with two Parquet files of texts."""
    (tmp_path / "texts").mkdir()
    for number in range(2):
        rows = range(number, len(TEXTS), 2)
        table = pa.table({"n": [*rows], "text": [TEXTS[row] for row in rows]})
        pq.write_table(table, tmp_path / "texts" / f"{number}.parquet")
    return tmp_path / "texts"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("engine", PACKAGES)
def test_ids_beside_the_other_columns(engine, texts, tmp_path):
    required(PACKAGES[engine])
    run(engine, texts, tmp_path / "ids", folder=tmp_path)
    tok, found = Tokenizer.default(), {}
    for path in (tmp_path / "ids").glob("*.parquet"):
        table = pq.ParquetFile(path).read()
        found |= dict(zip(table["n"].to_pylist(), table["input_ids"].to_pylist(), strict=True))
    assert found == {n: tok.encode(text) for n, text in enumerate(TEXTS)}


@pytest.mark.timeout(1800)
def test_files_of_datatrove(texts, data, tmp_path):
    required("datatrove")
    path = data("tokenizers/gpt2/tokenizer.json")
    run("datatrove", texts, tmp_path / "ids", path, folder=tmp_path)
    found = []
    for file in (tmp_path / "ids").glob("*.ds"):
        ends = np.fromfile(f"{file}.index", "<u8").astype(np.int64)
        found += [row.tolist() for row in np.split(np.fromfile(file, "<u2"), ends)[:-1]]
    tok = Tokenizer.from_file(path)
    assert sorted(found) == sorted([*tok.encode(text), tok.token_to_id("<|endoftext|>")] for text in TEXTS)


@pytest.mark.timeout(1800)
def test_files_of_curator(data, tmp_path):
    required("nemo_curator")
    path = data("tokenizers/gpt2/tokenizer.json")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    run("curator", tmp_path / "texts", tmp_path / "ids", path, folder=tmp_path)
    (file,) = (tmp_path / "ids").glob("*.bin")
    tok = Tokenizer.from_file(path)
    assert np.fromfile(file, "<u2").tolist() == [
        id for text in TEXTS for id in [*tok.encode(text), tok.token_to_id("<|endoftext|>")]
    ]
