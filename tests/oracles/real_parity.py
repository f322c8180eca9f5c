"""The tokenizers and texts of the test data, compared with the reference libraries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from random import Random

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify import adversarial
from tokenweir.verify.comparison import Row, compare, random_ids
from tokenweir.verify.references import Original, Reference, load_reference

TOKENIZERS = (
    "llama-3.1/tokenizer.json",
    "gguf/ggml-vocab-llama-bpe.gguf",
    "qwen3/tokenizer.json",
    "gguf/ggml-vocab-qwen2.gguf",
    "deepseek-litellm/tokenizer.json",
    "gpt2/tokenizer.json",
    "gguf/ggml-vocab-gpt-2.gguf",
    "gpt2/tokenizer.gigatoken.json",
    "openai/cl100k_base.tiktoken",
    "openai/o200k_base.tiktoken",
    "openai/gpt2.tiktoken",
    "llama-2/tokenizer.json",
    "phi-3-mini/tokenizer.json",
    "mistral-7b-v0.3/tokenizer.json",
    "gemma/tokenizer.json",
    "t5-small/tokenizer.json",
    "bert-base-uncased/tokenizer.json",
    "gguf/ggml-vocab-bert-bge.gguf",
    "llama-2/tokenizer.model",
    "gguf/ggml-vocab-phi-3.gguf",
    "gguf/ggml-vocab-llama-spm.gguf",
    "mistral-common/tokenizer.model.v1",
    "mistral-7b-v0.3/tokenizer.model",
    "sp-test-unigram-en/tokenizer.model",
    "sp-test-unigram-ja/tokenizer.model",
    "mistral-common/tekken_240911.json",
)
ORIGINALS = {
    "gguf/ggml-vocab-gpt-2.gguf": "gpt2/tokenizer.json",
    "gguf/ggml-vocab-llama-bpe.gguf": "llama-3.1/tokenizer.json",
    "gguf/ggml-vocab-qwen2.gguf": "qwen3/tokenizer.json",
    "gguf/ggml-vocab-llama-spm.gguf": "llama-2/tokenizer.model",
    "gguf/ggml-vocab-phi-3.gguf": "llama-2/tokenizer.model",
    "gguf/ggml-vocab-bert-bge.gguf": "bert-base-uncased/tokenizer.json",
}
"""Source files of GGUF files; each stands before them above."""

_reference = lru_cache(maxsize=1)(load_reference)


@lru_cache(maxsize=1)
def _corpora(folder: Path) -> list[str]:
    return [path.read_bytes().decode() for path in sorted(folder.rglob("*.*"))]


def texts_by_kind(
    data: Path, seed: str, reference: Reference, fuzz: int, every: int
) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each kind of text and its texts.

    Of the corpora, only one in `every` lines is used and, if `every` is above 1, the beginnings instead of whole files.
    """
    corpora = _corpora(data / "corpora")
    yield "corpus lines", [line for text in corpora for line in text.splitlines(keepends=True)][::every]
    if every == 1:
        yield "corpora whole", corpora
    else:
        yield "beginnings of corpora", [text[:1000] for text in corpora]
    vectors = (data / "vectors" / "ggml-vocab-gpt-2.gguf.inp").read_bytes().decode()  # the others hold the same texts
    yield "vectors", vectors.split("\n__ggml_vocab_test__\n")[:-1]
    yield "code points by 64", adversarial.every_code_point(every)
    sample = Random(seed).sample(reference.ids, min(5000 if every == 1 else 1000, len(reference.ids)))
    vocabulary = list(filter(None, reference.decode([[i] for i in sample], skip_special_tokens=True)))
    kinds = adversarial.strings(fuzz, seed=seed, special_tokens=reference.special_tokens, vocabulary=vocabulary)
    yield from kinds.items()


def check(data: Path, name: str, *, fuzz: int, every: int = 1, seed: str = "") -> list[Row]:
    """Compare one of `TOKENIZERS` with its reference; return the rows of `compare`.

    The texts are one in `every` lines of the corpora and `fuzz` adversarial strings; a fifth as many lists of random
    ids are decoded.
    """
    tok = Tokenizer.from_file(data / "tokenizers" / name)
    if name in ORIGINALS:
        original = _reference(data / "tokenizers" / ORIGINALS[name])
        reference: Reference = Original(original, {token.content: token.id for token in tok.added_tokens})
    else:
        reference = _reference(data / "tokenizers" / name)
    seed += name
    kinds = texts_by_kind(data, seed, reference, fuzz, every)
    return compare(tok, reference, kinds, random_ids(seed, reference, fuzz // 5))
