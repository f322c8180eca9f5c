"""Reading of a part of an input: its columns in batches, and the position of a row."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from itertools import islice
from sys import maxsize
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tokenweir.corpus.decoded_sizes import MAX_ROWS, slices
from tokenweir.corpus.inputs import InputPart, codec_of, parquet_file, record_batches
from tokenweir.corpus.storage import open_binary
from tokenweir.encode.errors import CorpusError

if TYPE_CHECKING:
    import pyarrow

BATCH_BYTES = 8 << 20
"""Approximate bytes that are read, encoded and written at a time."""

MAX_EXPANDED_ROWS = 64
"""The most rows to read at a time from a Parquet file whose encoding tells nothing of their size."""


def read_columns(
    part: InputPart, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[Mapping[str, Any], Sequence[int]]]:
    """Read a part of an input file; yield the values of columns in batches.

    Args:
        part: The part.
        columns: The names of the columns. In a text file, each line is a value of the first one.
        optional: The names of columns that a file may lack.

    Yields:
        A mapping of column to values (Arrow arrays for Parquet and Arrow files, else lists), and the number of each row
        or line in the part, from 0.

    Raises:
        CorpusError: A column is missing, or a line is not JSON; the message has the position.

    """
    match part.kind:
        case "parquet":
            yield from _parquet(part, columns, optional)
        case "arrow":
            yield from _arrow(part, columns, optional)
        case "jsonl":
            yield from json_lines(part, [*columns, *optional])
        case _:
            for lines, numbers in _line_batches(part):
                yield {columns[0]: lines}, numbers


def _parquet(
    part: InputPart, columns: Sequence[str], optional: Sequence[str]
) -> Iterator[tuple[Mapping[str, Any], Sequence[int]]]:
    with parquet_file(part.input.path) as file:
        wanted = _present(file.schema_arrow.names, columns, optional, part)
        groups = [file.metadata.row_group(i) for i in range(part.start, part.stop)]
    rows = sum(group.num_rows for group in groups)
    size = sum(group.total_byte_size for group in groups)
    most_rows = max(1, min(MAX_ROWS, rows * BATCH_BYTES // max(1, size)))
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    chunks = [chunk for chunk in chunks if any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in wanted)]
    expanded = {chunk.path_in_schema for chunk in chunks if "DELTA_BYTE_ARRAY" in chunk.encodings}
    if expanded:  # values of any length, in a few bytes
        most_rows = min(most_rows, MAX_EXPANDED_ROWS)
    texts = {chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"}
    numbers = list(range(part.start, part.stop))
    repeated = sorted(texts - expanded)  # decoded once
    with parquet_file(part.input.path, read_dictionary=repeated) as file:
        yield from _rows(file.iter_batches(most_rows, row_groups=numbers, columns=wanted, use_threads=False))


def _arrow(
    part: InputPart, columns: Sequence[str], optional: Sequence[str]
) -> Iterator[tuple[Mapping[str, Any], Sequence[int]]]:
    with record_batches(part.input.path) as (schema, batches):
        wanted = _present(schema.names, columns, optional, part)
        _refuse_run_ends(schema, wanted, part)
        yield from _rows(_checked(whole.select(wanted)) for whole in islice(batches, part.start, part.stop))


def _rows(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[tuple[Mapping[str, Any], Sequence[int]]]:
    """Yield the columns of record batches in slices of `BATCH_BYTES`, and the numbers of their rows."""
    first = 0
    for whole in batches:
        for batch in slices(whole, BATCH_BYTES):
            columns = {name: _strings(batch.column(name)) for name in batch.schema.names}
            yield columns, range(first, first + batch.num_rows)
            first += batch.num_rows


def _refuse_run_ends(schema: pyarrow.Schema, wanted: Iterable[str], part: InputPart) -> None:
    import pyarrow

    for name in wanted:
        if pyarrow.types.is_run_end_encoded(schema.field(name).type):
            raise CorpusError(f"{part.input.path}: column {name!r} is run-end encoded: write it without that encoding")


def _checked(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return the batch; raise `ValueError` if an array has invalid offsets, codes or lengths, as a damaged file may.

    pyarrow would read out of bounds there.
    """
    import pyarrow

    in_bytes = {  # UTF-8 is checked by the encoder, which reports the position
        pyarrow.string(): pyarrow.binary(),
        pyarrow.large_string(): pyarrow.large_binary(),
        pyarrow.string_view(): pyarrow.binary_view(),
    }
    for column in batch.columns:
        column.view(in_bytes.get(column.type, column.type)).validate(full=True)
    return batch


def _present(names: Iterable[str], columns: Sequence[str], optional: Sequence[str], part: InputPart) -> list[str]:
    names = list(names)
    for name in columns:
        if name not in names:
            raise CorpusError(f"{part.input.path}: has no column {name!r}; it has {', '.join(names)}")
    wanted = [*columns, *(name for name in optional if name in names)]
    for name in wanted:
        if names.count(name) > 1:
            raise CorpusError(f"{part.input.path}: has several columns {name!r}")
    return wanted


