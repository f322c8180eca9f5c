"""Tokenizers of real files; one takes up to a second to read, so that each is read once for all tests."""

from functools import cache

from tokenweir.encode.tokenizer import Tokenizer

real_tokenizer = cache(Tokenizer.from_file)
