"""The common tests of transformers' tokenizers, `test_tokenization_common.py`, for the tokenizers of ../shared/data."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path

import transformers

sys.path.insert(0, os.environ["TOKENWEIR_SUITE"])
from tests import test_tokenization_common as common

DATA = Path(os.environ["TOKENWEIR_DATA"]) / "tokenizers"
TEXT = "This is a sample text.\nIt has several lines, with numbers (1, 22, 333) and naïve accents.\n\nThe end of it."

_fixtures = Path(tempfile.mkdtemp()) / "fixtures"
_fixtures.mkdir()
(_fixtures / "sample_text.txt").write_text(TEXT, "utf-8")
common.get_tests_dir = lambda *parts: str(_fixtures.parent.joinpath(*parts))


class Common(common.TokenizerTesterMixin):
    rust_tokenizer_class = None
    test_slow_tokenizer = False


class Qwen2Test(Common, unittest.TestCase):
    tokenizer_class = transformers.Qwen2Tokenizer
    from_pretrained_id = str(DATA / "qwen3")


class BertTest(Common, unittest.TestCase):
    tokenizer_class = transformers.BertTokenizer
    from_pretrained_id = str(DATA / "bert-base-uncased")


class T5Test(Common, unittest.TestCase):
    tokenizer_class = transformers.T5Tokenizer
    from_pretrained_id = str(DATA / "t5-small")
