"""llama.cpp's expected ids: of tokenizer.json files that have the same vocabulary, and of its own GGUF files.

llama.cpp does not normalize (Qwen's NFC), and its Unicode tables and regexes are its own, so in general its ids may
differ from HuggingFace's. On these texts they do not: no exception is listed because none is needed.
"""

from __future__ import annotations

import pytest

from tokenweir.encode.tokenizer import Tokenizer

SEPARATOR = "\n__ggml_vocab_test__\n"


JSON = {"gpt-2": "gpt2", "llama-bpe": "llama-3.1", "qwen2": "qwen3"}
GGUF = [(name, f"gguf/ggml-vocab-{name}.gguf") for name in ("llama-spm", "phi-3", "bert-bge")]


@pytest.mark.parametrize(("vectors", "tokenizer"), [(name, f"{of}/tokenizer.json") for name, of in JSON.items()] + GGUF)
def test_ids_are_llama_cpps(data, vectors, tokenizer):
    texts = data(f"vectors/ggml-vocab-{vectors}.gguf.inp").read_bytes().decode().split(SEPARATOR)
    lines = data(f"vectors/ggml-vocab-{vectors}.gguf.out").read_text().split("\n")
    assert (texts.pop(), lines.pop()) == ("", "")
    assert len(texts) == len(lines) == 46
    tok = Tokenizer.from_file(data(f"tokenizers/{tokenizer}"))
    for text, line in zip(texts, lines, strict=True):
        assert tok.encode(text, add_special_tokens=False) == [int(token_id) for token_id in line.split()], repr(text)
