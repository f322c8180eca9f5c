"""The demos run as their users run them, and end with what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMOS = Path(__file__).resolve().parents[2] / "demos"


def run(name, *args):
    env = os.environ | {"PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}
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


def test_inference_loop():
    pytest.importorskip("ctranslate2")
    result = run("inference_loop.py")
    lines = result.stdout.splitlines()
    assert re.fullmatch(r"prompt: \d+ ids, 1 of them <\|im_end\|>", lines[0])  # the user's text is none
    assert re.fullmatch(r"ended by (stop|length) \(.+\) after \d+ of the engine's ids", lines[-1])
    assert result.stderr == ""


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
    assert set(again) == {"model.bin", "config.json", "vocabulary.json"}
    assert again["model.bin"] == (tiny_model / "model.bin").read_bytes()
