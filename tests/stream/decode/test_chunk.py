from __future__ import annotations

import re

import numpy as np
import pytest

from tokenweir.encode.errors import EngineError
from tokenweir.stream.decode.chunk import Chunk, PendingIds, id_list
from tokenweir.stream.engines.protocol import EngineStep


def test_an_id_goes_with_the_last_character_of_its_text():
    pending = PendingIds()
    pending.add([7], 5)
    assert pending.take(4) == []
    assert pending.take(1) == [7]
    assert not pending


def test_an_id_without_text_rides_with_the_next_character():
    pending = PendingIds()
    pending.add([7], 2)
    pending.add([8], 0)
    assert pending.take(2) == [7]
    pending.add([9], 3)
    assert pending.take(1) == [8]
    assert pending.take(2) == [9]


def test_an_id_that_ends_inside_a_character_rides_with_it():
    pending = PendingIds()
    pending.add([7], 2, whole=False)
    assert pending.take(2) == []
    pending.add([8], 1)
    assert pending.take(1) == [7, 8]


def test_cut_gives_a_piece_for_each_place_where_ids_end():
    pending = PendingIds()
    pending.add([1], 0)
    pending.add([2, 3], 3)
    pending.add([4], 3)
    assert list(pending.cut("abcde")) == [([1], "a"), ([2, 3], "bc"), ([], "de")]
    assert pending.rest() == [4]


def test_a_copy_is_independent():
    pending = PendingIds()
    pending.add([1], 1)
    other = pending.copy()
    assert pending.take(1) == [1]
    assert other.take(1) == [1]


@pytest.mark.parametrize(
    ("item", "ids"),
    [
        (5, [5]),
        ([5, 6], [5, 6]),
        ((5,), [5]),
        ([], []),
        (range(3), [0, 1, 2]),
        (np.int64(5), [5]),
        (np.array([5, 6], dtype=np.int32), [5, 6]),
        (np.array(5), [5]),
        ([np.int32(5), np.uint8(6)], [5, 6]),
        (EngineStep([5, 6]), [5, 6]),
        (EngineStep(np.array([5])), [5]),
    ],
)
def test_whatever_holds_ids_becomes_a_list_of_ints(item, ids):
    got = id_list(item)
    assert got == ids
    assert all(type(token_id) is int for token_id in got)


@pytest.mark.parametrize(
    ("item", "named"),
    [
        ("text", "str 'text'"),
        (b"\x05", "bytes b'\\x05'"),
        (1.0, "float 1.0"),
        (None, "NoneType None"),
        (True, "bool True"),
        ([5, "a"], "list [5, 'a']"),
        ([5.0], "list [5.0]"),
        ([True], "list [True]"),
        (np.array([0.5]), "ndarray array([0.5])"),
        (np.array([[5]]), "ndarray array([[5]])"),
        (EngineStep(None), "EngineStep EngineStep(ids=None, "),
        (Chunk([5], "a"), "Chunk "),
    ],
)
def test_anything_else_is_named(item, named):
    with pytest.raises(EngineError, match=re.escape(f"the engine yielded {named}")):
        id_list(item)


def test_what_is_long_is_named_in_short():
    with pytest.raises(EngineError) as caught:
        id_list("x" * 1000)
    assert str(caught.value) == (
        f"the engine yielded str '{'x' * 76}..., not a token id, a sequence of ids or an EngineStep"
    )
