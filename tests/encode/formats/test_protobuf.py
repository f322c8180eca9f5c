"""Protobuf messages: what is read of them, and how damaged ones are refused."""

from __future__ import annotations

import random
import struct

import pytest

from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.formats.protobuf import FIXED32, FIXED64, LENGTH, VARINT, Field, fields, read_into

SCHEMA = {
    1: ("count", "int32"),
    2: ("flag", "bool"),
    3: ("share", "float"),
    4: ("name", "string"),
    16: ("raw", "bytes"),
}


def read(data, start=0):
    message = {}
    read_into(message, SCHEMA, data, (start, len(data)), "spec")
    return message


def refused(data):
    with pytest.raises(TokenizerFileError) as caught:
        read(data)
    return str(caught.value)


def test_the_fields_of_a_message():
    data = b"\x08\x96\x01" + b"\x11" + bytes(8) + b"\x22\x02hi" + b"\x1d\x00\x00\x80\x3f"
    assert list(fields(data, 0, len(data), "spec")) == [
        Field(1, VARINT, 0, 150),
        Field(2, FIXED64, 3, (4, 12)),
        Field(4, LENGTH, 12, (14, 16)),
        Field(3, FIXED32, 16, (17, 21)),
    ]
    assert list(fields(b"", 0, 0, "spec")) == []


def test_every_kind():
    share = struct.pack("<f", 0.1)
    assert read(b"\x08\x05\x10\x01\x1d" + share + b"\x22\x03\xe2\x96\x81\x82\x01\x02\xff\x00") == {
        "count": 5,
        "flag": True,
        "share": struct.unpack("<f", share)[0],
        "name": "▁",
        "raw": b"\xff\0",
    }
    assert read(b"") == {}


@pytest.mark.parametrize(
    ("varint", "value"),
    [
        (b"\x00", 0),
        (b"\x80\x00", 0),
        (b"\xff\xff\xff\xff\x07", 2**31 - 1),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", -1),
        (b"\x80\x80\x80\x80\xf8\xff\xff\xff\xff\x01", -(2**31)),
    ],
)
def test_32_bit_numbers(varint, value):
    assert read(b"\x08" + varint) == {"count": value}


def test_the_last_of_a_scalar_holds_and_unknown_fields_are_skipped():
    assert read(b"\x08\x01\x08\x02") == {"count": 2}
    assert read(b"\x28\x01\x31" + bytes(8) + b"\x3a\x03abc\x45" + bytes(4) + b"\x08\x07") == {"count": 7}


def test_a_stretch_of_a_file():
    data = b"junk\x08\x05"
    assert read(data, 4) == {"count": 5}
    with pytest.raises(TokenizerFileError, match=r"^spec: a value of 9 bytes where 1 are left at byte 6$"):
        list(fields(b"junk\x22\x09ajunk", 4, 7, "spec"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08", "spec: a number is cut off at byte 1"),
        (b"\x08\x80", "spec: a number is cut off at byte 1"),
        (b"\x80", "spec: a number is cut off at byte 0"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "spec: a number of more than 10 bytes at byte 1"),
        (b"\x22\x04abc", "spec: a value of 4 bytes where 3 are left at byte 2"),
        (b"\x22" + b"\xff" * 9 + b"\x01", f"spec: a value of {2**64 - 1} bytes where 0 are left at byte 11"),
        (b"\x1d\x00\x00\x00", "spec: a value of 4 bytes where 3 are left at byte 1"),
        (b"\x31" + bytes(7), "spec: a value of 8 bytes where 7 are left at byte 1"),
        (b"\x00\x01", "spec: field 0 at byte 0"),
        (b"\xf8\xff\xff\xff\xff\x01\x01", "spec: field 8589934591 at byte 0"),
        (b"\x08\x01\x0b", "spec: wire type 3 at byte 2"),
        (b"\x0f", "spec: wire type 7 at byte 0"),
        (b"\x0a\x01a", "spec.count: wire type 2 at byte 0"),
        (b"\x12\x00", "spec.flag: wire type 2 at byte 0"),
        (b"\x18\x01", "spec.share: wire type 0 at byte 0"),
        (b"\x19" + bytes(8), "spec.share: wire type 1 at byte 0"),
        (b"\x08\x01\x20\x01", "spec.name: wire type 0 at byte 2"),
        (b"\x22\x03ab\xff", "spec.name: not UTF-8 at byte 4"),
    ],
)
def test_damage(data, message):
    assert refused(data) == message


def test_random_bytes_are_read_or_refused():
    pick = random.Random(4)
    sound = b"\x08\x05\x10\x01\x1d\x00\x00\x80\x3f\x22\x03abc\x82\x01\x02\xff\x00"
    outcomes = {True: 0, False: 0}
    for _ in range(20_000):
        data = bytearray(sound if pick.random() < 0.7 else pick.randbytes(20))
        for _ in range(pick.randint(0, 3)):
            data[pick.randrange(len(data))] = pick.randrange(256)
        try:
            message = read(bytes(data[: pick.randint(0, len(data))]))
        except TokenizerFileError as error:
            assert " at byte " in str(error)
            outcomes[False] += 1
        else:
            assert set(message) <= {name for name, _ in SCHEMA.values()}
            outcomes[True] += 1
    assert min(outcomes.values()) > 1000
