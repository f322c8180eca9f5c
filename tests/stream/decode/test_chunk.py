from __future__ import annotations

import re

import numpy as np
import pytest

from tokenweir.encode.errors import EngineError
from tokenweir.stream.decode.chunk import Chunk, engine_ids, id_list
from tokenweir.stream.events.step import EngineStep


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
        ({5, 6}, "set {5, 6}"),
        ({5: "a"}, "dict {5: 'a'}"),
        (EngineStep(None), "EngineStep EngineStep(ids=None, "),
        (Chunk([5], "a"), "Chunk "),
    ],
)
def test_anything_else_is_named(item, named):
    with pytest.raises(TypeError, match=re.escape(f"a sequence of ids, not {named}")):
        id_list(item)
    with pytest.raises(EngineError, match=re.escape(f"the engine yielded {named}")):
        engine_ids(item)


def test_what_is_long_is_named_in_short():
    with pytest.raises(EngineError) as caught:
        engine_ids("x" * 1000)
    assert str(caught.value) == (
        f"the engine yielded str '{'x' * 76}..., not a token id, a sequence of ids or an EngineStep"
    )
