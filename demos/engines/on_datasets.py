"""HuggingFace's datasets: Parquet files of texts to a Parquet file of ids.

    python demos/engines/on_datasets.py TEXTS IDS [TOKENIZER]

`keep` leaves the texts out of what `map` writes.
"""

import sys
from pathlib import Path

from datasets import Dataset

from tokenweir import Tokenizer
from tokenweir.corpus import Encode


def main(texts: str, ids: str, tokenizer: str | None = None) -> None:
    encode = Encode(Tokenizer.from_file(tokenizer) if tokenizer else Tokenizer.default(), keep=("n",))
    rows = Dataset.from_parquet([str(path) for path in sorted(Path(texts).glob("*.parquet"))], cache_dir=f"{ids}.cache")
    encoded = rows.with_format("arrow").map(encode, batched=True, num_proc=2, remove_columns=["text"])
    Path(ids).mkdir()
    encoded.to_parquet(f"{ids}/ids.parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])
