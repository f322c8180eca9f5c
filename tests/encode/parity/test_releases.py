"""A slice of bench/releases.py: the installed `tokenizers` agrees, and differences and refusals are told."""

from __future__ import annotations

import json
import re

import pytest


@pytest.fixture
def bench(import_bench):
    return import_bench("releases")


def test_the_installed_release_gives_the_same(data, run_bench):
    data("tokenizers/t5-small/tokenizer.json")
    data("corpora")
    printed, rows = run_bench("releases.py", "--every", "500", "--fuzz", "60", "--only", "t5-small")
    assert rows[0][2].startswith("tokenizers ")
    assert rows[2:] == []  # nothing differs
    same = re.search(r"^Other files without a difference: 1, of ([0-9,]+) texts\.$", printed, re.MULTILINE)
    assert same and int(same[1].replace(",", "")) > 100


def test_differences_and_refusals_are_told(bench, tmp_path):
    ours = {"ids": [[1], [2]], "text": ["a", "b"]}
    assert bench.compared({"answers": ours}, ours, ["a", "b"]) == ("0", "")
    other = {"ids": [[1], None], "text": ["x", "y"]}
    cell, example = bench.compared({"answers": other}, ours, ["long", "b"])
    assert cell == "1 ids, 2 text" and example == "ids of 'b': ours [2], theirs None"
    asked, file = tmp_path / "asked.json", tmp_path / "tokenizer.json"
    file.write_text("{}")
    asked.write_text(json.dumps({"file": str(file), "texts": ["a"]}))
    answer = bench.answer_for(asked)
    assert bench.compared(answer, ours, ["a"])[0] == f"refused: {answer['refusal'].partition('. ')[0]}"


def test_a_panic_is_an_answer_and_an_interrupt_is_none(bench):
    class Panic(BaseException):
        """As the library's are."""

    def raising(error):
        def call(*args, **options):
            raise error

        return call

    found = bench.answers(["a"], raising(Panic()), lambda ids, skip_special_tokens: "text")
    assert found["ids"] == [None] and found["text"] == ["text"]
    with pytest.raises(KeyboardInterrupt):
        bench.answers(["a"], raising(KeyboardInterrupt()), str)
