"""`tokenweir check`: its lines, its JSON and its exit code."""

from __future__ import annotations

import json
from functools import partial

from commands import EMBEDDED
from commands import run as run_command

run = partial(run_command, "check")


def test_the_embedded_model():
    result = run(EMBEDDED)
    assert result.exit_code == 0, result.output
    assert "✓ reads back: a call " in result.stdout
    assert result.stdout.endswith("30 hold, 1 to note, 0 faults, 5 do not apply\n")


def test_json():
    told = json.loads(run(EMBEDDED, "--json").stdout)
    assert told["model"] == str(EMBEDDED)
    assert told["findings"][0] == {"check": "renders", "verdict": "ok", "text": "a plain conversation", "example": ""}


def test_a_fault(tmp_path):
    path = tmp_path / "a.jinja"
    path.write_text("{{ raise_exception('no\x1b[31m') }}")
    result = run(path)
    assert result.exit_code == 1
    assert "✗ renders" in result.stdout
    assert "no␛[31m" in result.stdout


def test_another_template_of_a_model(tmp_path):
    path = tmp_path / "a.jinja"
    path.write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}assistant: ")
    result = run(EMBEDDED, "--template", path)
    assert result.exit_code == 0
    assert "an answer ends with an end token                     <|im_end|>" in result.stdout


def test_a_missing_template(tmp_path):
    (tmp_path / "tokenizer.json").write_bytes((EMBEDDED / "tokenizer.json").read_bytes())
    result = run(tmp_path)
    assert result.exit_code == 1
    assert result.stderr == "tokenweir: error: the tokenizer has no chat template\n"


def test_the_small_model(small_model):
    result = run("local")
    assert result.exit_code == 0, result.output
    assert " 0 faults" in result.stdout
