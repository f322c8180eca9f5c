"""Sizes of images, read from their first bytes: PNG, JPEG, WebP and GIF. Nothing is decompressed."""

from __future__ import annotations

import struct
from typing import NamedTuple

FORMATS = "PNG, JPEG, WebP or GIF"


class ImageHeader(NamedTuple):
    """Format of an image as a media type (such as "image/png"), and its size in pixels."""

    media_type: str
    width: int
    height: int


def read_image_header(data: bytes) -> ImageHeader | None:
    """Return the format and size of a PNG, JPEG, WebP or GIF image, from its first bytes.

    Return None for other data, and for a header that is cut off or has a size of 0 pixels.
    """
    try:
        header = _read(data)
    except struct.error:
        return None
    return header if header is not None and header.width and header.height else None


def _read(data: bytes) -> ImageHeader | None:
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR":
        return ImageHeader("image/png", *struct.unpack_from(">II", data, 16))
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return ImageHeader("image/gif", *struct.unpack_from("<HH", data, 6))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return _jpeg(data) if data[:3] == b"\xff\xd8\xff" else None


def _webp(data: bytes) -> ImageHeader | None:
    """Return the format and size of a WebP image (RFC 9649: lossy, lossless or extended); None for an invalid one."""
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", data, 26)
            return ImageHeader("image/webp", width & 0x3FFF, height & 0x3FFF)
        case b"VP8L" if data[20:21] == b"\x2f":
            (bits,) = struct.unpack_from("<I", data, 21)
            return ImageHeader("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X" if len(data) >= 30:
            width, height = (int.from_bytes(data[place : place + 3], "little") + 1 for place in (24, 27))
            return ImageHeader("image/webp", width, height)
        case _:
            return None


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of JPEG's frame headers; the other three are tables and an extension."""


MOST_SEGMENTS = 1024
"""Segments before the frame header of a JPEG, fill bytes included. An ICC profile takes up to 255."""


def _jpeg(data: bytes) -> ImageHeader | None:
    """Return the format and size of a JPEG image; None if no frame header comes within `MOST_SEGMENTS` segments."""
    place = 2
    for _ in range(MOST_SEGMENTS):
        if data[place : place + 2] == b"\xff\xff":  # a fill byte
            place += 1
            continue
        mark, kind, length = struct.unpack_from(">BBH", data, place)
        if mark != 0xFF or length < 2:
            return None
        if kind in _FRAMES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return ImageHeader("image/jpeg", width, height)
        place += 2 + length
    return None
