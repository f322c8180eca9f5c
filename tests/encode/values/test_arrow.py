"""Texts from Arrow and numpy, ids to Arrow and back."""

import gc
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenweir import Ragged, TextError, Tokenizer

pa = pytest.importorskip("pyarrow")

TEXTS = ["Hello, world!", "", "naïve 你好 \U0001f600", "a" * 40, "x\0y"]


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.fixture(scope="module")
def expected(tok):
    return [tok.encode(text) for text in TEXTS]


def rows(ragged):
    return [row.tolist() for row in ragged]


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"])
def test_arrays_of_every_kind_of_string(tok, expected, kind):
    array = pa.array(TEXTS).cast(pa.binary() if "binary" in kind else pa.string()).cast(getattr(pa, kind)())
    assert rows(tok.encode_batch(array)) == expected
    assert rows(tok.encode_batch(array[1:4])) == expected[1:4]
    assert rows(tok.encode_batch(array[:0])) == []


def test_chunks(tok, expected):
    chunked = pa.chunked_array([TEXTS[:2], [], TEXTS[2:]])
    assert rows(tok.encode_batch(chunked)) == expected
    assert rows(tok.encode_batch(pa.chunked_array([], pa.string()))) == []


def test_numpy_arrays(tok, expected):
    texts = [text for text in TEXTS if "\0" not in text]
    expected = [ids for text, ids in zip(TEXTS, expected, strict=True) if "\0" not in text]
    for array in (
        np.array(texts),
        np.array(texts, object),
        np.array([text.encode() for text in texts]),
        np.array(texts, np.dtypes.StringDType()) if hasattr(np.dtypes, "StringDType") else np.array(texts),
    ):
        assert rows(tok.encode_batch(array)) == expected
    with pytest.raises(ValueError, match="one dimension, not 2"):
        tok.encode_batch(np.array([texts]))
    with pytest.raises(TypeError, match=r"^texts\[0\] must be str or bytes, not int$"):
        tok.encode_batch(np.arange(3))


def test_bytes(tok, expected):
    assert rows(tok.encode_batch([text.encode() for text in TEXTS])) == expected


@pytest.mark.parametrize(
    "bad", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"abcdefgh\xe4\xbd", b"\xf5\x80\x80\x80", b"12345678\x80"]
)
def test_what_is_not_utf8_is_refused_by_its_number(tok, bad):
    for texts in ([b"fine", bad], pa.array([b"fine", bad]), np.array([b"fine", bad])):
        with pytest.raises(TextError, match=r"^texts\[1\] is not UTF-8"):
            tok.encode_batch(texts)


def test_nulls_and_other_types_are_refused(tok):
    with pytest.raises(ValueError, match=r"^texts\[1\] is null$"):
        tok.encode_batch(pa.array(["a", None]))
    with pytest.raises(ValueError, match=r"^texts\[3\] is null$"):
        tok.encode_batch(pa.chunked_array([["a", "b"], ["c", None]]))
    with pytest.raises(ValueError, match="format 'l' is not one of strings"):
        tok.encode_batch(pa.array([1, 2]))
    with pytest.raises(ValueError, match=r"format '\+s' is a table: take a column of it$"):
        tok.encode_batch(pa.table({"text": ["a"]}))


def test_guards_go_by_number(tok):
    text = "<|im_end|>"
    assert text in tok.control_texts
    found = tok.encode_batch(pa.array([text, text]), guarded=[[], [0]])
    assert rows(found) == [tok.encode(text), tok.encode(text, guarded=[0])]
    with pytest.raises(ValueError, match="guarded has 1 entries for 2 texts"):
        tok.encode_batch(pa.array([text, text]), guarded=[[0]])


