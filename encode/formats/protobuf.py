"""Protobuf messages as mappings: the few fields that a reader names, for files that are not trusted.

The wire format is that of protobuf.dev/programming-guides/encoding. Unknown fields are skipped; of a scalar that is
there twice the last holds; a message that is there twice is the union of both.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, NamedTuple

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError

Kind = Literal["bool", "bytes", "float", "int32", "string"]
Schema = Mapping[int, tuple[str, Kind]]
"""Field number to name and kind."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_WIRES: Mapping[Kind, int] = {"bool": VARINT, "bytes": LENGTH, "float": FIXED32, "int32": VARINT, "string": LENGTH}

MAX_FIELDS = 1 << 17
"""The most fields of one message, which take a fifth of a second. Real ones have as many as user-defined symbols, a few
thousand.
"""


class Field(NamedTuple):
    """One field of a protobuf message.

    Attributes:
        number: The field's number.
        wire: Its wire type.
        at: The byte of the file at which the field begins.
        value: The number, if the field is a varint; otherwise the (start, end) bytes of the value in the file.

    """

    number: int
    wire: int
    at: int
    value: int | tuple[int, int]


def fields(data: bytes, start: int, end: int, path: str, most: int = MAX_FIELDS + 1) -> list[Field]:
    """Return the fields of the message in `data[start:end]`, at most the first `most`.

    Raises:
        TokenizerFileError: A number or a value is cut off, or a wire type is unknown; `path` names the message.

    """
    return [Field(*field) for field in _core.protobuf_fields(data, start, end, path, most)]


def read_into(message: MutableMapping[str, Any], schema: Schema, data: bytes, span: tuple[int, int], path: str) -> None:
    """Read the fields of a protobuf message that a schema knows into a mapping.

    Args:
        message: The mapping of field names to values, which is changed; earlier values are replaced.
        schema: The name and the kind of each known field, by its number.
        data: The file.
        span: The (start, end) bytes of the message.
        path: The name of the message in errors.

    Raises:
        TokenizerFileError: The message is damaged, has more than `MAX_FIELDS` fields, or a known field has another type.

    """
    for count, field in enumerate(fields(data, *span, path)):
        if count == MAX_FIELDS:
            raise TokenizerFileError(f"{path}: more than {MAX_FIELDS} fields, up to byte {field.at}")
        if field.number not in schema:
            continue
        name, kind = schema[field.number]
        if field.wire != _WIRES[kind]:
            raise TokenizerFileError(f"{path}.{name}: wire type {field.wire} at byte {field.at}")
        message[name] = _value(kind, field, data, f"{path}.{name}")


def _value(kind: Kind, field: Field, data: bytes, path: str) -> bool | bytes | float | int | str:
    if isinstance(field.value, int):
        if kind == "bool":
            return field.value != 0
        low = field.value & 0xFFFFFFFF  # a negative number is written in 64 bits
        return low - (1 << 32) if low >> 31 else low
    raw = data[slice(*field.value)]
    if kind == "float":
        (number,) = struct.unpack("<f", raw)
        return float(number)
    if kind == "bytes":
        return raw
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise TokenizerFileError(f"{path}: not UTF-8 at byte {field.value[0] + error.start}") from error
