"""Daft: Parquet files of texts to Parquet files of ids, by a method over batches.

python demos/engines/on_daft.py TEXTS IDS [TOKENIZER]
"""

import sys

import daft

from tokenweir import Tokenizer
from tokenweir.corpus import Encode


@daft.cls
class Ids:
    def __init__(self, tokenizer: str | None) -> None:
        self.encode = Encode(Tokenizer.from_file(tokenizer) if tokenizer else Tokenizer.default())

    @daft.method.batch(return_dtype=daft.DataType.list(daft.DataType.int32()), batch_size=1000)
    def of(self, texts: daft.Series) -> daft.Series:
        return daft.Series.from_arrow(self.encode.encode(texts.to_arrow()))


def main(texts: str, ids: str, tokenizer: str | None = None) -> None:
    rows = daft.read_parquet(f"{texts}/*.parquet")
    rows.with_column("input_ids", Ids(tokenizer).of(rows["text"])).write_parquet(ids)


if __name__ == "__main__":
    main(*sys.argv[1:])