def _strings(array: pyarrow.Array) -> pyarrow.Array:
    """Return an Arrow array, with dictionary encoding undone."""
    import pyarrow

    return array.dictionary_decode() if pyarrow.types.is_dictionary(array.type) else array


def json_lines(part: InputPart, columns: Sequence[str]) -> Iterator[tuple[Mapping[str, list[Any]], Sequence[int]]]:
    """Read the lines of a part as JSON; yield the values of fields, None where they are missing, in batches."""
    fields: list[tuple[str, type, Any]] = [(f"f{i}", object, None) for i in range(len(columns))]
    row = msgspec.defstruct("row", fields, rename={f"f{i}": name for i, name in enumerate(columns)})
    decoder = msgspec.json.Decoder(row)
    for lines, numbers in _line_batches(part):
        found: dict[str, list[Any]] = {name: [] for name in columns}
        kept: list[int] = []
        for number, line in zip(numbers, lines, strict=True):
            try:
                values = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if not line.strip():  # an empty line is not a document
                    continue
                raise CorpusError(f"{place(part, number)}: {_why(line, error)}") from error
            for i, name in enumerate(columns):
                found[name].append(getattr(values, f"f{i}"))
            kept.append(number)
        yield found, kept


def fields_of(part: InputPart, number: int) -> list[str]:
    """Return the names of the fields of a line of JSON that `json_lines` has read.

    Args:
        part: The part.
        number: The number of the line in the part, from 0.

    """
    for lines, numbers in _line_batches(part):
        if number in numbers:
            return [*msgspec.json.decode(lines[numbers.index(number)], type=dict[str, msgspec.Raw])]
    return []


def _why(line: bytes, error: Exception) -> str:
    """Return the reason why a line cannot be read as JSON, in place of msgspec's misleading one for a lone surrogate.

    Args:
        line: The line.
        error: The error that was raised for it.

    """
    if isinstance(error, UnicodeDecodeError):
        return "is not UTF-8"
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "has a lone surrogate, which is no character"
    except (ValueError, RecursionError):
        pass
    return str(error)


def _line_batches(part: InputPart) -> Iterator[tuple[list[bytes], range]]:
    """Yield the lines that begin in a part, in batches and without line feeds, and their numbers in the part, from 0."""
    with _open_lines(part.input.path) as file:
        at, stop = _first_line(file, part), maxsize if codec_of(part.input.path) else part.stop
        first = 0
        while at < stop:
            lines, at = _some_lines(file, at, stop)
            if not lines:
                return
            if part.start == first == 0:  # a byte-order mark is not part of a document
                lines[0] = lines[0].removeprefix(BOM_UTF8)
            yield lines, range(first, first + len(lines))
            first += len(lines)


@contextmanager
def _open_lines(path: str) -> Iterator[BinaryIO]:
    """Context manager that opens a text or JSONL file, and undoes its compression."""
    with open_binary(path) as file:
        if (codec := codec_of(path)) is None:
            yield file
            return
        import pyarrow

        with BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), codec), 1 << 20) as content:
            yield content


def _first_line(file: BinaryIO, part: InputPart) -> int:
    """Seek to the first line that begins in a part, or to the part's end, and return the position in bytes.

    A line may be longer than many parts, each of which reads no more of it than its own bytes.
    """
    if part.start == 0:  # as in a compressed file, which knows no positions
        return 0
    file.seek(part.start - 1)
    while (left := part.stop - file.tell()) > 0:
        some = file.readline(min(left, BATCH_BYTES))
        if not some or some.endswith(b"\n"):
            break
    return file.tell()


def _some_lines(file: BinaryIO, at: int, stop: int) -> tuple[list[bytes], int]:
    """Read the lines from a position on that begin before another, up to `BATCH_BYTES`; return them and the new position."""
    lines = []
    stop = min(stop, at + BATCH_BYTES)
    while at < stop and (line := file.readline()):
        lines.append(line.removesuffix(b"\n"))
        at += len(line)
    return lines, at


def place(part: InputPart, number: int) -> str:
    """Return the position of a row or line, for messages: the file, and the line or the row in its part.

    Args:
        part: The part.
        number: The number of the row or line in the part, from 0.

    """
    match part.kind:
        case "parquet":
            return f"{part.input.path}: row {number} from row group {part.start} on"
        case "arrow":
            return f"{part.input.path}: row {number} from record batch {part.start} on"
        case _:
            before = 0
            if part.start > 0:
                with open_binary(part.input.path) as file:
                    left = _first_line(file, part)
                    file.seek(0)
                    while chunk := file.read(min(left, 1 << 20)):
                        before += chunk.count(b"\n")
                        left -= len(chunk)
            return f"{part.input.path}: line {before + number + 1}"
