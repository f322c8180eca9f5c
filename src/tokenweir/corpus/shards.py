"""Shards: the ids of one part, in one of three formats, written batch by batch."""

from __future__ import annotations

import os
import struct
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tokenweir.corpus.documents import DocumentBatch
from tokenweir.encode.values.encoded import Ragged

Format = Literal["parquet", "npy", "megatron"]

NAMES = "part-"
"""Name prefix of complete files."""

TEMPORARY = ".tmp-"
"""Name prefix of incomplete files."""


def id_type(vocab_size: int) -> np.dtype[Any]:
    """Return uint16 if it holds all ids below `vocab_size`, else int32: the types that Megatron reads."""
    return np.dtype(np.uint16 if vocab_size <= 1 << 16 else np.int32)


class ShardWriter(ABC):
    """Base class of writers of one shard. Files have temporary names until the shard is complete.

    As a context manager, it removes the files of an incomplete shard.
    """

    def __init__(self, folder: Path, name: str, vocab_size: int, *, masks: bool) -> None:
        """Start a shard.

        Args:
            folder: The folder of the files.
            name: The beginning of the files' names.
            vocab_size: Number of ids of the tokenizer, which decides the type of the ids.
            masks: Every batch has a loss mask, which is written too.

        """
        self._folder, self._name = folder, name
        self._type, self._masks = id_type(vocab_size), masks
        self._files: list[str] = []
        self.documents = self.tokens = self.skipped = 0
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self._abandon()  # an open file cannot be removed under Windows
        finally:
            for name in self._files:
                self._temporary(name).unlink(missing_ok=True)

    def write(self, batch: DocumentBatch) -> None:
        """Append the documents of a batch to the shard."""
        self.documents += len(batch.ids)
        self.tokens += len(batch.ids.ids)
        self.skipped += batch.skipped
        self._write(batch.ids, batch.mask)

    def close(self) -> dict[str, int]:
        """Finish the shard, give its files their final names, and return their sizes in bytes by name."""
        self._end()
        sizes = {}
        for name in self._files:
            temporary = self._temporary(name)
            with open(temporary, "r+b") as file:  # Windows flushes files that may be written only
                os.fsync(file.fileno())
                sizes[name] = os.fstat(file.fileno()).st_size
        for name in self._files:
            os.replace(self._temporary(name), self._folder / name)
        return sizes

    def _temporary(self, name: str) -> Path:
        return self._folder / f"{TEMPORARY}{os.getpid()}-{name}"

    def _path(self, ending: str) -> Path:
        """Add a file with this name ending to the shard, and return the temporary path to write it to."""
        self._files.append(self._name + ending)
        return self._temporary(self._files[-1])

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _write(self, ids: Ragged, mask: NDArray[np.uint8] | None) -> None: ...

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def _abandon(self) -> None:
        """Close the files that are still open, whatever is in them."""


class ParquetShard(ShardWriter):
    """Writer of `NAME.parquet`: a row for each document, with `input_ids` and, if masks are written, `loss_mask`."""

    def _begin(self) -> None:
        import pyarrow
        from pyarrow import parquet

        fields = [("input_ids", pyarrow.large_list(pyarrow.int32()))]
        if self._masks:
            fields.append(("loss_mask", pyarrow.large_list(pyarrow.uint8())))
        self._schema = pyarrow.schema(fields)
        self._writer = parquet.ParquetWriter(self._path(".parquet"), self._schema, compression="zstd")

    def _write(self, ids: Ragged, mask: NDArray[np.uint8] | None) -> None:
        import pyarrow

        columns = [ids.to_arrow()]
        if mask is not None:
            columns.append(pyarrow.LargeListArray.from_arrays(columns[0].offsets, pyarrow.array(mask)))
        self._writer.write_table(pyarrow.table(columns, schema=self._schema))

    def _end(self) -> None:
        self._writer.close()

    def _abandon(self) -> None:
        self._writer.close()


_FORMAT: Any = np.lib.format  # untyped in numpy


class _Npy:
    """Writer of a one-dimensional array, part by part, to a file in numpy's format."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._file = open(path, "wb")  # noqa: SIM115
        self._dtype, self._size = dtype, 0
        self._header()

    def write(self, values: NDArray[Any]) -> None:
        self._file.write(values.astype(self._dtype, copy=False).data)
        self._size += len(values)

    def close(self) -> None:
        self._file.seek(0)
        self._header()
        self._file.close()

    def abandon(self) -> None:
        self._file.close()

    def _header(self) -> None:
        """Write the file's header with the current size; numpy pads it, so that it can be written again with any size."""
        descr = _FORMAT.dtype_to_descr(self._dtype)
        _FORMAT.write_array_header_1_0(self._file, {"descr": descr, "fortran_order": False, "shape": (self._size,)})


