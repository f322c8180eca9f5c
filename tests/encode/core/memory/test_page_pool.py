"""Memory of large results is kept for the next ones, never while somebody holds a result, and never without a bound."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from in_threads import in_threads

from tokenweir.encode._core import kept_bytes
from tokenweir.encode.tokenizer import Tokenizer

MOST = 256 << 20
TEXTS = ["the water of a river " * 150_000, "some words; and more\n" * 150_000, "日本 and " * 100_000] * 2
OTHERS = [text[::-1] for text in TEXTS]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages of their own are Linux's")


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_held_result_is_never_written_again(tok, threads):
    expected = [tok.encode(text) for text in TEXTS]
    held = tok.encode_batch(TEXTS, threads=threads)
    part, offsets = held.ids[1_000:], held.offsets.tolist()
    copy = part.copy()
    for _ in range(3):
        other = tok.encode_batch(OTHERS, threads=threads)
        assert not np.shares_memory(held.ids, other.ids)
    assert [ids.tolist() for ids in held] == expected
    del held, other
    tok.encode_batch(OTHERS, threads=threads)
    assert np.array_equal(part, copy)  # a view holds it, too
    assert offsets[-1] == sum(map(len, expected))


def test_what_is_dropped_is_used_again(tok):
    size = tok.encode_batch(TEXTS, threads=1).ids.nbytes
    assert (kept := kept_bytes()) >= size > 4 << 20
    held = tok.encode_batch(TEXTS, threads=1)
    assert kept_bytes() < kept
    del held
    assert kept_bytes() >= kept


def test_the_kept_memory_is_bounded(tok):
    held = [tok.encode_batch(TEXTS * 4, threads=2) for _ in range(4)]
    assert sum(one.ids.nbytes for one in held) > MOST
    while held:
        held.pop()
        assert kept_bytes() <= MOST
    assert kept_bytes() > MOST / 2


def test_threads_share_what_is_kept(tok):
    expected = tok.encode_batch(TEXTS).ids.copy()
    wrong = []

    def work(number):
        for _ in range(5):
            if not np.array_equal(tok.encode_batch(TEXTS, threads=2).ids, expected):
                wrong.append(number)

    in_threads(work, range(4))
    assert not wrong and kept_bytes() <= MOST


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_child_has_its_own(tok):
    held = tok.encode_batch(TEXTS, threads=1)
    expected, other = held.ids.copy(), tok.encode_batch(OTHERS, threads=1).ids.copy()
    if not (child := os.fork()):
        same = np.array_equal(tok.encode_batch(OTHERS, threads=1).ids, other)
        os._exit(0 if same and np.array_equal(held.ids, expected) else 1)
    tok.encode_batch(OTHERS, threads=1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(held.ids, expected)
