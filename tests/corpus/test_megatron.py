"""`preprocess-data` writes the files of Megatron-LM's `preprocess_data`, which its own reader opens."""

from __future__ import annotations

import gzip
import json
import os
import struct
from functools import partial

import numpy as np
import pytest
from commands import run

from tokenweir import Tokenizer

LLAMA, GPT2 = "tokenizers/llama-3.1", "tokenizers/gpt2/tokenizer.json"
TEXTS = [
    "one",
    "",
    "naïve 你好",
    "<|end_of_text|>",
    *(f"Text {n} {'word ' * (n % 40)}" for n in range(500)),
    "",
    "last",
]
ROWS = [
    {"text": text, "title": [text[:4], "", text[:9]] if number % 3 else [], "n": number}
    for number, text in enumerate(TEXTS)
]


command = partial(run, "preprocess-data")


def write(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def by_hand(tok, key, eod):
    """The documents, each a list of sequences, by the rules of Megatron-LM's encoder."""
    made = []
    for row in ROWS:
        texts = row[key] if isinstance(row[key], list) else [row[key]]
        sequences = [ids for text in texts if (ids := tok.encode(text, add_special_tokens=False))]
        if sequences and eod is not None:
            sequences[-1] = [*sequences[-1], eod]
        made.append(sequences)
    return made


def index_of(documents, code, itemsize):
    """The bytes of an index, by the format's description."""
    sizes = [len(ids) for sequences in documents for ids in sequences]
    ends = np.cumsum([0, *map(len, documents)])
    begins = (np.cumsum([0, *sizes]) * itemsize)[:-1]
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(sizes), len(ends))
    return head + np.array(sizes, "<i4").tobytes() + begins.astype("<i8").tobytes() + ends.astype("<i8").tobytes()


@pytest.mark.parametrize("eod", [True, False])
@pytest.mark.parametrize(("name", "dtype", "code"), [(LLAMA, "<i4", 4), (GPT2, "<u2", 8)])
def test_the_files_of_the_original_s_rules(data, tmp_path, name, dtype, code, eod):
    path, tok = write(tmp_path / "a.jsonl"), Tokenizer.from_file(data(name))
    arguments = ("--input", path, "--json-keys", "text", "title", "--tokenizer-type", "HuggingFaceTokenizer")
    more = ("--tokenizer-model", data(name), "--workers", 2, "--output-prefix", tmp_path / "out" / "some")
    found = command(*arguments, *more, *(["--append-eod"] if eod else []), "--log-interval", 100)
    assert found.exit_code == 0, found.output
    assert found.stdout == f"{len(ROWS):,} documents in {tmp_path / 'out' / 'some'}\n"
    last = tok.encode("", add_special_tokens=False, add_eos=True)[-1] if eod else None
    for key in ("text", "title"):
        documents = by_hand(tok, key, last)
        ids = [id for sequences in documents for row in sequences for id in row]
        written = tmp_path / "out" / f"some_{key}_document"
        assert written.with_suffix(".bin").read_bytes() == np.array(ids, dtype).tobytes()
        assert written.with_suffix(".idx").read_bytes() == index_of(documents, code, np.dtype(dtype).itemsize)
    assert len([*(tmp_path / "out").iterdir()]) == 4


def test_its_own_builder_and_reader(data, tmp_path):
    if os.environ.get("REQUIRE_ENGINE") != "megatron":
        pytest.importorskip("megatron.core")
    from megatron.core.datasets.indexed_dataset import DType, IndexedDataset, IndexedDatasetBuilder

    path, tok = write(tmp_path / "a.jsonl"), Tokenizer.from_file(data(GPT2))
    arguments = ("--input", path, "--tokenizer-model", data(GPT2), "--append-eod", "--output-prefix", tmp_path / "ours")
    assert command(*arguments).exit_code == 0
    documents = by_hand(tok, "text", tok.token_to_id("<|endoftext|>"))
    builder = IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=DType.optimal_dtype(len(tok.vocab)))
    for sequences in documents:
        builder.add_document([id for row in sequences for id in row], [len(row) for row in sequences])
    builder.finalize(str(tmp_path / "theirs.idx"))
    for ending in (".bin", ".idx"):
        theirs = (tmp_path / "theirs").with_suffix(ending).read_bytes()
        assert (tmp_path / "ours_text_document").with_suffix(ending).read_bytes() == theirs
    opened = IndexedDataset(str(tmp_path / "ours_text_document"))
    assert [opened[n].tolist() for n in range(len(opened))] == [row for sequences in documents for row in sequences]


def test_bad_input_leaves_no_files(data, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": ["b", 5]}\n{"other": 1}\n')
    arguments = ("--input", tmp_path / "a.jsonl", "--tokenizer-model", data(GPT2))
    arguments += ("--output-prefix", tmp_path / "out" / "a")
    for key, words in (
        ("text", "line 2: 'text': is int, not a text"),
        ("other", "line 1: 'other': is missing or null"),
    ):
        found = command(*arguments, "--json-keys", key)
        assert (found.exit_code, words in found.stderr) == (1, True), found.stderr
        assert not [*(tmp_path / "out").iterdir()]
    assert command(*arguments, "--split-sentences").exit_code == 2
    assert command(*arguments, "--partitions", 2).exit_code == 2


def test_compressed_input(data, tmp_path):
    pytest.importorskip("pyarrow")
    path = write(tmp_path / "a.jsonl")
    with gzip.open(tmp_path / "b.jsonl.gz", "wb") as file:
        file.write(path.read_bytes())
    for name in ("a.jsonl", "b.jsonl.gz"):
        arguments = ("--input", tmp_path / name, "--tokenizer-model", data(GPT2), "--output-prefix", tmp_path / name)
        assert command(*arguments).exit_code == 0
    for ending in (".bin", ".idx"):
        one, other = (tmp_path / f"{name}_text_document{ending}" for name in ("a.jsonl", "b.jsonl.gz"))
        assert one.read_bytes() == other.read_bytes()
