"""Dask's own processes: a tokenizer goes there as its path and hash, and the ids are those of one process."""

from __future__ import annotations

import pytest

from tokenweir import Tokenizer

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LLAMA = "tokenizers/llama-3.1/tokenizer.json"
TEXTS = [f"Text {i}: naïve 你好 \U0001f600 <|eot_id|>" for i in range(200)]


@pytest.fixture
def llama(data, cache):
    return Tokenizer.from_file(data(LLAMA))


@pytest.fixture
def client(tmp_path):
    """Two processes; what they write is in the test's folder."""
    with (
        dask.config.set(temporary_directory=str(tmp_path)),
        distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client,
    ):
        yield client


def test_files_to_files_by_the_processes_of_a_cluster(llama, client, tmp_path):
    out = tmp_path / "out"
    out.mkdir()

    def encode_shard(path, tok):  # pickled whole, since the processes cannot import this module
        table = tok.encode_table(pq.read_table(path), "text", threads=1)
        pq.write_table(table.select(["input_ids"]), out / path.name)
        return id(tok)

    files = [tmp_path / f"{i}.parquet" for i in range(8)]
    for i, path in enumerate(files):
        pq.write_table(pa.table({"text": TEXTS[i * 25 : i * 25 + 25]}), path)
    made = client.gather(client.map(encode_shard, files, tok=llama))
    assert len(set(made)) <= 2  # a process reads the tokenizer once
    rows = [row for path in files for row in pq.read_table(out / path.name)["input_ids"].to_pylist()]
    assert rows == [llama.encode(text) for text in TEXTS]


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_bag(llama, scheduler):
    from dask import bag

    found = bag.from_sequence(TEXTS, npartitions=3).map_partitions(lambda texts: [*llama.encode_batch(texts)])
    with dask.config.set({"multiprocessing.context": "spawn"}):
        rows = found.compute(scheduler=scheduler, num_workers=2)
    assert [row.tolist() for row in rows] == [llama.encode(text) for text in TEXTS]
