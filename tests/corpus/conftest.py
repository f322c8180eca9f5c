"""A tokenizer and documents."""

from __future__ import annotations

import random

import pytest

from tokenweir import Tokenizer

WORDS = ["the", "weir", "naïve", "你好", "\U0001f600", "<|im_end|>", "12345", "\\", '"', "\t"]


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.fixture
def texts():
    chooser = random.Random(5)
    return ["", *(" ".join(chooser.choices(WORDS, k=chooser.randint(0, 40))) for _ in range(300)), "last"]
