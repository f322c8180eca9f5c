"""The look-up tables of tokens and pairs: no choice of tokens or merges makes them probe for long."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from tokenweir import Tokenizer, UnsupportedTokenizerError
from tokenweir.encode import _core

MULTIPLIER = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1
FEW = 100
"""More slots than a look-up ever probes in a table at most two thirds full, whose hashes are as good as random."""


def unseeded_hash(token):
    """The hash of a token of 8 bytes in a table whose seed is 0."""
    whole = (8 ^ int.from_bytes(token, "little")) * MULTIPLIER
    return ((whole & MASK) ^ whole >> 64) * MULTIPLIER & MASK


def test_tokens_that_collide_without_a_seed():
    candidates = (number.to_bytes(8, "little") for number in range(1 << 40))
    tokens = []
    while len(tokens) < 300:
        if unseeded_hash(token := next(candidates)) >> 56 == 0:
            tokens.append(token)
    ids = _core.RankIds({token: i for i, token in enumerate(tokens)})
    assert ids.longest_probe < FEW
    assert [ids[token] for token in tokens] == [*range(300)]


def test_tokens_that_differ_in_bits_that_cancel():
    """In a hash of words by `h = (h ^ word) * odd; h ^= h >> 32`, these collide, whatever `h` is at first."""
    blocks = (bytes(16), (1 << 63).to_bytes(8, "little") + (1 << 63 | 1 << 31).to_bytes(8, "little"))
    tokens = [b"".join(chosen) + b"!" for chosen in product(blocks, repeat=10)]
    assert _core.RankIds({token: i for i, token in enumerate(tokens)}).longest_probe < FEW


def test_names_of_a_json_vocabulary():
    names = [f"{number:08}" for number in range(300_000) if unseeded_hash(b"%08d" % number) >> 56 == 0]
    assert len(names) > 900
    read = _core.TokenIds.from_json(memoryview(json.dumps({name: i for i, name in enumerate(names)}).encode()))
    assert read.longest_probe < FEW


@pytest.fixture(scope="module")
def colliding_merges(spell):
    """Merges that make 1,500 tokens of two letters, and then 1,000 of these pairs whose product with `MULTIPLIER` collides."""
    letters = spell(bytes(range(0x61, 0x7B)) + bytes(range(0x41, 0x55)))
    first = [(a, b) for a in letters for b in letters][:1500]
    left, right = np.mgrid[256:1756, 256:1756].astype(np.uint64)
    with np.errstate(over="ignore"):
        hashes = (left << np.uint64(20) | right) * np.uint64(MULTIPLIER)
    found = np.argwhere(hashes >> np.uint64(54) == 0)[:1000].tolist()
    assert len(found) == 1000
    return first + [("".join(first[i]), "".join(first[j])) for i, j in found]


def test_pairs_that_collide_without_a_seed(colliding_merges, tokenizer_json, both):
    ours, theirs = both(merges=colliding_merges)
    assert ours._core.model.longest_probe < FEW
    text = " ".join("".join(merge) for merge in colliding_merges[1500:])
    assert ours.encode(text) == theirs.encode(text).ids


def test_the_table_of_kernels_refuses_pairs_that_collide(colliding_merges, tokenizer_json):
    tok = Tokenizer.from_bytes(json.dumps(tokenizer_json(merges=colliding_merges)).encode(), "huggingface")
    with pytest.raises(UnsupportedTokenizerError, match="^merges that collide in the table of pairs$"):
        _core.DeviceTables(tok._core.model, [])


def test_each_process_has_a_seed_of_its_own():
    """So that tokens that collide in one process, found by timing it, do not in the next."""
    program = (
        "from tokenweir.encode import _core;"
        "print(_core.RankIds({b'%d' % number: number for number in range(20_000)}).longest_probe)"
    )
    command = [sys.executable, "-P", "-c", program]
    found = {subprocess.run(command, capture_output=True, check=True).stdout for _ in range(8)}
    assert len(found) > 1
