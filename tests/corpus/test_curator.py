"""The stage for NeMo Curator writes the files of the original, byte by byte."""

from __future__ import annotations

import os

import pytest

if os.environ.get("REQUIRE_ENGINE") != "nemo_curator":
    pytest.importorskip("nemo_curator")
import pandas
import transformers
from nemo_curator.stages.text.io.writer.megatron_tokenizer import MegatronTokenizerWriter as Original
from nemo_curator.tasks import DocumentBatch

from tokenweir.corpus.curator import MegatronTokenizerWriter

TEXTS = [*(f"Text {n}: naïve 你好 \U0001f600 {'word ' * (n % 50)}" for n in range(300)), "", "<|endoftext|>"]
"""No lone space: the class that transformers has for Phi-3 replaces the file's normalizer, and gives another id there."""


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("eod", [False, True])
@pytest.mark.parametrize("tokenizer", ["qwen3", "phi-3-mini"])
def test_the_files_of_the_original(data, tmp_path, monkeypatch, tokenizer, eod):
    """Transformers 5 has no `batch_encode_plus`, without which the original fails; a call is the same."""
    base = transformers.PreTrainedTokenizerBase
    monkeypatch.setattr(
        base, "batch_encode_plus", lambda tok, texts, **options: tok([*texts], **options), raising=False
    )
    folder = str(data(f"tokenizers/{tokenizer}"))
    batch = DocumentBatch(
        dataset_name="some", data=pandas.DataFrame({"text": TEXTS}), _metadata={"source_files": ["a.jsonl"]}
    )
    made = {}
    for stage in (Original, MegatronTokenizerWriter):
        path = tmp_path / stage.__module__
        writer = stage(path=str(path), model_identifier=folder, append_eod=eod, tokenization_batch_size=70)
        writer.setup_on_node()
        writer.setup()
        task = writer.process(batch)
        made[stage] = {file.name: file.read_bytes() for file in path.iterdir()}, task._metadata["num_tokens"]
    assert len(made[Original][0]) == 2
    assert made[MegatronTokenizerWriter] == made[Original]
