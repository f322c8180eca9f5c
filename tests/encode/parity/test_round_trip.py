"""The families that return every text unchanged, and the changes by the others.

The README states it; here it holds for every adversarial string.
"""

from __future__ import annotations

import pytest
from full_run import share
from tokenizers import normalizers

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify import adversarial


def unchanged(text):
    return text


def composed(text):
    return normalizers.NFC().normalize_str(text)


def spaced(text):
    """U+2581 stands for a space."""
    return text.replace("\u2581", " ")


def spaced_after_the_first(text):
    """Metaspace's `first` puts no space before a text that begins with one, and the decoder takes one away all the same."""
    return spaced(text).removeprefix(" ")


GIVEN_BACK = {
    "llama-3.1/tokenizer.json": unchanged,
    "gpt2/tokenizer.json": unchanged,
    "deepseek-litellm/tokenizer.json": unchanged,
    "openai/cl100k_base.tiktoken": unchanged,
    "openai/o200k_base.tiktoken": unchanged,
    "mistral-common/tekken_240911.json": unchanged,
    "gguf/ggml-vocab-llama-bpe.gguf": unchanged,
    "qwen3/tokenizer.json": composed,
    "gguf/ggml-vocab-qwen2.gguf": composed,
    "llama-2/tokenizer.json": spaced,
    "llama-2/tokenizer.model": spaced,
    "gguf/ggml-vocab-llama-spm.gguf": spaced,
    "phi-3-mini/tokenizer.json": spaced,
    "gemma/tokenizer.json": spaced,
    "mistral-7b-v0.3/tokenizer.model": spaced,
    "mistral-7b-v0.3/tokenizer.json": spaced_after_the_first,
}
CHANGED = ["t5-small/tokenizer.json", "bert-base-uncased/tokenizer.json", "sp-test-unigram-en/tokenizer.model"]


def there_and_back(tok, text):
    ids = tok.encode(text, add_special_tokens=False, parse_special=False)
    return tok.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("name", GIVEN_BACK)
def test_what_comes_back(data, name):
    tok = Tokenizer.from_file(data(f"tokenizers/{name}"))
    expected = GIVEN_BACK[name]
    for text in (text for texts in adversarial.strings(share(2000), seed=name).values() for text in texts):
        assert there_and_back(tok, text) == expected(text), ascii(text)


@pytest.mark.parametrize("name", CHANGED)
def test_what_normalizes_for_good(data, name):
    tok = Tokenizer.from_file(data(f"tokenizers/{name}"))
    assert there_and_back(tok, "The  Cat\u00a0\ufb01t") not in ("The  Cat\u00a0\ufb01t", "The  Cat fit")
