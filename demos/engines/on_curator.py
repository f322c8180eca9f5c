"""NeMo Curator: JSONL files of texts to the files of its own `MegatronTokenizerWriter`.

python demos/engines/on_curator.py TEXTS IDS TOKENIZER
"""

import sys

from nemo_curator.backends.xenna import XennaExecutor
from nemo_curator.pipeline import Pipeline
from nemo_curator.stages.text.io.reader import JsonlReader

from tokenweir.corpus.curator import MegatronTokenizerWriter


def main(texts: str, ids: str, tokenizer: str) -> None:
    pipeline = Pipeline(name="ids")
    pipeline.add_stage(JsonlReader(file_paths=texts, fields=["text"]))
    pipeline.add_stage(MegatronTokenizerWriter(path=ids, model_identifier=tokenizer, append_eod=True))
    pipeline.run(XennaExecutor({"execution_mode": "batch"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
