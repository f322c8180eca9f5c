"""Parquet files of texts to Parquet files of ids, by the ways there are. Prints a table; --write keeps it.

    python bench/corpus.py [--megabytes 400] [--rounds 3] [--workers 2] [--write] [WAY ...]

Every way runs in a process of its own, with the tokenizer of Qwen3 in the cache of loaded tokenizers. `start` is what an
engine needs until it takes work; `wall` is from then until all shards are written. CPU is that of all processes, start
included, which other work on the machine disturbs less than it does the clock; `CPU before` is the part of it that the same
way takes for a document a file, which is paid once, however large the corpus is; `per core` is the rest of it divided by
the rest of one process with all cores. The run fails if a way gives other ids. Ray and datasets are in no extra, since they
are large: `pip install datasets 'ray[data]' aiohttp`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shared.processes import cpu_of_all
from shared.report import DATA, arguments, machine, publish, several, table
from shared.texts import TEXTS, math

from tokenweir.corpus.documents import DocumentEncoder
from tokenweir.corpus.run import encode_files
from tokenweir.encode.tokenizer import Tokenizer

TOKENIZER = DATA / "tokenizers" / "qwen3" / "tokenizer.json"
FILES = 8


def write_corpus(folder: Path, megabytes: int) -> None:
    """Documents of 1 to 5 KB: English, code, mathematics, Chinese, Japanese; passages come again."""
    import pyarrow as pa
    from pyarrow import parquet

    chooser = random.Random(1)
    sources = ["".join(TEXTS[kind]()) for kind in ("English", "code", "Chinese", "Japanese")] + ["".join(math())]
    for number in range(FILES):
        texts, size = [], 0
        while not texts or size < megabytes * 1_000_000 // FILES:
            source = chooser.choice(sources)
            length = chooser.randint(400, 2000) if ord(source[5]) > 0x3000 else chooser.randint(1000, 5000)
            start = chooser.randrange(len(source) - length)
            texts.append(source[start : start + length])
            size += len(texts[-1].encode())
        parquet.write_table(pa.table({"text": texts}), folder / f"{number}.parquet", row_group_size=500)


def encode_table(tok: Tokenizer, texts: Any, threads: int | None = 1) -> Any:
    """A table of the texts' ids alone."""
    return tok.encode_table(texts, "text", threads=threads).select(["input_ids"])


