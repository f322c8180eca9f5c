"""A small tokenizer with added tokens of each kind."""

from __future__ import annotations

import pytest

START, END = {"content": "<s>", "special": True}, {"content": "</s>", "special": True}


@pytest.fixture(scope="module")
def tok(small):
    """A tokenizer with control tokens <s> and </s>, and added tokens <m> and é.

    <m> takes white space along, and é is searched for in normalized text.
    """
    more = [{"content": "<m>", "lstrip": True, "rstrip": True}, {"content": "éa", "normalized": True}]
    return small(added=[START, END, *more], normalizer={"type": "NFC"})
