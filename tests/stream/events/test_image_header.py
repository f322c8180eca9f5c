"""Sizes of images from their headers, beside Pillow where it is installed."""

import io
import struct

import pytest
from pictures import png

from tokenweir.stream.events.image_header import MOST_SEGMENTS, read_image_header

GIF = b"GIF89a" + struct.pack("<HH", 300, 7) + b"\0" * 3
JPEG = (
    b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"\0" * 14  # JFIF
    + b"\xff\xc4" + struct.pack(">H", 4) + b"\0\0"  # a table, whose marker is among those of frames
    + b"\xff\xff\xff\xc2" + struct.pack(">HBHH", 11, 8, 480, 640) + b"\0" * 4  # fill bytes, then a progressive frame
)  # fmt: skip
LOSSY = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 0x4000 | 5, 6)
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 8 | 9 << 14)
EXTENDED = b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + (99).to_bytes(3, "little") + (49).to_bytes(3, "little")
IMAGES = {
    "png": (png(20, 30), ("image/png", 20, 30)),
    "gif": (GIF, ("image/gif", 300, 7)),
    "jpeg": (JPEG, ("image/jpeg", 640, 480)),
    "lossy": (LOSSY, ("image/webp", 5, 6)),
    "lossless": (LOSSLESS, ("image/webp", 9, 10)),
    "extended": (EXTENDED, ("image/webp", 100, 50)),
}


@pytest.mark.parametrize(("data", "header"), IMAGES.values(), ids=IMAGES)
def test_size_and_type_are_those_of_the_header(data, header):
    assert read_image_header(data) == header


@pytest.mark.parametrize("data", [data for data, _ in IMAGES.values()], ids=IMAGES)
def test_a_header_that_is_cut_off_is_none(data):
    for cut in range(10):
        assert read_image_header(data[:cut]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg/>",
        png(0, 3),
        b"\xff\xd8\xff\xe0\0\1" + b"\0" * 40,  # a segment shorter than its length
        b"\xff\xd8\xff" + b"\xff" * 1000,
        b"\xff\xd8\xff\xe0\xff\xff",
        b"\xff\xd8" + b"\xff\xe0\0\2" * MOST_SEGMENTS + JPEG[2:],  # a walk that hostile data could make long
        b"\xff\xd8" + b"\xff" * MOST_SEGMENTS + JPEG[2:],
    ],
)
def test_other_data_is_none(data):
    assert read_image_header(data) is None


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_pillow_writes_what_is_read(form):
    images = pytest.importorskip("PIL.Image")
    for options in ({}, {"lossless": True}) if form == "WEBP" else ({}, {"progressive": True}):
        file = io.BytesIO()
        images.new("RGB", (123, 45)).save(file, form, **options)
        header = read_image_header(file.getvalue())
        assert header is not None
        assert (header.media_type, header.width, header.height) == (f"image/{form.lower()}", 123, 45)
