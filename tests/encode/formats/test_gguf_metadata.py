"""The metadata of GGUF files: what is read, and what is refused with the key and the byte."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.gguf.metadata import Metadata

U64 = 2**64 - 1


def header(keys, version=3):
    return struct.pack("<4sIQQ", b"GGUF", version, 0, keys)


def key(name, kind, value=b""):
    data = name.encode()
    return struct.pack("<Q", len(data)) + data + struct.pack("<I", kind) + value


def array(kind, count, elements=b""):
    return struct.pack("<IQ", kind, count) + elements


@pytest.mark.parametrize("version", [2, 3])
def test_values(gguf, version):
    values = {
        "s": "日本",
        "empty": "",
        "b": True,
        "i": 7,
        "l": ["a", "", "é"],
        "n": [1, -2],
        "f": [0.5],
        "u": b"\x00\xff",
    }
    metadata = Metadata(gguf(values, version=version))
    assert list(metadata) == list(values)
    assert (metadata.string("s"), metadata.string("empty"), metadata.flag("b")) == ("日本", "", True)
    assert (metadata.integer("i"), metadata.strings("l")) == (7, ["a", "", "é"])
    assert metadata.numbers("n", "INT32", "FLOAT32").tolist() == [1, -2]
    assert metadata.numbers("f", "FLOAT32").tolist() == [0.5]
    assert metadata.numbers("u", "INT8", "UINT8").tobytes() == b"\x00\xff"
    assert "s" in metadata and "x" not in metadata
    assert [metadata.string("x"), metadata.flag("x"), metadata.integer("x"), metadata.strings("x")] == [None] * 4
    assert metadata.numbers("x", "INT32") is None


@pytest.mark.parametrize(
    ("kind", "form"), [(0, "B"), (1, "b"), (2, "H"), (3, "h"), (4, "I"), (5, "i"), (10, "Q"), (11, "q")]
)
def test_integers_of_every_width(kind, form):
    largest = int(np.iinfo(np.dtype(form)).max)
    data = header(2) + key("a", kind, struct.pack("<" + form, largest)) + key("b", kind, struct.pack("<" + form, 1))
    assert (Metadata(data).integer("a"), Metadata(data).integer("b")) == (largest, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a GGUF file: it begins with b''"),
        (b"GGML" + bytes(20), "not a GGUF file: it begins with b'GGML'"),
        (b"GGUF", "the version: cut short at byte 4"),
        (header(1)[:20], "the number of keys: cut short at byte 16"),
        (header(1), "the length of key 0: cut short at byte 24"),
        (header(U64), f"{U64} keys; at most 65536 are read"),
        (header(1) + struct.pack("<Q", U64), f"key 0 at byte 24 is {U64} bytes long"),
        (header(1) + struct.pack("<Q", 70000) + bytes(70000), "key 0 at byte 24 is 70000 bytes long"),
        (header(1) + struct.pack("<Q", 1) + b"\xff" + bytes(8), "key 0 at byte 24 is not UTF-8"),
        (header(1) + key("k", 13), "k: type 13 before byte 37 is unknown"),
        (header(1) + key("k", 4), "k: 1 x UINT32 at byte 37, where 0 bytes are left"),
        (header(1) + key("k", 9, array(4, 2**60)), f"k: {2**60} x UINT32 at byte 49, where 0 bytes are left"),
        (header(1) + key("k", 9, array(9, 1)), "k: an array of arrays at byte 37"),
        (header(1) + key("k", 9, array(99, 1)), "k: type 99 before byte 49 is unknown"),
        (header(1) + key("k", 9, b"\x08\0\0\0"), "k: cut short at byte 41"),
        (header(1) + key("k", 8, struct.pack("<Q", 9)), "k: string 0 at byte 37 is 9 bytes long; 0 are left"),
        (header(1) + key("k", 9, array(8, U64)), "k: string 0 at byte 49 has no length: the data ends there"),
        (header(2) + key("k", 7, b"\1") * 2, "k: there twice, again at byte 38"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(data, message):
    with pytest.raises(TokenizerFileError) as refusal:
        Metadata(data)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (header(0, 1), "a GGUF file of version 1"),
        (header(0, 4), "a GGUF file of version 4"),
        (struct.pack(">4sIQQ", b"GGUF", 3, 0, 0), "a GGUF file in big-endian byte order"),
    ],
)
def test_other_versions(data, what):
    with pytest.raises(UnsupportedTokenizerError, match=f"^{what}$"):
        Metadata(data)


def test_values_of_another_type(gguf):
    metadata = Metadata(gguf({"s": "a", "i": 1, "l": ["a"], "n": [1]}))
    for read, message in [
        (lambda: metadata.flag("s"), "s: STRING at byte 37, expected BOOL"),
        (lambda: metadata.strings("s"), "s: STRING at byte 37, expected an array of STRING"),
        (lambda: metadata.string("l"), "l: an array of STRING at byte .*, expected STRING"),
        (lambda: metadata.integer("n"), "n: an array of INT32 at byte .*, expected UINT8 or INT8 .*"),
        (lambda: metadata.numbers("n", "FLOAT32"), "n: an array of INT32 at byte .*, expected an array of FLOAT32"),
    ]:
        with pytest.raises(TokenizerFileError, match=f"^{message}$"):
            read()
    with pytest.raises(TokenizerFileError, match="^b: the boolean at byte 37 is 2$"):
        Metadata(header(1) + key("b", 7, b"\2")).flag("b")


def test_a_string_that_is_not_text(gguf):
    metadata = Metadata(gguf({"l": ["a", b"\xff\xfe", "c"]}))
    with pytest.raises(TokenizerFileError, match="^l: string 1 at byte 58 is not UTF-8$"):
        metadata.strings("l")


def test_more_strings_than_any_vocabulary_has():
    metadata = Metadata(header(1) + key("l", 9, array(8, (1 << 22) + 1, bytes(8 * ((1 << 22) + 1)))))
    with pytest.raises(TokenizerFileError, match="^l: 4194305 strings; at most 4194304 are read$"):
        metadata.strings("l")


def test_every_truncation_is_refused(gguf):
    data = gguf({"s": "日本", "b": True, "l": ["a", "é"], "n": [1, 2]})
    Metadata(data)
    for end in range(len(data)):
        with pytest.raises(TokenizerFileError):
            Metadata(data[:end])


def test_a_file_with_many_gigabytes_of_tensors(gguf, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf({"s": "a"}))
    with path.open("r+b") as file:
        file.truncate(40 << 30)  # sparse: takes no room
    assert Metadata.from_file(path).string("s") == "a"


def test_files_that_cannot_be_mapped(tmp_path):
    (tmp_path / "empty.gguf").write_bytes(b"")
    with pytest.raises(TokenizerFileError, match="^cannot mmap an empty file$"):
        Metadata.from_file(tmp_path / "empty.gguf")
    with pytest.raises(TokenizerFileError, match="^No such file or directory$"):
        Metadata.from_file(tmp_path / "none.gguf")