def encode_parquet(tok: Tokenizer, path: Path, out: Path, threads: int | None = 1) -> None:
    """A thousand documents at a time: fresh memory for whole files costs a worker up to a third of its CPU time."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([("input_ids", pa.large_list(pa.int32()))])
    with parquet.ParquetWriter(out / path.name, schema) as writer:
        for texts in parquet.ParquetFile(path).iter_batches(1000, columns=["text"], use_threads=threads is None):
            writer.write(encode_table(tok, texts, threads))


# -- the ways: each yields when its engine is ready, and then does the work ----------------------------------------------


@contextmanager
def one_process(files: list[Path], out: Path, workers: int) -> Iterator[Callable[[], object]]:
    tok = Tokenizer.from_file(TOKENIZER)
    yield lambda: [encode_parquet(tok, path, out, None) for path in files]


@contextmanager
def our_command(files: list[Path], out: Path, workers: int) -> Iterator[Callable[[], object]]:
    encoder = DocumentEncoder(Tokenizer.from_file(TOKENIZER), "text")
    yield lambda: encode_files(files, out, encoder, part_bytes=4 << 20, workers=workers)


@contextmanager
def process_pool(files: list[Path], out: Path, workers: int) -> Iterator[Callable[[], object]]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    tok = Tokenizer.from_file(TOKENIZER)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield lambda: list(pool.map(partial(encode_parquet, tok, out=out), files))


@contextmanager
def dask(files: list[Path], out: Path, workers: int) -> Iterator[Callable[[], object]]:
    from distributed import Client

    tok = Tokenizer.from_file(TOKENIZER)
    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:
        yield lambda: client.gather(client.map(partial(encode_parquet, tok, out=out), files))


@contextmanager
def datasets_map(files: list[Path], out: Path, workers: int) -> Iterator[Callable[[], object]]:
    os.environ["HF_HUB_OFFLINE"] = "1"
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    tok = Tokenizer.from_file(TOKENIZER)
    names = [str(path) for path in files]

    def work() -> None:
        found = Dataset.from_parquet(names, cache_dir=str(out / "cache")).with_format("arrow")
        ids = found.map(partial(encode_table, tok), batched=True, num_proc=workers, remove_columns=["text"])
        ids.to_parquet(out / "all.parquet")

    yield work


@contextmanager
def ray_data(workers: int) -> Iterator[Any]:
    import ray

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray.data
    ray.shutdown()


@contextmanager
def ray_blocks(files: list[Path], out: Path, workers: int) -> Iterator[Callable[[], object]]:
    """Ray reads and writes, and gives blocks of texts between."""
    encode = partial(encode_table, Tokenizer.from_file(TOKENIZER))
    names = [str(path) for path in files]
    with ray_data(workers) as data:
        yield lambda: data.read_parquet(names).map_batches(encode, batch_format="pyarrow").write_parquet(str(out))


@contextmanager
def ray_files(files: list[Path], out: Path, workers: int) -> Iterator[Callable[[], object]]:
    """Ray gives names of files, which its workers read and write themselves."""
    tok = Tokenizer.from_file(TOKENIZER)

    def encode(row: dict[str, str]) -> dict[str, str]:
        encode_parquet(tok, Path(row["item"]), out)
        return row

    names = [str(path) for path in files]
    with ray_data(workers) as data:
        yield lambda: data.from_items(names, override_num_blocks=len(names)).map(encode).materialize()


WAYS: dict[str, Callable[[list[Path], Path, int], Any]] = {
    "one process": one_process,
    "encode-files": our_command,
    "process pool": process_pool,
    "Dask": dask,
    "datasets.map": datasets_map,
    "Ray Data, blocks": ray_blocks,
    "Ray Data, files": ray_files,
}
NEEDS = {"Dask": "distributed", "datasets.map": "datasets", "Ray Data, blocks": "ray", "Ray Data, files": "ray"}

# -- measuring -----------------------------------------------------------------------------------------------------------


def measure(way: str, folder: Path, workers: int) -> dict[str, float]:
    """Measure the time, CPU time and memory of this process and its children."""
    files = sorted(folder.glob("*.parquet"))
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        begun = time.perf_counter()
        with WAYS[way](files, out, workers) as work:
            ready = time.perf_counter()
            work()
            done = time.perf_counter()
            cpu = cpu_of_all()
        return {"start": ready - begun, "wall": done - ready, "cpu": cpu, "ids": content(out)}


def content(folder: Path) -> int:
    """Hash the ids of all documents, independently of their order."""
    import numpy as np
    from pyarrow import parquet

    total = 0
    for path in folder.glob("*.parquet"):
        column = parquet.read_table(path, columns=["input_ids"]).column(0)
        for row in column.to_numpy():
            total += int.from_bytes(hashlib.blake2b(np.asarray(row, np.int32).tobytes(), digest_size=6).digest())
    return total % (1 << 50)


def in_a_process(way: str, folder: Path, workers: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", way, "--folder", str(folder), "--workers", str(workers)]
    found = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    result: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return result


def main() -> int:
    options = arguments(
        __doc__,
        ("ways", several(way for way in WAYS if find_spec(NEEDS.get(way, "tokenweir")) is not None)),
        megabytes=(400, "size of the corpus (400)"),
        rounds=(3, "processes for each way (3)"),
        workers=(os.cpu_count(), "processes that encode (one a core)"),
        measure={"choices": WAYS, "help": argparse.SUPPRESS},
        folder={"type": Path, "help": argparse.SUPPRESS},
    )
    if options.measure:
        print(json.dumps(measure(options.measure, options.folder, options.workers)))
        return 0
    runs = [(way, options.workers) for way in options.ways]
    if "encode-files" in options.ways:
        runs.insert(runs.index(("encode-files", options.workers)), ("encode-files", 1))
    Tokenizer.from_file(TOKENIZER)  # keeps it in the cache
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder, options.megabytes)
        read = sum(path.stat().st_size for path in folder.glob("*.parquet"))
        few = folder / "few"
        few.mkdir()
        write_corpus(few, 0)
        found: dict[tuple[str, int], list[dict[str, float]]] = {run: [] for run in runs}
        for _ in range(options.rounds):
            for way, workers in runs:
                before = in_a_process(way, few, workers)["cpu"]
                found[way, workers].append({**in_a_process(way, folder, workers), "before": before})
    if len({one["ids"] for several in found.values() for one in several}) != 1:
        print("the ways give different ids", file=sys.stderr)
        return 1
    median = {
        run: {key: statistics.median(one[key] for one in several) for key in several[0]}
        for run, several in found.items()
    }
    base = median.get(("one process", options.workers))
    rows = [
        (
            f"{way}, {workers} {'cores' if way == 'one process' else 'worker' + 's' * (workers > 1)}",
            f"{one['start']:.1f}",
            f"{one['wall']:.1f}",
            f"{options.megabytes / one['wall']:.0f}",
            f"{one['before']:.1f}",
            f"{one['cpu']:.1f}",
            f"{(one['cpu'] - one['before']) / (base['cpu'] - base['before']):.2f}" if base else "",
        )
        for (way, workers), one in median.items()
    ]
    heading = f"{options.megabytes} MB of text in {FILES} Parquet files ({read / 1e6:.0f} MB), Qwen3; seconds."
    columns = ("", "start", "wall", "MB/s", "CPU before", "CPU", "per core")
    result = f"{heading}\n\n{table(columns, rows)}\n\n{machine()}"
    publish("corpus", result, options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
