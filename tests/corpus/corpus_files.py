"""Files of documents in every format, and readers of shards that share nothing with the writers."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from commands import run

from tokenweir.corpus.inputs import plan

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write_lines(path, texts):
    path.write_text("".join(text + "\n" for text in texts), "utf-8")
    return path


def write_jsonl(path, texts, field="text"):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"n": i, field: text, "more": {field: "other"}}, ensure_ascii=i % 2 == 0) + "\n"
            for i, text in enumerate(texts)
        )
    return path


def write_parquet(path, texts, kind=None):
    table = pa.table({"n": range(len(texts)), "text": pa.array(texts, kind)})
    pq.write_table(table, path, row_group_size=50)
    return path


def write_arrow(path, texts, writer=pa.ipc.new_file):
    table = pa.table({"text": texts, "n": range(len(texts))})
    with writer(path, table.schema) as file:
        for batch in table.to_batches(max_chunksize=40):
            file.write_batch(batch)
    return path


write_arrow_stream = partial(write_arrow, writer=pa.ipc.new_stream)

WRITE = {
    "a.txt": write_lines,
    "a.jsonl": write_jsonl,
    "a.parquet": write_parquet,
    "a.arrow": write_arrow,
    "stream.arrow": write_arrow_stream,
}


def read_parquet(folder):
    rows, masks = [], []
    for path in sorted(folder.glob("part-*.parquet")):
        table = pq.read_table(path)
        rows += table["input_ids"].to_pylist()
        masks += table["loss_mask"].to_pylist() if "loss_mask" in table.column_names else []
    return rows, masks


def read_npy(folder):
    rows, masks = [], []
    for path in sorted(folder.glob("part-*.ids.npy")):
        offsets = np.load(str(path).replace(".ids.", ".offsets."))
        assert offsets.dtype == np.int64
        rows += [row.tolist() for row in np.split(np.load(path), offsets[1:-1])] if len(offsets) > 1 else []
        mask = Path(str(path).replace(".ids.", ".loss_mask."))
        if mask.exists():
            masks += [row.tolist() for row in np.split(np.load(mask), offsets[1:-1])]
    return rows, masks


def read_indexed(index: Path):
    data = index.read_bytes()
    magic, version, code, n, documents = struct.unpack_from("<9sQBQQ", data)
    assert (magic, version, documents) == (b"MMIDIDX\x00\x00", 1, n + 1)
    at = struct.calcsize("<9sQBQQ")
    sizes = np.frombuffer(data, "<i4", n, at)
    pointers = np.frombuffer(data, "<i8", n, at + 4 * n)
    assert np.frombuffer(data, "<i8", n + 1, at + 12 * n).tolist() == list(range(n + 1))
    assert len(data) == at + 20 * n + 8
    content = index.with_suffix(".bin").read_bytes()
    dtype = {1: np.uint8, 4: np.int32, 8: np.uint16}[code]
    return [np.frombuffer(content, dtype, size, at).tolist() for size, at in zip(sizes, pointers, strict=True)]


def read_megatron(folder):
    rows, masks = [], []
    for index in sorted(folder.glob("part-*.idx")):
        (masks if "loss_mask" in index.name else rows).extend(read_indexed(index))
    return rows, masks


def read_datatrove(folder):
    rows, masks = [], []
    for path in sorted(folder.glob("part-*.ds")):
        ends = np.fromfile(f"{path}.index", "<u8").astype(np.int64)
        rows += [row.tolist() for row in np.split(np.fromfile(path, "<u2"), ends)[:-1]]
        if (mask := Path(f"{path}.loss")).exists():
            masks += [row.tolist() for row in np.split(np.fromfile(mask, np.uint8), ends)[:-1]]
    return rows, masks


READ = {"parquet": read_parquet, "npy": read_npy, "megatron": read_megatron, "datatrove": read_datatrove}


def parts_of(path, part_bytes):
    """The parts of a file, each of which becomes a shard."""
    return [part for shard in plan([str(path)], part_bytes) for part in shard.parts]


command = partial(run, "encode-files")


def start(*arguments):
    """Start the command as a process, in a group of its own."""
    program = [sys.executable, "-P", "-m", "tokenweir", "encode-files", *map(str, arguments)]
    return subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}
