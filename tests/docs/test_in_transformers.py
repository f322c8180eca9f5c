"""The page on transformers: its examples run, and its table of reasons has those that occur."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tokenizers

import tokenweir
from tokenweir.integrations import report
from tokenweir.integrations.transformers.backend import Backend, is_backend

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "in-transformers.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```\{code-block\} python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
REASONS = re.findall(r"^\| ([\w ]+?) \| .* \|$", PAGE.partition("## What runs elsewhere")[2], re.MULTILINE)


def test_the_examples_run(data, monkeypatch, capsys):
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = str(data("tokenizers/qwen3"))
    names = {"tokenweir": tokenweir, "run": lambda: None}
    report(reset=True)
    try:
        for example in EXAMPLES:
            eval(compile(example.replace("Qwen/Qwen3-8B", folder), "example", "exec"), names)
    finally:
        tokenweir.unpatch_transformers()
    assert is_backend(names["tok"]._tokenizer)
    printed = capsys.readouterr().out.splitlines()
    assert printed and all(line.endswith(" None") for line in printed)


def test_the_reasons_that_occur_are_on_the_page(data):
    path = str(data("tokenizers/gpt2/tokenizer.json"))
    backend = Backend(tokenizers.Tokenizer.from_file(path))
    report(reset=True)
    backend.encode_special_tokens = True
    backend.encode("a")
    backend.encode_special_tokens = False
    backend.normalizer = tokenizers.normalizers.Nmt()
    backend.encode("a")
    reasons = {route.reason for route in report(reset=True)}
    assert "encode_special_tokens" in reasons & set(REASONS)
    assert any("Nmt" in reason for reason in reasons)
    assert "added tokens with ids that its JSON does not give" in REASONS
    assert "stride is not less than max_length" in REASONS
