"""Packing of texts into rows: no id is lost or cut, and positions start anew in each text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.values.encoded import Ragged


def ragged(texts):
    offsets = np.cumsum([0, *map(len, texts)])
    return Ragged(np.array([i for text in texts for i in text], np.int32), offsets.astype(np.int64))


@given(st.lists(st.lists(st.integers(1, 9), max_size=7), max_size=20), st.integers(7, 12))
def test_rows_hold_all_texts_in_order(texts, length):
    packed = ragged(texts).packed(length, 0)
    found, used = [], []
    for ids, positions, numbers in zip(*packed, strict=True):
        assert len(ids) == length
        for number in range(1, numbers.max(initial=0) + 1):
            inside = numbers == number
            if inside.any():
                found.append(ids[inside].tolist())
                assert positions[inside].tolist() == list(range(inside.sum()))
        used.append(int((numbers > 0).sum()))
        assert (numbers[: used[-1]] > 0).all()  # padding is at the end
        assert not ids[used[-1] :].any()
        assert not positions[used[-1] :].any()
    assert found == [text for text in texts if text]
    firsts = [len(text) for text in texts if text]
    assert sum(used) == sum(firsts)


def test_a_row_is_filled_before_the_next():
    packed = ragged([[1, 2], [3], [4, 5, 6], [7]]).packed(4, 99)
    assert packed.ids.tolist() == [[1, 2, 3, 99], [4, 5, 6, 7]]
    assert packed.positions.tolist() == [[0, 1, 0, 0], [0, 1, 2, 0]]
    assert packed.texts.tolist() == [[1, 1, 2, 0], [1, 1, 1, 2]]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"^text 1 has 3 ids, more than a row of 2$"):
        ragged([[1], [1, 2, 3]]).packed(2, 0)
    with pytest.raises(TypeError, match=r"^pad_id must be int, not None"):
        ragged([[1]]).packed(2, None)
    assert ragged([]).packed(4, 0).ids.shape == (0, 4)
