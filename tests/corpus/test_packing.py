"""Packed sequences: the documents joined are theirs, and boundaries and positions are those of a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from corpus_files import command, write_parquet

from tokenweir.corpus.documents import DocumentBatch
from tokenweir.corpus.packing import Packer
from tokenweir.encode.values.encoded import Ragged

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def by_hand(documents, length):
    """Sequences as (ids, positions, boundaries) of a plain loop."""
    flat = [(id, at == 0) for row in documents for at, id in enumerate(row)]
    made = []
    for start in range(0, len(flat), length):
        some = flat[start : start + length]
        begins = [at for at, (_, first) in enumerate(some) if first or at == 0]
        ends = [*begins[1:], len(some)]
        positions = [at for begin, end in zip(begins, ends, strict=True) for at in range(end - begin)]
        made.append(([id for id, _ in some], positions, [*begins, len(some)]))
    return made


def rows(ragged):
    return [row.tolist() for row in ragged]


@pytest.mark.parametrize("length", [1, 3, 8, 1000])
@pytest.mark.parametrize("seed", range(20))
def test_sequences_are_those_of_a_plain_loop(length, seed):
    rng = np.random.default_rng(seed)
    documents = [rng.integers(0, 100, size).tolist() for size in rng.integers(0, 12, 40)]
    packer, found = Packer(length), []
    left = documents
    while True:
        some, left = left[: (cut := int(rng.integers(1, 15)))], left[cut:]
        offsets = np.cumsum([0, *map(len, some)])
        ids = np.array([id for row in some for id in row], np.int32)
        packed = packer.add(DocumentBatch(Ragged(ids, offsets), (ids % 2).astype(np.uint8)))
        found.append(packed)
        if not left:
            break
    found.append(packer.flush())
    sequences = [row for packed in found for row in rows(packed.ids)]
    positions = [row for packed in found for row in rows(Ragged(packed.positions, packed.ids.offsets))]
    boundaries = [row for packed in found for row in rows(packed.boundaries)]
    assert [*zip(sequences, positions, boundaries, strict=True)] == by_hand(documents, length)
    masks = np.concatenate([packed.mask for packed in found if packed.mask is not None])
    assert masks.tolist() == [id % 2 for row in sequences for id in row]


@pytest.mark.parametrize("shard_format", ["parquet", "npy"])
def test_a_command_that_packs(tok, texts, tmp_path, shard_format):
    path = write_parquet(tmp_path / "a.parquet", texts)
    arguments = (path, "--format", shard_format, "--pack", 100, "--add-eos", "--keep", "n", "--workers", 1)
    found = command(*arguments, "-o", tmp_path / "out")
    assert found.exit_code == 0, found.output
    expected = by_hand([tok.encode(text, add_eos=True) for text in texts], 100)
    if shard_format == "parquet":
        table = pq.read_table(tmp_path / "out" / "part-00000.parquet")
        names = ("input_ids", "position_ids", "document_offsets")
        assert table.column_names == [*names]
        assert [*zip(*(table[name].to_pylist() for name in names), strict=True)] == expected
    else:
        load = lambda name: np.load(tmp_path / "out" / f"part-00000.{name}.npy")
        offsets = load("offsets")
        assert rows(Ragged(load("ids"), offsets)) == [ids for ids, _, _ in expected]
        assert rows(Ragged(load("position_ids"), offsets)) == [positions for _, positions, _ in expected]
        begins = [start + at for start, (_, _, ends) in zip(offsets, expected, strict=False) for at in ends[:-1]]
        assert load("document_offsets").tolist() == [*begins, offsets[-1]]
    kept = pq.read_table(tmp_path / "out" / "part-00000.documents.parquet")
    assert kept.to_pydict() == {"n": [*range(len(texts))]}
