"""Tokenizer files that were published beside a model or a library: ids, offsets and decoded text are the reference library's."""

from __future__ import annotations

import pytest
import tiktoken.load
from case_tables import cases
from full_run import share

from tokenweir import Tokenizer
from tokenweir.verify import adversarial, comparison, references

CASES = cases(__file__)

FILES = CASES["files"]
PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@pytest.mark.parametrize("name", FILES)
def test_published_files(data, name, tmp_path):
    path = data(f"fidelity-4/tokenizers/{name}")
    alone = tmp_path / path.name  # the files beside it are another subject
    alone.symlink_to(path)
    reference = references.load_reference(alone)
    texts = adversarial.strings(share(300), seed=name, special_tokens=reference.special_tokens)
    ids = comparison.random_ids(name, reference, share(200))
    rows = comparison.compare(Tokenizer.from_file(alone), reference, texts.items(), ids)
    assert not [str(difference) for row in rows for difference in row.differences[:1]]
    assert sum(row.strings for row in rows) >= share(300)


def test_a_rank_file_without_a_name(data):
    path = data("fidelity-4/tokenizers/tune-tiktoken-small/tiktoken.model")
    special = {"<|begin_of_text|>": 2_000}
    ours = Tokenizer.from_file(path, pattern=PATTERN, special_tokens=special)
    ranks = tiktoken.load.load_tiktoken_bpe(str(path))
    theirs = tiktoken.Encoding("small", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special)
    for texts in adversarial.strings(share(300), seed="ranks", special_tokens=[*special]).values():
        for text in texts:
            assert ours.encode(text) == theirs.encode(text, allowed_special="all")