# -- ids ---------------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=5), max_size=8))
def test_there_and_back(lists):
    ids = np.array([i for row in lists for i in row], np.int32)
    ragged = Ragged(ids, np.cumsum([0, *map(len, lists)], dtype=np.int64))
    array = ragged.to_arrow()
    array.validate(full=True)
    assert array.type == pa.large_list(pa.int32())
    assert array.to_pylist() == lists
    for arrow in (array, array.cast(pa.list_(pa.int32())), pa.array(lists, pa.list_(pa.int32()))):
        assert rows(Ragged.from_arrow(arrow)) == lists
        assert rows(Ragged.from_arrow(arrow[1:])) == lists[1:]
        assert rows(Ragged.from_arrow(pa.chunked_array([arrow[:2], arrow[2:]]))) == lists


def test_nothing_is_copied(tok):
    ragged = tok.encode_batch(TEXTS)
    array = ragged.to_arrow()
    assert array.values.buffers()[1].address == ragged.ids.ctypes.data
    assert array.buffers()[1].address == ragged.offsets.ctypes.data
    back = Ragged.from_arrow(array)
    assert back.ids.ctypes.data == ragged.ids.ctypes.data
    assert back.offsets.ctypes.data == ragged.offsets.ctypes.data
    part = Ragged.from_arrow(array[2:])
    assert part.ids.ctypes.data == ragged[2].ctypes.data


def test_the_memory_lives_as_long_as_it_is_looked_at():
    ids, offsets = np.arange(1000, dtype=np.int32), np.array([0, 400, 1000])
    gone = weakref.ref(ids)
    array = Ragged(ids, offsets).to_arrow()
    del ids, offsets
    back = Ragged.from_arrow(array)
    del array
    gc.collect()
    assert gone() is not None
    assert back[1].tolist() == list(range(400, 1000))
    del back
    gc.collect()
    assert gone() is None


def test_chunks_of_nothing():
    assert rows(Ragged.from_arrow(pa.chunked_array([], pa.list_(pa.int32())))) == []


def test_what_is_no_list_of_ids():
    with pytest.raises(TypeError, match="takes an Arrow array, not list"):
        Ragged.from_arrow([[1]])
    for array, words in (
        (pa.array([[1]]), r"format '\+l' of 'l' is not one of lists of int32"),
        (pa.array([1], pa.int32()), "format 'i' is not one of lists"),
        (pa.array([[1], None], pa.list_(pa.int32())), r"lists\[1\] is null"),
        (pa.array([[1, None]], pa.list_(pa.int32())), r"ids\[1\] is null"),
    ):
        with pytest.raises(ValueError, match=words):
            Ragged.from_arrow(array)
    with pytest.raises(ValueError, match="lead past the ids"):
        Ragged(np.zeros(3, np.int32), np.array([0, 4])).to_arrow()
    with pytest.raises(ValueError, match="do not ascend"):
        Ragged(np.zeros(3, np.int32), np.array([0, 100, 3])).to_arrow()


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_column_of_a_table(tok, expected):
    table = pa.table({"n": range(len(TEXTS)), "text": TEXTS})
    found = tok.encode_table(table, "text")
    assert found.column_names == ["n", "text", "input_ids"]
    assert found["input_ids"].to_pylist() == expected
    found = tok.encode_table(pa.concat_tables([table, table]), "text", into="ids", add_special_tokens=False)
    assert found["ids"].to_pylist() == [tok.encode(text, add_special_tokens=False) for text in TEXTS * 2]
    batch = tok.encode_table(table.to_batches()[0], "text")
    assert batch.column("input_ids").to_pylist() == expected
    with pytest.raises(KeyError):
        tok.encode_table(table, "none")
    with pytest.raises(ValueError, match="has a column 'n' already"):
        tok.encode_table(table, "text", into="n")


@settings(max_examples=30)
@given(st.lists(st.text(max_size=20), max_size=6))
def test_any_texts(texts):
    tok = Tokenizer.default()
    given = [text.encode(errors="replace").decode() for text in texts]
    array = pa.array(given, pa.string())
    assert rows(tok.encode_batch(array)) == [tok.encode(text) for text in given]


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"^Ragged.to_arrow\(\) needs pyarrow: pip install 'tokenweir\[arrow\]'$"):
        Ragged(np.zeros(3, np.int32), np.array([0, 3])).to_arrow()
