"""datatrove: Parquet files of texts to the files of its own `DocumentTokenizer`.

python demos/engines/on_datatrove.py TEXTS IDS TOKENIZER
"""

import sys

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import ParquetReader

from tokenweir.corpus.datatrove import DocumentTokenizer


def main(texts: str, ids: str, tokenizer: str) -> None:
    steps = [
        ParquetReader(texts),
        DocumentTokenizer(ids, tokenizer, eos_token="<|endoftext|>", shuffle_documents=False),
    ]
    LocalPipelineExecutor(steps, tasks=2, workers=2, logging_dir=f"{ids}.logs").run()


if __name__ == "__main__":
    main(*sys.argv[1:])
