"""The step for datatrove writes the files of the original, byte by byte."""

from __future__ import annotations

import os

import pytest
from case_tables import cases

if os.environ.get("REQUIRE_ENGINE") != "datatrove":
    pytest.importorskip("datatrove")
from datatrove.data import Document
from datatrove.pipeline.tokens import DocumentTokenizer as Original

from tokenweir.corpus.datatrove import DocumentTokenizer

CASES = cases(__file__)

TEXTS = [*(f"Text {n}: naïve 你好 \U0001f600 {'word ' * (n % 50)}" for n in range(300)), "", "<|endoftext|>", " "]


def documents():
    for number, text in enumerate(TEXTS):
        ranges = [(number % 7, number % 7 + 9), (number % 60, len(text))][: number % 3]
        yield Document(text=text, id=str(number), metadata={"no_loss_ranges": ranges} if ranges else {})


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("tokenizer", ["gpt2", "llama-3.1", "qwen3"])
@pytest.mark.parametrize("options", CASES["the_files_of_the_original"])
def test_the_files_of_the_original(data, tmp_path, tokenizer, options):
    path = str(data(f"tokenizers/{tokenizer}/tokenizer.json"))
    options = {"seed": 0, **options}
    if tokenizer == "llama-3.1" and "eos_token" in options:
        options["eos_token"] = "<|end_of_text|>"
    for step, folder in ((Original, "theirs"), (DocumentTokenizer, "ours")):
        step(str(tmp_path / folder), path, **options).run(documents(), rank=4)
    theirs, ours = files(tmp_path / "theirs"), files(tmp_path / "ours")
    assert any(name.endswith(".ds") for name in theirs)
    assert ours == theirs