class NpyShard(ShardWriter):
    """Writer of numpy files: `NAME.ids.npy` has all ids one after the other.

    `NAME.offsets.npy` is int64[n + 1]: where each of the n documents begins, and the end. If masks are written,
    `NAME.loss_mask.npy` is uint8, one for each id.
    """

    def _begin(self) -> None:
        self._ids = _Npy(self._path(".ids.npy"), self._type)
        self._offsets = _Npy(self._path(".offsets.npy"), np.dtype(np.int64))
        self._mask = _Npy(self._path(".loss_mask.npy"), np.dtype(np.uint8)) if self._masks else None
        self._offsets.write(np.zeros(1, np.int64))

    def _write(self, ids: Ragged, mask: NDArray[np.uint8] | None) -> None:
        self._ids.write(ids.ids)
        self._offsets.write(ids.offsets[1:] + (self.tokens - len(ids.ids)))
        if self._mask is not None and mask is not None:
            self._mask.write(mask)

    def _end(self) -> None:
        for file in filter(None, (self._ids, self._offsets, self._mask)):
            file.close()

    def _abandon(self) -> None:
        for file in filter(None, (self._ids, self._offsets, self._mask)):
            file.abandon()


_MEGATRON_CODES = {"uint8": 1, "int32": 4, "uint16": 8}  # type codes of an index


class _Indexed:
    """Writer of a pair of files as Megatron-LM's indexed datasets have them: ids in `.bin`, document sizes in `.idx`."""

    def __init__(self, data: Path, index: Path, dtype: np.dtype[Any]) -> None:
        self._data: BinaryIO = open(data, "wb")  # noqa: SIM115
        self._index, self._dtype = index, dtype
        self._sizes: list[NDArray[np.int32]] = []

    def write(self, values: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        self._data.write(values.astype(self._dtype, copy=False).data)
        self._sizes.append(np.diff(offsets).astype(np.int32))

    def abandon(self) -> None:
        self._data.close()

    def close(self) -> None:
        self._data.close()
        sizes = np.concatenate([np.zeros(0, np.int32), *self._sizes])
        ends = np.cumsum(sizes, dtype=np.int64) * self._dtype.itemsize
        with open(self._index, "wb") as file:
            file.write(b"MMIDIDX\x00\x00" + struct.pack("<QB", 1, _MEGATRON_CODES[self._dtype.name]))
            file.write(struct.pack("<QQ", len(sizes), len(sizes) + 1))
            file.write(sizes.astype("<i4").data)
            file.write(
                (ends - sizes * np.int64(self._dtype.itemsize)).astype("<i8").data
            )  # where each begins, in bytes
            file.write(np.arange(len(sizes) + 1, dtype="<i8").data)  # a document is one sequence


class MegatronShard(ShardWriter):
    """Writer of `NAME.bin` and `NAME.idx`, an indexed dataset of Megatron-LM in which each document is one sequence.

    The ids are of type `id_type(vocab_size)`. With `masks`, the loss masks are a dataset of their own with the same
    documents, `NAME_loss_mask.bin` and `NAME_loss_mask.idx`, of type uint8.
    """

    def _begin(self) -> None:
        self._ids = _Indexed(self._path(".bin"), self._path(".idx"), self._type)
        self._mask = None
        if self._masks:
            self._mask = _Indexed(self._path("_loss_mask.bin"), self._path("_loss_mask.idx"), np.dtype(np.uint8))

    def _write(self, ids: Ragged, mask: NDArray[np.uint8] | None) -> None:
        self._ids.write(ids.ids, ids.offsets)
        if self._mask is not None and mask is not None:
            self._mask.write(mask, ids.offsets)

    def _end(self) -> None:
        for files in filter(None, (self._ids, self._mask)):
            files.close()

    def _abandon(self) -> None:
        for files in filter(None, (self._ids, self._mask)):
            files.abandon()


WRITERS: dict[Format, type[ShardWriter]] = {"parquet": ParquetShard, "npy": NpyShard, "megatron": MegatronShard}
