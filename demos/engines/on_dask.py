"""Dask: Parquet files of texts to Parquet files of ids, a file a task, a thousand documents at a time.

python demos/engines/on_dask.py TEXTS IDS [TOKENIZER]
"""

import sys
from functools import partial
from pathlib import Path

from distributed import Client
from pyarrow import Table, parquet

from tokenweir import Tokenizer
from tokenweir.corpus import Encode


def encode_file(path: Path, ids: Path, encode: Encode) -> None:
    source = parquet.ParquetFile(path)
    schema = encode(source.schema_arrow.empty_table()).schema
    with parquet.ParquetWriter(ids / path.name, schema) as writer:
        for batch in source.iter_batches(1000):
            writer.write(encode(Table.from_batches([batch])))


def main(texts: str, ids: str, tokenizer: str | None = None) -> None:
    encode = Encode(Tokenizer.from_file(tokenizer) if tokenizer else Tokenizer.default())
    Path(ids).mkdir()
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        paths = sorted(Path(texts).glob("*.parquet"))
        client.gather(client.map(partial(encode_file, ids=Path(ids), encode=encode), paths))


if __name__ == "__main__":
    main(*sys.argv[1:])
