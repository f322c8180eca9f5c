"""Keys of KV-cache blocks: those that the engines' own formulas give."""

from __future__ import annotations

import hashlib
import pickle

import numpy as np
import pytest
from case_tables import cases

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.cache.block_keys import block_keys, cbor
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

IDS = np.array([1, 2, 3, 70000, 5, 6, 7], np.int32)


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def test_canonical_cbor():
    """The examples of RFC 8949, appendix A."""
    examples = {
        0: "00",
        23: "17",
        24: "1818",
        1000: "1903e8",
        1000000: "1a000f4240",
        1000000000000: "1b000000e8d4a51000",
    }
    for value, expected in examples.items():
        assert cbor(value).hex() == expected
    assert cbor(None).hex() == "f6"
    assert cbor("IETF").hex() == "6449455446"
    assert cbor(bytes.fromhex("01020304")).hex() == "4401020304"
    assert cbor([1, [2, 3], (4, 5)]).hex() == "8301820203820405"
    with pytest.raises(TypeError, match="float is not encoded"):
        cbor(1.5)


def test_vllm():
    for scheme, dump in (("sha256", lambda x: pickle.dumps(x, pickle.HIGHEST_PROTOCOL)), ("sha256_cbor", cbor)):
        none = sha256(dump("vllm-none-hash"))
        first = sha256(dump((none, (1, 2, 3), None)))
        second = sha256(dump((first, (70000, 5, 6), None)))
        assert block_keys(IDS, 3, scheme) == [first, second]
        salted = sha256(dump((none, (1, 2, 3), (("cache_salt", "s"),))))
        assert block_keys(IDS, 3, scheme, "s") == [salted, sha256(dump((salted, (70000, 5, 6), None)))]
        seeded = sha256(dump((sha256(dump("0")), (1, 2, 3), None)))
        assert block_keys(IDS, 3, scheme, seed="0")[0] == seeded


def test_a_cbor_block_byte_by_byte():
    none = sha256(bytes.fromhex("6e") + b"vllm-none-hash")
    block = bytes.fromhex("835820") + none + bytes.fromhex("83010203f6")
    assert block_keys(IDS[:3], 3, "sha256_cbor") == [sha256(block)]


def test_sglang():
    first = sha256(b"\1\0\0\0\2\0\0\0\3\0\0\0")
    second = sha256(first + (70000).to_bytes(4, "little") + b"\5\0\0\0\6\0\0\0")
    assert block_keys(IDS, 3, "sglang") == [first, second]


def test_llm_d():
    def fnv(data: bytes) -> int:
        value = 14695981039346656037
        for byte in data:
            value = (value ^ byte) * 1099511628211 % (1 << 64)
        return value

    assert fnv(b"a") == 0xAF63DC4C8601EC8C
    root = fnv(b"\x83\x1b" + fnv(b"").to_bytes(8, "big") + b"\xf6\x61m")
    first = fnv(b"\x83\x1b" + root.to_bytes(8, "big") + b"\x83\1\2\3\xf6")
    assert block_keys(IDS[:5], 3, "llm-d", model="m") == [first.to_bytes(8, "big")]


def test_only_whole_blocks_have_keys_and_a_prefix_has_the_same_ones():
    for scheme in ("sha256", "sha256_cbor", "sglang", "llm-d"):
        assert block_keys(IDS, 8, scheme) == []
        assert block_keys(IDS, 2, scheme)[:2] == block_keys(IDS[:4], 2, scheme)


@pytest.mark.parametrize(("arguments", "message"), CASES["what_cannot_be_is_refused"])
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        block_keys(IDS, *arguments)


def test_of_a_prompt():
    tokenizer = Tokenizer.default()
    template = ChatTemplate.from_tokenizer(tokenizer)
    messages = [{"role": "user", "content": "some words " * 40}]
    prompt = PromptCache().render(messages, template=template, tokenizer=tokenizer)
    assert prompt.block_keys(16, "sha256", "s") == block_keys(prompt.ids, 16, "sha256", "s")
    assert len(prompt.block_keys(size=8)) == len(prompt.ids) // 8
