"""Spark: Parquet files of texts to Parquet files of ids, by batches of Arrow.

python demos/engines/on_spark.py TEXTS IDS [TOKENIZER]
"""

import sys
from collections.abc import Iterator

import pyarrow
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from tokenweir import Tokenizer
from tokenweir.corpus import Encode


def main(texts: str, ids: str, tokenizer: str | None = None) -> None:
    encode = Encode(Tokenizer.from_file(tokenizer) if tokenizer else Tokenizer.default())

    def encoded(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return map(encode, batches)

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.read.parquet(texts)
    schema = StructType([*rows.schema.fields, StructField("input_ids", ArrayType(IntegerType()))])
    rows.mapInArrow(encoded, schema).write.parquet(ids)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
