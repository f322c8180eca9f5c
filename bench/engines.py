"""CPU time of engines that distribute work, with tokenweir's step and with the tokenizer that each has otherwise. Prints a table.

    python bench/engines.py NAME=ENVIRONMENT/bin/python ... [--megabytes 100] [--write]

NAME is one of those of `ENGINES`; its environment has the engine, tokenweir, tokenizers and psutil. Each way encodes a Parquet file
of texts by Qwen3's tokenizer in a process of its own, on one worker, and then a file with one text, whose time is subtracted: it is
what an engine needs to start. The slower step has a twentieth of the texts. The other tokenizer is HuggingFace's `tokenizers`, called
with whole batches; datatrove's own step asks for offsets as well. `alone` is the same work by neither engine nor disk.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shared.processes import cpu_of_all
from shared.report import DATA, arguments, heading, machine, publish, table, told

TOKENIZER = str(DATA / "tokenizers" / "qwen3" / "tokenizer.json")
STEPS = ("tokenweir", "tokenizers")


class Peer:
    """The step of `tokenizers`: a batch of Arrow with a column of its ids."""

    def __init__(self) -> None:
        self.made: Any = None

    def encode(self, texts: Any) -> Any:
        import pyarrow

        if self.made is None:
            import tokenizers

            self.made = tokenizers.Tokenizer.from_file(TOKENIZER)
        rows = self.made.encode_batch_fast(texts.to_pylist())
        return pyarrow.array([row.ids for row in rows], pyarrow.list_(pyarrow.int32()))

    def __call__(self, batch: Any) -> Any:
        return batch.append_column("input_ids", self.encode(batch.column("text"))).select(["input_ids"])

    def __getstate__(self) -> dict[str, Any]:
        return {"made": None}


def step_of(name: str) -> Any:
    if name == "tokenizers":
        return Peer()
    from tokenweir import Tokenizer
    from tokenweir.corpus import Encode

    return Encode(Tokenizer.from_file(TOKENIZER), keep=())


def alone(texts: str, ids: str, step: str) -> None:
    from pyarrow import parquet

    encode = step_of(step)
    for batch in parquet.ParquetFile(texts).iter_batches(1000):
        encode(batch)


def ray(texts: str, ids: str, step: str) -> None:
    import ray.data

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    rows = ray.data.read_parquet(texts)
    rows.map_batches(step_of(step), batch_format="pyarrow", batch_size=1000).write_parquet(ids)


def spark(texts: str, ids: str, step: str) -> None:
    from pyspark.sql import SparkSession

    made = step_of(step)
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = session.read.parquet(texts)
    rows.mapInArrow(lambda batches: map(made, batches), "input_ids array<int>").write.parquet(ids)
    session.stop()


def daft(texts: str, ids: str, step: str) -> None:
    import daft

    made = step_of(step)

    @daft.func.batch(return_dtype=daft.DataType.list(daft.DataType.int32()), batch_size=1000)
    def encode(column: daft.Series) -> daft.Series:
        return daft.Series.from_arrow(made.encode(column.to_arrow()))

    rows = daft.read_parquet(texts)
    rows.select(encode(rows["text"]).alias("input_ids")).write_parquet(ids)


def datasets(texts: str, ids: str, step: str) -> None:
    from datasets import Dataset

    rows = Dataset.from_parquet(texts, cache_dir=f"{ids}.cache").with_format("arrow")
    rows.map(step_of(step), batched=True, remove_columns=["text"]).to_parquet(ids)


def datatrove(texts: str, ids: str, step: str) -> None:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.tokens import DocumentTokenizer as Original

    from tokenweir.corpus.datatrove import DocumentTokenizer

    made = {"tokenweir": DocumentTokenizer, "tokenizers": Original}[step]
    folder, name = os.path.split(texts)
    steps = [ParquetReader(folder, glob_pattern=name), made(ids, TOKENIZER, shuffle_documents=False)]
    LocalPipelineExecutor(steps, logging_dir=f"{ids}.logs").run()


ENGINES: dict[str, Callable[[str, str, str], None]] = {
    "alone": alone,
    "ray": ray,
    "spark": spark,
    "daft": daft,
    "datasets": datasets,
    "datatrove": datatrove,
}


def measure(name: str, texts: str, step: str) -> float:
    """CPU seconds of this process and all under it, for one engine and step."""
    with tempfile.TemporaryDirectory() as folder:
        ENGINES[name](texts, f"{folder}/ids", step)
        return cpu_of_all()


def measured(python: str, name: str, texts: Path, step: str) -> float:
    """The same in a process of an environment."""
    command = [python, __file__, "--measure", name, "--step", step, "--texts", str(texts)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYSPARK_PYTHON": python, "RAYON_NUM_THREADS": "1"}
    environment |= {
        "RAY_raylet_start_wait_time_s": "600",
        "RAY_agent_register_timeout_ms": "600000",
        "OMP_NUM_THREADS": "1",
    }
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(found.stdout.splitlines()[-1])


def write_texts(path: Path, megabytes: float) -> None:
    """English and Chinese in documents of 2,000 characters; after 6 MB they come again."""
    import pyarrow as pa
    from pyarrow import parquet
    from shared.texts import corpus

    whole = "".join("".join(corpus(name)) for name in ("war-and-peace.txt", "zh-hongloumeng.txt"))
    texts, size = [], 0
    while not texts or size < megabytes * 1e6:
        start = 2000 * len(texts) * 7 % (len(whole) - 2000)
        texts.append(whole[start : start + 2000])
        size += len(texts[-1].encode())
    parquet.write_table(pa.table({"text": texts, "id": [str(n) for n in range(len(texts))]}), path, row_group_size=1000)


def engines(pythons: dict[str, str], megabytes: float) -> str:
    """CPU seconds per 100 MB of text on one worker, engine included, and those of the engine's start. Passages come again after 6 MB."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.parquet"
        write_texts(few, 0)
        sizes = dict(zip(STEPS, (megabytes, megabytes / 20), strict=True))
        for step, size in sizes.items():
            write_texts(Path(folder) / f"{step}.parquet", size)
        for name, python in pythons.items():
            cells, seconds = [], []
            for step, size in sizes.items():
                before = measured(python, name, few, step)
                seconds.append((measured(python, name, Path(folder) / f"{step}.parquet", step) - before) * 100 / size)
                cells += [f"{seconds[-1]:.1f}", f"{before:.1f}"]
            rows.append(told([name, *cells, f"{seconds[1] / seconds[0]:.1f}"]))
    return table(["engine", "tokenweir", "its start", "tokenizers", "its start", "times"], rows)


def main() -> None:
    options = arguments(
        __doc__,
        ("pythons", {"nargs": "*", "metavar": "NAME=PYTHON", "help": f"engines, of {', '.join(ENGINES)}"}),
        megabytes=(100.0, "size of the texts (100)"),
        measure={"choices": ENGINES, "help": argparse.SUPPRESS},
        step={"choices": STEPS, "help": argparse.SUPPRESS},
        texts={"help": argparse.SUPPRESS},
    )
    if options.measure:
        print(measure(options.measure, options.texts, options.step))
        return
    pythons = dict(one.split("=", 1) for one in options.pythons)
    found = engines(pythons, options.megabytes)
    publish("engines", f"{heading(engines)}\n\n{found}\n\n{machine()}", options.write)


if __name__ == "__main__":
    main()
