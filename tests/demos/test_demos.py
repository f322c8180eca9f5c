"""The demos run as their users run them, and end with what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMOS = Path(__file__).resolve().parents[2] / "demos"


def run(name, *args, path=""):
    """Run a demo; `path` has modules that stand before the installed ones."""
    paths = os.pathsep.join(filter(None, (str(path), os.environ.get("PYTHONPATH"))))
    env = os.environ | {"PYTHONUTF8": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    result = subprocess.run(
        [sys.executable, DEMOS / name, *args], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    return result


def test_chat_terminal():
    result = run("chat_terminal.py", "What is this?")
    assert "This is a recording, not a model." in result.stdout
    assert re.search(r"\[stop: \d+ tokens, \d+ of them thinking\]\n$", result.stdout)
    assert "nobody is thinking here" in result.stderr
    assert "think>" not in result.stdout + result.stderr


def test_chat_websocket():
    result = run("chat_websocket.py")
    events = re.findall(r"^<(response\.\w+)>$", result.stdout, re.MULTILINE)
    assert events[:2] == ["response.created", "response.in_progress"]
    assert events[-1] in ("response.completed", "response.incomplete")
    assert result.stderr == ""


def test_inference_loop_over_steps():
    pytest.importorskip("ctranslate2")
    result = run("inference_loop.py", "steps")
    _, prompt, *_, last = result.stdout.splitlines()
    assert re.fullmatch(r"prompt: \d+ ids, 1 of them <\|im_end\|>", prompt)  # the user's text has no control token
    assert re.fullmatch(r"ended by (stop|length) \(.+\) after \d+ of the engine's ids", last)
    assert result.stderr == ""


def test_inference_loop_of_a_server():
    pytest.importorskip("ctranslate2")
    result = run("inference_loop.py", "server")
    first, second = result.stdout.splitlines()[1:]
    assert first
    assert first != second
    assert result.stderr == ""


def test_inference_loop_in_transformers():
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    last = run("inference_loop.py", "streamer").stdout.splitlines()[-1]
    assert re.fullmatch(r"ended by (stop|length) \(.+\) after \d+ of the engine's ids", last)


def test_inference_loop_says_what_is_missing(tmp_path):
    for name in ("ctranslate2", "torch"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError({name!r}, name={name!r})")
    out = run("inference_loop.py", path=tmp_path).stdout
    assert re.findall("left out: (.+) is not installed; pip install (.+)", out) == [
        ("ctranslate2", "ctranslate2"),
        ("ctranslate2", "ctranslate2"),
        ("torch", "torch transformers"),
    ]


def test_ingest_prompts():
    lines = run("ingest_prompts.py", "--prompts", "300").stdout.splitlines()
    counts = [
        re.match(r"(.+): (300 prompts, [\d.]+ MB, [\d,]+ ids); [\d,]+ prompts/s, [\d.]+ MB/s$", line) for line in lines
    ]
    assert [found[1] for found in counts[:2]] == ["in order", "64 callers"]
    assert counts[0][2] == counts[1][2]
    assert re.fullmatch(r"(\d+) batches, \1 of them on the CPU", lines[2])
    assert lines[3] == "the first prompt has 1 <|im_end|>: what its user wrote is none"


def test_tiny_model_is_the_same_every_time(tmp_path, tiny_model):
    run("tiny_model.py", str(tmp_path / "again"))
    again = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    assert set(again) >= {"model.bin", "config.json", "vocabulary.json", "tokenizer.json"}
    assert again["model.bin"] == (tiny_model / "model.bin").read_bytes()
