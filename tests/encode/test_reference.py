"""The plain encoder against the core, on the embedded vocabulary and on real ones."""

from __future__ import annotations

from itertools import chain

import pytest
from full_run import share
from real_tokenizers import real_tokenizer

from tokenweir import Tokenizer
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.reference import ReferenceEncoder
from tokenweir.verify.adversarial import strings


def check(tok, count, seed):
    reference = ReferenceEncoder(tok.spec)
    for text in chain.from_iterable(strings(count, seed=seed).values()):
        assert reference.encode(text) == tok.encode(text, add_special_tokens=False, parse_special=False), text


def test_the_embedded_vocabulary():
    check(Tokenizer.default(), share(400), "embedded")


@pytest.mark.parametrize("name", ["gpt2", "llama-3.1", "openai/cl100k_base.tiktoken", "openai/o200k_base.tiktoken"])
def test_real_vocabularies(data, name):
    check(real_tokenizer(data(f"tokenizers/{name}")), share(200), name)


def test_it_has_huggingfaces_ids(both):
    tok, huggingface = both()
    reference = ReferenceEncoder(tok.spec)
    for text in chain.from_iterable(strings(share(200), seed="small").values()):
        assert reference.encode(text) == huggingface.encode(text).ids, text


@pytest.mark.parametrize("name", ["qwen3", "bert-base-uncased", "llama-2", "t5-small"])
def test_others_are_refused(data, name):
    with pytest.raises(UnsupportedTokenizerError, match="the reference encoder has no"):
        ReferenceEncoder(real_tokenizer(data(f"tokenizers/{name}")).spec)
