"""Ragged: the ids of many texts in one array."""

from __future__ import annotations

import numpy as np
import pytest

from tokenweir.encode.encoded import Ragged

LISTS = [[1, 2, 3], [], [4], []]


@pytest.fixture
def ragged():
    return Ragged(np.array([1, 2, 3, 4], np.int32), np.array([0, 3, 3, 4, 4], np.int64))


def test_indexing(ragged):
    assert len(ragged) == 4
    assert [ragged[i].tolist() for i in range(4)] == LISTS
    assert [ragged[i].tolist() for i in range(-4, 0)] == LISTS
    assert ragged[np.int64(2)].tolist() == [4]


@pytest.mark.parametrize("index", [4, -5, 2**70])
def test_indexing_out_of_range(ragged, index):
    with pytest.raises(IndexError, match=rf"^text {index} of 4$"):
        ragged[index]


def test_iteration(ragged):
    assert [ids.tolist() for ids in ragged] == LISTS
    assert [ids.tolist() for ids in reversed(ragged)] == LISTS[::-1]


def test_rows_share_the_memory_of_the_whole(ragged):
    assert np.shares_memory(ragged[0], ragged.ids)


def test_no_texts():
    empty = Ragged(np.array([], np.int32), np.zeros(1, np.int64))
    assert (len(empty), list(empty), repr(empty)) == (0, [], "Ragged(0 texts, 0 ids)")
    with pytest.raises(IndexError, match=r"^text 0 of 0$"):
        empty[0]
