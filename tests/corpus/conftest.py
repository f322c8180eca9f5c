"""A tokenizer, documents, and runs."""

from __future__ import annotations

import random

import pytest

from tokenweir import Tokenizer
from tokenweir.corpus.documents import DocumentEncoder
from tokenweir.corpus.run import encode_files

WORDS = ["the", "weir", "naïve", "你好", "\U0001f600", "<|im_end|>", "12345", "\\", '"', "\t"]


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.fixture
def texts():
    chooser = random.Random(5)
    return ["", *(" ".join(chooser.choices(WORDS, k=chooser.randint(0, 40))) for _ in range(300)), "last"]


@pytest.fixture
def run(tok, tmp_path):
    """Encode files to the folder "out", or another one, in this process."""

    def run(paths, folder="out", encoder=None, **options):
        folder = folder if "://" in str(folder) else tmp_path / folder
        return encode_files(paths, folder, encoder or DocumentEncoder(tok, "text"), **{"workers": 1, **options})

    return run
