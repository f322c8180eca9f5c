"""Input files, and how they are cut into parts, which become shards.

A part is read by itself: whole row groups of a Parquet file, whole record batches of an Arrow file or stream, or the lines
of a text or JSONL file that begin in a range of bytes. The cut depends on nothing but the files, the size that is asked for,
and the seed of a shuffle. A compressed file is one part.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tokenweir.corpus.storage import at_url, is_url, naming, open_binary
from tokenweir.encode.errors import CorpusError
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

CODECS = {".zst": "zstd", ".gz": "gzip"}
"""Compressions of text and JSONL files, by the extension behind the kind's."""

SCATTER = 16
"""The places of the corpus that a shuffled shard is made of, unless row groups are larger than its share."""


class Input(msgspec.Struct, frozen=True):
    """An input file, with its size and version when the run began.

    Attributes:
        path: Its absolute path, or its URL.
        size: Its size in bytes.
        version: Its modification time in nanoseconds or, for a URL, what the file system has instead.

    """

    path: str
    size: int
    version: str

    @classmethod
    def at(cls, path: str) -> Input:
        """Return the current state of a file; raise `OSError` unless it is a regular file, readable in parts."""
        if is_url(path):
            files, place = at_url(path)
            files.invalidate_cache()
            found = files.info(place)
            if found["type"] != "file" or found["size"] is None:
                raise OSError("is no file of a known size, which can be read in parts")
            return cls(path, found["size"], str(files.ukey(place)))
        local = os.stat(path)
        if not stat.S_ISREG(local.st_mode):
            raise OSError("is no file on a disk, which can be read in parts")
        return cls(os.path.abspath(path), local.st_size, str(local.st_mtime_ns))

    def check(self) -> None:
        """Raise `CorpusError` if the file has changed since this state was recorded, or cannot be accessed."""
        with naming(self.path):
            now = Input.at(self.path)
        if now != self:
            raise CorpusError(f"{self.path}: has changed since the run began")


class InputPart(msgspec.Struct, frozen=True):
    """A part of an input file.

    Attributes:
        input: The file.
        start: The first row group (Parquet), record batch (Arrow) or byte (text).
        stop: One past the last one.
        size: Approximate bytes; the sizes of a file's parts add up to its size.

    """

    input: Input
    start: int
    stop: int
    size: int

    @property
    def kind(self) -> str:
        """The kind of the file: "parquet", "arrow", "jsonl" or "text"."""
        return kind_of(self.input.path)


class ShardPlan(msgspec.Struct, frozen=True):
    """The parts that become a shard: one or, if documents are shuffled, several.

    Attributes:
        number: The number of the shard, from 0.
        parts: The parts.
        seed: The seed by which its documents are shuffled; None if they are not.

    """

    number: int
    parts: tuple[InputPart, ...]
    seed: int | None = None

    @property
    def size(self) -> int:
        """Approximate bytes."""
        return sum(part.size for part in self.parts)


def codec_of(path: str) -> str | None:
    """Return the compression of a file by its extension; None without one."""
    return CODECS.get(os.path.splitext(path)[1].lower())


def kind_of(path: str) -> str:
    """Return a file's kind by its extension: "parquet", "arrow", "jsonl" or "text".

    Raise `CorpusError` for an unknown extension.
    """
    stem, extension = os.path.splitext(path.lower())
    kind = KINDS.get(extension)
    if kind is None and extension in CODECS and (inner := KINDS.get(os.path.splitext(stem)[1])) in ("jsonl", "text"):
        kind = inner
    if kind is None:
        raise CorpusError(
            f"{path}: the name of an input ends with one of {' '.join(KINDS)}, or like .jsonl{' or .jsonl'.join(CODECS)}"
        )
    return kind


def expanded(path: str) -> list[str]:
    """Return the files that a path or URL means: a URL may have wildcards, which the shell leaves alone."""
    if not is_url(path) or "*" not in path:
        return [path]
    with naming(path):
        files, place = at_url(path)
        found = sorted(files.unstrip_protocol(name) for name in files.glob(place))
    if not found:
        raise CorpusError(f"{path}: no file has such a name")
    return found


def check_path(path: str) -> None:
    """Raise `CorpusError` for a path that is not UTF-8, which the manifest and Arrow require."""
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError as error:
        raise CorpusError(f"{path}: the path is not UTF-8") from error


def plan(paths: Sequence[str], part_bytes: int, seed: int | None = None) -> list[ShardPlan]:
    """Cut files into parts of about `part_bytes`, numbered in the order of the files.

    With a seed, smaller parts are taken in random order, and several become a shard of that size.

    Raises:
        CorpusError: A file is of no known kind, cannot be read, is listed twice, if only under another name (as a link
            is), or has a path that is not UTF-8.

    """
    parts: list[InputPart] = []
    seen: dict[object, str] = {}
    for path in paths:
        check_path(path)
        with naming(path):
            file = Input.at(path)
            identity = path if is_url(path) else _inode(path)
            if identity in seen:
                other = seen[identity]
                raise CorpusError(f"{path}: is there twice" + (f", also as {other}" if other != path else ""))
            seen[identity] = path
            with open_binary(path) as content:
                refuse_pointer(content.read(64))
            wanted = part_bytes if seed is None else max(1, part_bytes // SCATTER)
            parts += [InputPart(file, *cut) for cut in _cuts(file, wanted)]
    if seed is None:
        return [ShardPlan(number, (part,)) for number, part in enumerate(parts)]
    shuffled = [parts[i] for i in np.random.default_rng(seed).permutation(len(parts))]
    shards: list[ShardPlan] = []
    while shuffled:
        ends = np.cumsum([part.size for part in shuffled[: 4 * SCATTER]])
        taken = int(np.searchsorted(ends, part_bytes)) + 1
        shards.append(ShardPlan(len(shards), tuple(shuffled[:taken]), seed))
        del shuffled[:taken]
    return shards


def _inode(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _cuts(file: Input, part_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of a file, each as start, stop and size; a file without content has one part."""
    path, size, kind = file.path, file.size, kind_of(file.path)
    if kind == "parquet":
        with parquet_file(path) as opened:
            groups = [opened.metadata.row_group(i).total_byte_size for i in range(opened.metadata.num_row_groups)]
        yield from _grouped(groups, size, part_bytes)
    elif kind == "arrow":
        with record_batches(path) as (_, batches):
            number = sum(1 for _ in batches)
        yield from _grouped([size // max(1, number)] * number, size, part_bytes)
    else:
        if codec_of(path):
            part_bytes = max(size, 1)
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
def parquet_file(path: str, **options: object) -> Iterator[pyarrow.parquet.ParquetFile]:
    """Context manager that opens a Parquet file, with options of `pyarrow.parquet.ParquetFile`."""
    from pyarrow import parquet

    opened = open_binary(path) if is_url(path) else nullcontext(path)
    with opened as source, parquet.ParquetFile(source, **options) as file:
        yield file


@contextmanager
def record_batches(path: str) -> Iterator[tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]]:
    """Context manager that opens an Arrow file or stream; yields its schema and an iterator over its record batches."""
    import pyarrow

    with pyarrow.PythonFile(open_binary(path), "r") if is_url(path) else pyarrow.memory_map(path) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        if is_file:
            file = pyarrow.ipc.open_file(source)
            yield file.schema, map(file.get_batch, range(file.num_record_batches))
        else:
            stream = pyarrow.ipc.open_stream(source)
            yield stream.schema, iter(stream)
