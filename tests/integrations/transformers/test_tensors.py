"""Arrays of padded batches: type, shape and values of those without the patch."""

from __future__ import annotations

import numpy as np
import pytest
from case_tables import cases

import tokenweir
from tokenweir.integrations.transformers import tensors

CASES = cases(__file__)

transformers = pytest.importorskip("transformers")

TEXTS = ["Hello world how are you", "a", "日本語 text, naïve <|im_end|> [MASK] text"]
CALLS = CASES["calls"]


def described(encoding):
    return {key: (type(value), value.dtype, value.shape, value.tolist()) for key, value in encoding.items()}


@pytest.fixture(scope="module", params=["qwen3", "bert-base-uncased"])
def tokenizer(request, data):
    """A tokenizer that has the arrays of transformers until it is used under the patch."""
    return transformers.AutoTokenizer.from_pretrained(data(f"tokenizers/{request.param}"), pad_token="!")


@pytest.mark.parametrize("kind", ["np", "pt"])
@pytest.mark.parametrize("options", CALLS, ids=lambda options: ", ".join(options))
def test_arrays_equal_those_without_the_patch(tokenizer, kind, options, monkeypatch):
    if kind == "pt":
        pytest.importorskip("torch")
    plain = tokenizer(TEXTS, return_tensors=kind, **options)
    made = []
    monkeypatch.setattr(tensors, "_rows", lambda *args, _rows=tensors._rows: made.append(_rows(*args)) or made[-1])
    with tokenweir.patch_transformers():
        found = tokenizer(TEXTS, return_tensors=kind, **options)
        assert described(found) == described(plain)
    assert made and all(type(rows) is np.ndarray for rows in made)


@pytest.mark.parametrize("texts", [["Hello", "Hello world"], ["", ""]], ids=["of several lengths", "without ids"])
def test_other_rows_go_to_transformers(tokenizer, texts):
    def call():
        try:
            return repr(described(tokenizer(texts, return_tensors="np", add_special_tokens=False)))
        except ValueError as error:
            return str(error)

    plain = call()
    with tokenweir.patch_transformers():
        assert call() == plain


def test_values_of_the_caller_keep_their_type(tokenizer, patched):
    encoding = tokenizer(TEXTS, padding=True)
    encoding["attention_mask"] = [[bool(bit) for bit in row] for row in encoding["attention_mask"]]
    assert encoding.convert_to_tensors("np")["attention_mask"].dtype == bool


def test_arrays_are_writable(tokenizer, patched):
    encoding = tokenizer(TEXTS, padding=True, return_tensors="np")
    encoding["input_ids"][0, 0] = 7
    assert encoding["input_ids"][0, 0] == 7
