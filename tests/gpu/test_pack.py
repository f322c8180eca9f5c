"""Texts of Python and Arrow, copied into one buffer."""

from __future__ import annotations

import numpy as np
import pytest
from arrow_arrays import ArrowArray, ArrowStream, string_array
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode._core import Documents
from tokenweir.encode.errors import TextError

TEXTS = ["a", "", "naïve 生活", "\0", b"\xff\xfe", "🙂" * 40, b"", "twelve bytes", "thirteen bytes"]
LAYOUTS = ["u", "U", "vu", "z", "Z", "vz"]


def data(text):
    return text.encode() if isinstance(text, str) else text


def packed(documents, first=0, last=None, threads=0):
    """The bytes of documents by way of a buffer, whose other bytes stay as they are."""
    last = len(documents) if last is None else last
    n = int(documents.offsets[last] - documents.offsets[first])
    buffer = np.full(n + 3, 7, np.uint8)
    documents.copy(first, last, buffer, threads)
    assert buffer[n:].tolist() == [7, 7, 7]
    return buffer[:n].tobytes()


def test_texts_lie_one_after_the_other():
    documents = Documents(TEXTS)
    assert len(documents) == len(TEXTS)
    assert documents.offsets.tolist() == np.cumsum([0, *(len(data(text)) for text in TEXTS)]).tolist()
    assert packed(documents) == b"".join(map(data, TEXTS))
    assert [documents[i] for i in range(len(TEXTS))] == [*map(data, TEXTS)]


def test_any_run_of_texts_can_be_copied():
    documents = Documents(tuple(TEXTS))
    for first in range(len(TEXTS) + 1):
        for last in range(first, len(TEXTS) + 1):
            assert packed(documents, first, last) == b"".join(map(data, TEXTS[first:last]))


def test_no_texts():
    documents = Documents([])
    assert len(documents) == 0
    assert documents.offsets.tolist() == [0]
    assert packed(documents) == b""


@given(st.lists(st.text() | st.binary(), max_size=20), st.integers(1, 9))
def test_threads_change_nothing(texts, threads):
    assert packed(Documents(texts), threads=threads) == b"".join(map(data, texts))


def test_a_long_text_is_shared_by_threads():
    long = bytes(np.random.default_rng(1).integers(0, 256, 5 << 20, np.uint8))
    assert packed(Documents(["ab", long, "生"])) == b"ab" + long + "生".encode()


def test_texts_outlive_the_list_they_came_in():
    texts = ["生活" * 100 + str(i) for i in range(50)]
    wanted = "".join(texts).encode()
    documents = Documents(texts)
    texts.clear()
    assert packed(documents) == wanted


def test_a_lone_surrogate_is_refused_by_its_place():
    with pytest.raises(TextError, match=r"^texts\[2\] has a lone surrogate U\+D83D at character 1$"):
        Documents(["a", b"\xed\xa0\xbd", "b\ud83d"])


def test_what_is_no_text_is_refused_by_its_place():
    with pytest.raises(TypeError, match=r"^texts\[1\] must be str or bytes, not int$"):
        Documents(["a", 5])
    with pytest.raises(TypeError, match="not iterable"):
        Documents(5)


def test_a_range_or_a_buffer_that_does_not_fit():
    documents = Documents(["abc", "de"])
    for first, last in ((1, 0), (0, 3)):
        with pytest.raises(IndexError, match=f"^documents {first} to {last} of 2$"):
            documents.copy(first, last, np.zeros(9, np.uint8))
    with pytest.raises(ValueError, match="^5 bytes do not fit into a buffer of 4$"):
        documents.copy(0, 2, np.zeros(4, np.uint8))
    with pytest.raises(IndexError, match="^document 2 of 2$"):
        documents[2]


def test_a_buffer_that_cannot_be_written_is_refused():
    buffer = np.zeros(9, np.uint8)
    buffer.flags.writeable = False
    with pytest.raises(TypeError):
        Documents(["abc"]).copy(0, 1, buffer)


def test_places_of_characters():
    documents = Documents(["ab", "naïve 生活"])
    assert documents.positions(1, [0, 2, 3, 6, 7]) == [0, 2, 4, 7, 10]
    with pytest.raises(ValueError, match="^a guarded offset is past the end of the text$"):
        documents.positions(0, [2])
    with pytest.raises(ValueError, match="^guarded offsets must ascend$"):
        documents.positions(0, [1, 0])


# -- Arrow -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrow_strings(layout):
    array = string_array(TEXTS, layout)
    documents = Documents(array)
    assert packed(documents) == b"".join(map(data, TEXTS))
    assert array.released == 0  # its bytes are still needed
    del documents
    assert array.released == 1


def test_an_empty_arrow_array_may_lack_buffers():
    assert len(Documents(ArrowArray("u", 0, [None, None, None]))) == 0
    assert packed(Documents(ArrowArray("U", 2, [None, bytes(24), None]))) == b""


def test_arrow_streams():
    chunks = [string_array(TEXTS[:4]), string_array([]), string_array(TEXTS[4:])]
    documents = Documents(ArrowStream(chunks))
    assert packed(documents) == b"".join(map(data, TEXTS))
    del documents
    assert [chunk.released for chunk in chunks] == [1, 1, 1]


def test_a_null_is_refused_by_its_place():
    array = string_array(["a", "b", "c"], offset=1, null_count=-1)
    array.array.length = 2
    valid = np.array([0b011], np.uint8)
    array.array.buffers[0] = valid.ctypes.data
    with pytest.raises(ValueError, match=r"^texts\[1\] is null$"):
        Documents(array)
    assert array.released == 1
    valid[0] = 0b111
    assert packed(Documents(string_array(["a", "b", "c"], null_count=-1))) == b"abc"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (ArrowArray("i", 1, [None, bytes(4)]), "an Arrow array of format 'i' is not one of strings: cast it to string"),
        (
            ArrowArray("i", 1, [None, bytes(4)], dictionary=True),
            "of format 'i' with a dictionary is not one of strings",
        ),
        (
            ArrowArray("u", 1, [None, np.array([3, 1], np.int32).tobytes(), b"abc"]),
            r"offsets of texts\[0\] do not ascend",
        ),
        (
            ArrowArray("u", 1, [None, np.array([-1, 1], np.int32).tobytes(), b"abc"]),
            r"offsets of texts\[0\] do not asc",
        ),
        (
            ArrowArray("vu", 1, [None, np.array([13, 0, 1, 0], np.int32).tobytes(), bytes(13), bytes(8)]),
            "is out of range",
        ),
        (
            ArrowArray("vu", 1, [None, np.array([-1, 0, 0, 0], np.int32).tobytes(), bytes(8)]),
            r"view of texts\[0\] is",
        ),
    ],
)
def test_arrow_arrays_that_are_refused(array, message):
    with pytest.raises(ValueError, match=message):
        Documents(array)


def test_an_arrow_stream_that_fails():
    with pytest.raises(RuntimeError, match="^an Arrow stream failed: the disk is gone$"):
        Documents(ArrowStream([string_array(["a"])], b"the disk is gone"))
