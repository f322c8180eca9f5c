"""`bench/museum.py`: this library passes every stream, and the verdict tells wrong and late text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def museum(monkeypatch, data):
    """The module of the benchmark."""
    data("tokenizers/qwen3")
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import museum

    yield museum
    for name in [name for name in sys.modules if name == "museum" or name.split(".")[0] == "shared"]:
        del sys.modules[name]


def test_every_stream_is_right_here(museum):
    streams = museum.streams()
    assert len(streams) >= 10
    assert {one.name: museum.verdict(one, museum.tokenweir_) for one in streams} == {
        one.name: "right" for one in streams
    }


def test_a_verdict_tells_what_is_wrong(museum):
    one = next(each for each in museum.streams() if "never become" in each.name)
    assert museum.verdict(one, lambda stream: ["x"]) == f"'x' for {one.text[:12]!r}"
    late = [""] * (len(one.chunks) - 1) + [one.text]
    assert museum.verdict(one, lambda stream: late) == f"silent for {len(one.chunks) - 1} ids"
    assert museum.verdict(one, lambda stream: 1 // 0) == "raises ZeroDivisionError"
    assert museum.verdict(one, lambda stream: None) == "-"
