"""Ragged: the ids of many texts in one array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.values.encoded import Ragged

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


@given(
    st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=5),
    st.none() | st.integers(0, 8),
    st.sampled_from(["left", "right"]),
    st.sampled_from(["left", "right"]),
)
def test_padded(rows, length, side, truncation_side):
    offsets = np.cumsum([0, *map(len, rows)])
    ids, mask = Ragged(np.array([token_id for row in rows for token_id in row], np.int32), offsets).padded(
        -1, length, side=side, truncation_side=truncation_side
    )
    width = max(map(len, rows), default=0) if length is None else length
    assert ids.shape == mask.shape == (len(rows), width)
    assert ids.dtype == mask.dtype == np.int32
    for row, padded, ones in zip(rows, ids.tolist(), mask.tolist(), strict=True):
        kept = row[:width] if truncation_side == "right" else row[len(row) - min(len(row), width) :]
        filling = [-1] * (width - len(kept))
        assert padded == (kept + filling if side == "right" else filling + kept)
        assert ones == [int(token_id != -1) for token_id in padded]


def test_rows_that_cannot_be(ragged):
    with pytest.raises(ValueError, match="^pad_id must fit into int32, not 1000000000000$"):
        ragged.padded(10**12)
    with pytest.raises(ValueError, match="^length must be at least 0, not -1$"):
        ragged.padded(0, -1)
    with pytest.raises(ValueError, match='^truncation_side must be "left" or "right", not \'middle\'$'):
        ragged.padded(0, truncation_side="middle")
