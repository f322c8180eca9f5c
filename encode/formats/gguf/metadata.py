"""The metadata of a GGUF file, version 2 or 3, little-endian (ggml, docs/gguf.md).

Only the pages that hold metadata are touched: the file is mapped, and its tensors, which may be many gigabytes, are
never read. One pass finds where each value lies; a value is decoded when it is asked for. No count, length or type is
trusted.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError, without_path
from tokenweir.encode.files import check_regular, refuse_pointer

MAX_BYTES = 1 << 27
"""Metadata that reaches further into a file is refused; the largest known has 40 MB."""
MAX_KEYS, MAX_KEY_BYTES = 1 << 16, (1 << 16) - 1
MAX_STRINGS = 1 << 22
"""The most strings of one array; the largest known has 580,604 merges."""

_SCALARS = ["<u1", "<i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?", "", "", "<u8", "<i8", "<f8"]
_BOOL, _STRING, _ARRAY = 7, 8, 9
_NAMES = ["UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT32", "BOOL", "STRING", "ARRAY"]
_NAMES += ["UINT64", "INT64", "FLOAT64"]


class _Place(NamedTuple):
    """Position of a value: its type, the number of elements of an array, and its first byte."""

    type: int
    elements: int | None
    offset: int


class Metadata:
    """The keys of a GGUF file and their values.

    The methods that return a value raise `TokenizerFileError` if it is invalid or of another type.

    Attributes:
        head: The bytes of the file up to the end of the metadata.

    Raises:
        TokenizerFileError: The data is cut short or inconsistent; the message has the key and the byte.
        UnsupportedTokenizerError: The file has another version or byte order.

    """

    def __init__(self, data: bytes | mmap.mmap) -> None:
        if data[:4] != b"GGUF":
            raise TokenizerFileError(f"not a GGUF file: it begins with {data[:4]!r}")
        self._data = memoryview(data)[:MAX_BYTES]
        self._size = len(self._data)
        version = self._number("<I", 4, "the version")
        if version not in (2, 3):
            swapped = version.to_bytes(4, "little")[:3] == bytes(3) and version
            raise UnsupportedTokenizerError(
                f"a GGUF file {'in big-endian byte order' if swapped else f'of version {version}'}"
            )
        count = self._number("<Q", 16, "the number of keys")
        if count > MAX_KEYS:
            raise TokenizerFileError(f"{count} keys; at most {MAX_KEYS} are read")
        self._places: dict[str, _Place] = {}
        at = 24
        for number in range(count):
            at = self._find(at, number)
        self.head = self._data[:at]

    @classmethod
    def from_file(cls, path: Path) -> Metadata:
        """Map a GGUF file into memory and find its keys; raise `TokenizerFileError` also if it cannot be read."""
        try:
            check_regular(path)
            with path.open("rb") as file:
                refuse_pointer(file.read(64))
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # an empty file is a ValueError
            raise TokenizerFileError(without_path(error)) from error
        return cls(data)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        """Return the keys, in the file's order."""
        return iter(self._places)

    def string(self, key: str) -> str | None:
        """Return the string under a key; None if there is no such key."""
        place = self._typed(key, (_STRING,))
        return None if place is None else self._strings(key, place, 1)[0]

    def flag(self, key: str) -> bool | None:
        """Return the boolean under a key; None if there is no such key."""
        place = self._typed(key, (_BOOL,))
        if place is None:
            return None
        value = self._data[place.offset]
        if value > 1:
            raise TokenizerFileError(f"{key}: the boolean at byte {place.offset} is {value}")
        return bool(value)

    def integer(self, key: str) -> int | None:
        """Return the integer, of any width, under a key; None if there is no such key."""
        place = self._typed(key, (0, 1, 2, 3, 4, 5, 10, 11))
        return None if place is None else int(self._scalars(place, 1)[0])

    def strings(self, key: str) -> list[str] | None:
        """Return the array of strings under a key; None if there is no such key."""
        place = self._typed(key, (_STRING,), array=True)
        if place is None or place.elements is None:
            return None
        if place.elements > MAX_STRINGS:
            raise TokenizerFileError(f"{key}: {place.elements} strings; at most {MAX_STRINGS} are read")
        return self._strings(key, place, place.elements)

    def numbers(self, key: str, *types: str) -> NDArray[np.generic] | None:
        """Return the array of numbers under a key, as a view of the file; None if there is no such key.

        `types` are the element types to accept, by GGUF's names, such as "FLOAT32".
        """
        place = self._typed(key, tuple(map(_NAMES.index, types)), array=True)
        return None if place is None or place.elements is None else self._scalars(place, place.elements)

    # -- the pass over the keys ----------------------------------------------------------------------------------------

    def _find(self, at: int, number: int) -> int:
        """Read a key at a byte offset, record the place of its value, and return the offset of the next key.

        `number` is the key's index, for errors.
        """
        length = self._number("<Q", at, f"the length of key {number}")
        if length > min(MAX_KEY_BYTES, self._size - at - 8):
            raise TokenizerFileError(f"key {number} at byte {at} is {length} bytes long")
        try:
            key = str(self._data[at + 8 : at + 8 + length], "utf-8")
        except UnicodeDecodeError as error:
            raise TokenizerFileError(f"key {number} at byte {at} is not UTF-8") from error
        if key in self._places:
            raise TokenizerFileError(f"{key}: there twice, again at byte {at}")
        at += 8 + length
        kind, count = self._number("<I", at, key), None
        at += 4
        if kind == _ARRAY:
            kind, count = self._number("<I", at, key), self._number("<Q", at + 4, key)
            at += 12
            if kind == _ARRAY:
                raise TokenizerFileError(f"{key}: an array of arrays at byte {at - 12}")
        if kind >= len(_SCALARS):
            raise TokenizerFileError(f"{key}: type {kind} before byte {at} is unknown")
        place = self._places[key] = _Place(kind, count, at)
        elements = 1 if count is None else count
        if kind == _STRING:
            try:
                return _core.gguf_skip_strings(self._data, at, elements)
            except (TokenizerFileError, TypeError) as error:  # TypeError: the count takes more than 64 bits
                raise TokenizerFileError(f"{key}: {error}") from error
        size = elements * np.dtype(_SCALARS[kind]).itemsize
        if size > self._size - at:
            raise TokenizerFileError(
                f"{key}: {elements} x {_NAMES[kind]} at byte {place.offset}, where {self._size - at} bytes are left"
            )
        return at + size

    def _number(self, form: str, at: int, what: str) -> int:
        if struct.calcsize(form) > self._size - at:
            raise TokenizerFileError(f"{what}: cut short at byte {at}")
        number: int = struct.unpack_from(form, self._data, at)[0]
        return number

    # -- values --------------------------------------------------------------------------------------------------------

    def _typed(self, key: str, kinds: tuple[int, ...], *, array: bool = False) -> _Place | None:
        place = self._places.get(key)
        if place is not None and (place.type not in kinds or array != (place.elements is not None)):
            found = _NAMES[place.type] if place.elements is None else f"an array of {_NAMES[place.type]}"
            wanted = " or ".join(_NAMES[kind] for kind in kinds)
            raise TokenizerFileError(
                f"{key}: {found} at byte {place.offset}, expected {'an array of ' * array}{wanted}"
            )
        return place

    def _strings(self, key: str, place: _Place, count: int) -> list[str]:
        try:
            return _core.gguf_strings(self._data, place.offset, count)
        except TokenizerFileError as error:
            raise TokenizerFileError(f"{key}: {error}") from error

    def _scalars(self, place: _Place, count: int) -> NDArray[np.generic]:
        return np.frombuffer(self._data, _SCALARS[place.type], count, place.offset)
