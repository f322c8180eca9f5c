"""A request of four times the size costs four times the steps, whatever it has many of."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from case_tables import cases
from counted_steps import count_steps
from request_shapes import HEADS, JOINS, MANY, SHAPES
from steps_of_requests import TIMES

CASES = cases(__file__)

SCRIPT = Path(__file__).parents[2] / "oracles" / "steps_of_requests.py"
MOST = 1.25 * TIMES
"""Longer requests have other costs besides, such as the checks of long JSON. A quadratic one has 16 times the steps."""


@pytest.fixture(scope="module")
def counts():
    """The status and the steps at two sizes of each shape, counted in a process whose modules are compiled for it."""
    done = subprocess.run([sys.executable, "-P", str(SCRIPT)], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_grow_as_the_request(shape, counts):
    found = {name: each for name, each in counts.items() if name.startswith(f"{shape}, by ")}
    assert found
    for name, (status, short, long) in found.items():
        assert status == (400 if shape in HEADS else 200), name
        assert long < MOST * short, f"{name}: {short} steps, and {long} for {TIMES} times as much"


def test_every_interface_has_shapes():
    paths = {shape(1)[0] for shape in (JOINS | HEADS | MANY).values()}
    assert paths >= set(CASES["every_interface_has_shapes"])


def test_copies_are_counted(tmp_path, monkeypatch):
    """Otherwise the other tests would show nothing."""
    (tmp_path / "counted").mkdir()
    (tmp_path / "counted" / "joins.py").write_text(
        "class Text:\n    text = ''\n"
        "    def grow(self, n):\n        for _ in range(n):\n            self.text += 'abcdefgh'\n"
        "def once(n):\n    return ''.join(['abcdefgh'] * n)\n"
        "def sums(n):\n    parts = ['']\n    for _ in range(n):\n        parts[0] = parts[0] + 'abcdefgh'\n"
        "def cut(text):\n    while text:\n        text = text[8:]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    steps = count_steps("counted.")
    from counted import joins  # type: ignore[import-not-found]

    def ratio(work):
        counts = []
        for size in (100, 400):
            before = steps.count
            work(size)
            counts.append(steps.count - before)
        return counts[1] / counts[0]

    assert ratio(joins.once) < 4.1
    assert ratio(joins.sums) > 14
    assert ratio(joins.Text().grow) > 10
    assert ratio(lambda n: joins.cut("a" * 8 * n)) > 14
