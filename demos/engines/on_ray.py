"""Ray Data: Parquet files of texts to Parquet files of ids.

    python demos/engines/on_ray.py TEXTS IDS [TOKENIZER]

A class makes actors (`concurrency`), of which each has the tokenizer once. They keep their cores, so leave one to reading and writing.
"""

import sys

import ray

from tokenweir import Tokenizer
from tokenweir.corpus import Encode


def main(texts: str, ids: str, tokenizer: str | None = None) -> None:
    tok = Tokenizer.from_file(tokenizer) if tokenizer else Tokenizer.default()
    rows = ray.data.read_parquet(texts)
    encoded = rows.map_batches(
        Encode, fn_constructor_args=(tok,), batch_format="pyarrow", concurrency=1, batch_size=1000
    )
    encoded.write_parquet(ids)


if __name__ == "__main__":
    main(*sys.argv[1:])
