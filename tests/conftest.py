"""Fixtures of all tests: the folder of real tokenizers, texts and templates."""

from __future__ import annotations

import gc
import inspect
import os
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import hypothesis
import pytest
from full_run import EXAMPLES
from gguf_writer import gguf_bytes

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines import local_model

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TOKENWEIR_DATA") or ROOT.parent / "shared" / "data")

# No test may depend on the machine's speed: an example has no deadline, and none is too slow to be made. Under CI the
# examples are the same each time, so that a change is judged by what anyone can repeat; new ones are drawn elsewhere.
hypothesis.settings.register_profile(
    "tokenweir",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    max_examples=EXAMPLES,
)
hypothesis.settings.load_profile("tokenweir")


def pytest_pycollect_makeitem(collector, name, obj):
    """Run async tests on asyncio, unless they or their file are marked otherwise."""
    if name.startswith("test") and inspect.iscoroutinefunction(obj):
        own = {mark.name for mark in getattr(obj, "pytestmark", ())}
        if not own & {"anyio", "asyncio"} and not collector.get_closest_marker("anyio"):
            pytest.mark.asyncio(obj)


def pytest_collection_finish():
    """Freeze all objects loaded so far, so that no garbage collection scans them."""
    gc.collect()
    gc.freeze()


def data_path(name: str) -> Path:
    """Return the path of a file in ../shared/data; skip the test if it is absent, or fail it if REQUIRE_DATA=1."""
    path = DATA / name
    if not path.exists():
        reason = f"{path} is absent"
        if os.environ.get("REQUIRE_DATA") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def data():
    return data_path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Folder of a cache of the test's own, set as TOKENWEIR_CACHE; created when the first file is stored."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TOKENWEIR_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A CTranslate2 model folder with random weights, over the embedded vocabulary; greedy, it never says an end token."""
    pytest.importorskip("ctranslate2")
    folder = tmp_path_factory.mktemp("tiny_model")
    runpy.run_path(str(ROOT / "demos" / "tiny_model.py"))["write_with_tokenizer"](folder)
    return folder


CACHE = os.environ.get("TOKENWEIR_CACHE")


@pytest.fixture(scope="session")
def small_model():
    """The module `local_model`, with its model file in the user's cache, so that it is downloaded once.

    Skips the test if the file cannot be fetched, or fails it if REQUIRE_MODEL=1.
    """
    pytest.importorskip("ctranslate2")
    with pytest.MonkeyPatch.context() as environment:  # of the session, not of the test that asks first
        if CACHE is None:
            environment.delenv("TOKENWEIR_CACHE", raising=False)
        else:
            environment.setenv("TOKENWEIR_CACHE", CACHE)
        try:
            local_model.fetch_model()
            local_model.load_engine()  # which converts it once, and says so to whoever is first
        except EngineError as error:
            if os.environ.get("REQUIRE_MODEL") == "1":
                pytest.fail(str(error))
            pytest.skip(str(error))
        yield local_model


@pytest.fixture(scope="session")
def small_engine(small_model):
    """The engine of the small model, by CTranslate2."""
    return small_model.load_engine().plain


@pytest.fixture
def import_bench(monkeypatch):
    """Function that imports a module of `bench`, which is forgotten after the test."""
    folder = str(ROOT / "bench")
    monkeypatch.syspath_prepend(folder)
    yield import_module
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(folder):
            del sys.modules[name]


@pytest.fixture(scope="session")
def run_bench():
    """Function that runs a program of `bench` to a good end; returns what it printed, and the cells of its tables' rows."""

    def run(script, *options):
        program = [sys.executable, "-P", ROOT / "bench" / script, *options]
        path = os.pathsep.join([str(ROOT / "bench"), *sys.path])
        done = subprocess.run(
            program, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("|")]
        return done.stdout, [[cell.strip() for cell in row] for row in rows]

    return run


@pytest.fixture(scope="session")
def gguf():
    return gguf_bytes
