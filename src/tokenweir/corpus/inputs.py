"""Input files, and how they are cut into parts.

A part is read by itself: whole row groups of a Parquet file, whole record batches of an Arrow file or stream, or the lines
of a text or JSONL file that begin in a range of bytes. The cut depends on nothing but the files and the size that is asked for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokenweir.encode.errors import CorpusError, without_path
from tokenweir.encode.files import refuse_pointer

if TYPE_CHECKING:
    import pyarrow

KINDS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "text",
    ".text": "text",
}
"""Kinds of files, by file extension."""


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Context manager that converts `OSError` and `ValueError` to a `CorpusError` whose message begins with `path`."""
    try:
        yield
    except CorpusError:  # it names a file already
        raise
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path}: {without_path(error)}") from error


class Input(msgspec.Struct, frozen=True):
    """An input file, with its size and modification time when the run began.

    Attributes:
        path: Its absolute path.
        size: Its size in bytes.
        mtime_ns: Its modification time, in nanoseconds.

    """

    path: str
    size: int
    mtime_ns: int

    @classmethod
    def at(cls, path: Path) -> Input:
        """Return the current state of the file at a path; raise `OSError` if it is not accessible or not a regular file."""
        return cls.of(path, path.stat())

    @classmethod
    def of(cls, path: Path, found: os.stat_result) -> Input:
        """Return the state of a file from its `stat`; raise `OSError` unless it is a regular file, readable in parts."""
        if not stat.S_ISREG(found.st_mode):
            raise OSError("is no file on a disk, which can be read in parts")
        return cls(os.path.abspath(path), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Raise `CorpusError` if the file has changed since this state was recorded, or cannot be accessed."""
        with naming(self.path):
            now = Input.at(Path(self.path))
        if now != self:
            raise CorpusError(f"{self.path}: has changed since the run began")


class InputPart(msgspec.Struct, frozen=True):
    """A part of an input file, which becomes one shard.

    Attributes:
        number: The number of the part among all parts of the run, from 0.
        input: The file.
        start: The first row group (Parquet), record batch (Arrow) or byte (text).
        stop: One past the last one.
        size: Approximate bytes; the sizes of a file's parts add up to its size.

    """

    number: int
    input: Input
    start: int
    stop: int
    size: int

    @property
    def kind(self) -> str:
        """The kind of the file: "parquet", "arrow", "jsonl" or "text"."""
        return kind_of(Path(self.input.path))


def kind_of(path: Path) -> str:
    """Return a file's kind by its extension: "parquet", "arrow", "jsonl" or "text".

    Raise `CorpusError` for an unknown extension.
    """
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise CorpusError(f"{path}: the name of an input ends with one of {' '.join(KINDS)}")
    return kind


def check_path(path: Path) -> None:
    """Raise `CorpusError` for a path that is not UTF-8, which the manifest and Arrow require."""
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError as error:
        raise CorpusError(f"{path}: the path is not UTF-8") from error


def plan(paths: Sequence[Path], part_bytes: int) -> list[InputPart]:
    """Cut files into parts of about `part_bytes`, numbered in the order of the files.

    Raises:
        CorpusError: A file is of no known kind, cannot be read, is listed twice, if only under another name (as a link
            is), or has a path that is not UTF-8.

    """
    parts: list[InputPart] = []
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        check_path(path)
        with naming(path):
            found = path.stat()
            file = Input.of(path, found)
            if (identity := (found.st_dev, found.st_ino)) in seen:
                other = seen[identity]
                raise CorpusError(f"{path}: is there twice" + (f", also as {other}" if other != path else ""))
            seen[identity] = path
            with path.open("rb") as content:
                refuse_pointer(content.read(64))
            for start, stop, size in _cuts(path, file.size, part_bytes):
                parts.append(InputPart(len(parts), file, start, stop, size))
    return parts


def _cuts(path: Path, size: int, part_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of a file, each as start, stop and size; a file without content has one part.

    Args:
        path: The file.
        size: Its size in bytes.
        part_bytes: Approximate size of a part.

    """
    kind = kind_of(path)
    if kind == "parquet":
        from pyarrow import parquet

        metadata = parquet.ParquetFile(path).metadata
        yield from _grouped(
            [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)], size, part_bytes
        )
    elif kind == "arrow":
        with record_batches(path) as (_, batches):
            number = sum(1 for _ in batches)
        yield from _grouped([size // max(1, number)] * number, size, part_bytes)
    else:
        for start in range(0, max(size, 1), part_bytes):
            stop = min(start + part_bytes, size)
            yield start, stop, stop - start


def _grouped(sizes: Sequence[int], size: int, part_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Group row groups into parts of about `part_bytes`; yield each part as start, stop and size.

    Args:
        sizes: The size of each row group.
        size: The size of the file, which is distributed over the parts.
        part_bytes: Approximate size of a part.

    """
    total = sum(sizes) or 1
    start = together = given = 0
    for i, each in enumerate(sizes):
        together += each
        if together >= part_bytes or i + 1 == len(sizes):
            share = size - given if i + 1 == len(sizes) else size * together // total
            yield start, i + 1, share
            start, together, given = i + 1, 0, given + share
    if not sizes:
        yield 0, 0, size


@contextmanager
def record_batches(path: str | Path) -> Iterator[tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]]:
    """Context manager that opens an Arrow file or stream; yields its schema and an iterator over its record batches."""
    import pyarrow

    with pyarrow.memory_map(str(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        if is_file:
            file = pyarrow.ipc.open_file(source)
            yield file.schema, map(file.get_batch, range(file.num_record_batches))
        else:
            stream = pyarrow.ipc.open_stream(source)
            yield stream.schema, iter(stream)
