"""Shards: documents or packed sequences of ids, in one of four formats, written batch by batch."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tokenweir.corpus.documents import DocumentBatch
from tokenweir.corpus.packing import Packer, Sequences
from tokenweir.corpus.storage import Folder
from tokenweir.encode.values.encoded import Ragged

Format = Literal["parquet", "npy", "megatron", "datatrove"]

NAMES = "part-"
"""Name prefix of complete files."""


@dataclass(frozen=True)
class Layout:
    """Content and format of the shards of a run.

    Attributes:
        format: The format of the ids.
        vocab_size: Number of ids of the tokenizer, which decides the type of the ids.
        masks: Every batch has a loss mask, which is written too.
        pack: The length of sequences into which documents are packed; None writes documents.
        keep: Every batch has kept columns, which are written too.

    """

    format: Format
    vocab_size: int
    masks: bool = False
    pack: int | None = None
    keep: bool = False


class ShardWriter(ABC):
    """Base class of writers of one shard, whose files are staged in a folder and published when the shard is complete.

    As a context manager, it removes the files of an incomplete shard. Where the format has no place for kept columns, they go
    to `NAME.documents.parquet`, a row for each document.
    """

    _all: list[Any]

    def __init__(self, folder: Folder, name: str, layout: Layout) -> None:
        """Start a shard whose files' names begin with `name`."""
        self._folder, self._name, self._layout = folder, name, layout
        self._files: list[str] = []
        self._packer = None if layout.pack is None else Packer(layout.pack)
        self._documents: _Table | None = None
        self._opened = ExitStack()
        self.documents = self.tokens = self.skipped = 0
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self._opened.close()  # an open file cannot be removed under Windows
        finally:
            self._folder.discard(self._files)

    def write(self, batch: DocumentBatch) -> None:
        """Append the documents of a batch to the shard."""
        self.documents += len(batch.ids)
        self.tokens += len(batch.ids.ids)
        self.skipped += batch.skipped
        if self._layout.keep and not self._keeps(batch):
            if self._documents is None:
                self._documents = self._table(".documents.parquet")
            self._documents.write(dict(batch.kept))
        if self._packer is None:
            self._write(Sequences(batch.ids, batch.mask))
        else:
            self._write(self._packer.add(batch))

    def close(self) -> dict[str, int]:
        """Finish the shard, publish its files, and return their sizes in bytes by name."""
        if self._packer is not None:
            self._write(self._packer.flush())
        if self._documents is not None:
            self._documents.close()
        self._end()
        sizes = {name: self._folder.staged(name).stat().st_size for name in self._files}
        self._folder.publish(self._files)
        return sizes

    def _path(self, ending: str) -> Path:
        """Add a file with this name ending to the shard, and return the local path to write it to."""
        self._files.append(self._name + ending)
        return self._folder.staged(self._files[-1])

    def _file(self, ending: str) -> BinaryIO:
        """Add a file, and open it; it is closed with the shard at the latest."""
        return self._opened.enter_context(open(self._path(ending), "wb"))

    def _table(self, ending: str) -> _Table:
        """Add a Parquet file; it is closed with the shard at the latest."""
        table = _Table(self._path(ending))
        self._opened.callback(table.close)
        return table

    def _keeps(self, batch: DocumentBatch) -> bool:
        """Take the kept columns of the batch that is written next; False if the format has no place for them."""
        return False

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _write(self, rows: Sequences) -> None: ...

    def _end(self) -> None:
        for file in self._all:
            file.close()


class _Table:
    """Writer of a Parquet file whose columns are those of its first batch."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    @property
    def is_empty(self) -> bool:
        return self._writer is None

    def write(self, columns: dict[str, Any]) -> None:
        import pyarrow
        from pyarrow import parquet

        table = pyarrow.table(columns)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._path, table.schema, compression="zstd")
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class ParquetShard(ShardWriter):
    """Writer of `NAME.parquet`: a row for each document, with `input_ids` and, if masks are written, `loss_mask`.

    Kept columns stand before them. A packed sequence has `position_ids` and `document_offsets` instead, as
    `packing.Sequences` has them.
    """

    def _begin(self) -> None:
        self._rows = self._table(".parquet")
        self._all = [self._rows]
        self._kept: dict[str, Any] = {}

    def _keeps(self, batch: DocumentBatch) -> bool:
        self._kept = dict(batch.kept)
        return self._packer is None

    def _write(self, rows: Sequences) -> None:
        import pyarrow

        ids = rows.ids.to_arrow()
        columns = {**(self._kept if self._packer is None else {}), "input_ids": ids}
        flat = {"loss_mask": rows.mask if self._layout.masks else None, "position_ids": rows.positions}
        for name, values in flat.items():
            if values is not None:
                columns[name] = pyarrow.LargeListArray.from_arrays(ids.offsets, pyarrow.array(values))
        if rows.boundaries is not None:
            columns["document_offsets"] = rows.boundaries.to_arrow()
        self._rows.write(columns)

    def _end(self) -> None:
        if self._rows.is_empty:
            self._write(Sequences(Ragged(np.zeros(0, np.int32), np.zeros(1, np.int64)), np.zeros(0, np.uint8)))
        super()._end()


_FORMAT: Any = np.lib.format  # untyped in numpy


class _Npy:
    """Writer of a one-dimensional array, part by part, to a file in numpy's format."""

    def __init__(self, file: BinaryIO, dtype: np.dtype[Any]) -> None:
        self._file, self._dtype, self.size = file, dtype, 0
        self._header()

    def write(self, values: NDArray[Any]) -> None:
        self._file.write(values.astype(self._dtype, copy=False).data)
        self.size += len(values)

    def close(self) -> None:
        self._file.seek(0)
        self._header()
        self._file.close()

    def _header(self) -> None:
        """Write the file's header with the current size; numpy pads it, so that it can be written again with any size."""
        descr = _FORMAT.dtype_to_descr(self._dtype)
        _FORMAT.write_array_header_1_0(self._file, {"descr": descr, "fortran_order": False, "shape": (self.size,)})


class NpyShard(ShardWriter):
    """Writer of numpy files: `NAME.ids.npy` has all ids one after the other.

    `NAME.offsets.npy` is int64[n + 1]: where each of the n documents begins, and the end. If masks are written,
    `NAME.loss_mask.npy` is uint8, one for each id. Of packed sequences it has where each of these begins;
    `NAME.position_ids.npy` is int32, one for each id, and `NAME.document_offsets.npy` int64: where each sequence and each
    document begins, and the end.
    """

    def _begin(self) -> None:
        self._ids = _Npy(self._file(".ids.npy"), id_type(self._layout.vocab_size))
        self._offsets = _Npy(self._file(".offsets.npy"), np.dtype(np.int64))
        self._all = [self._ids, self._offsets]
        if self._layout.masks:
            self._mask = self._more(".loss_mask.npy", np.uint8)
        if self._packer is not None:
            self._positions = self._more(".position_ids.npy", np.int32)
            self._boundaries = self._more(".document_offsets.npy", np.int64)
            self._boundaries.write(np.zeros(1, np.int64))
        self._offsets.write(np.zeros(1, np.int64))

    def _more(self, ending: str, dtype: Any) -> _Npy:
        file = _Npy(self._file(ending), np.dtype(dtype))
        self._all.append(file)
        return file

    def _write(self, rows: Sequences) -> None:
        before = self._ids.size
        self._ids.write(rows.ids.ids)
        self._offsets.write(rows.ids.offsets[1:] + before)
        if rows.mask is not None:
            self._mask.write(rows.mask)
        if rows.positions is not None:
            self._positions.write(rows.positions)
            begins = np.flatnonzero(rows.positions[1:] == 0) + 1
            ends = np.append(begins, len(rows.positions)) if len(rows.positions) else begins
            self._boundaries.write(ends + before)


def id_type(vocab_size: int) -> np.dtype[Any]:
    """Return uint16 if it holds all ids below `vocab_size`, else int32."""
    return np.dtype(np.uint16 if vocab_size <= 1 << 16 else np.int32)


def megatron_type(vocab_size: int) -> np.dtype[Any]:
    """Return the type that Megatron-LM chooses for the ids of a vocabulary."""
    return np.dtype(np.uint16 if vocab_size < 65_500 else np.int32)


_MEGATRON_CODES = {"uint8": 1, "int32": 4, "uint16": 8}  # type codes of an index


class Indexed:
    """Writer of a pair of files as Megatron-LM's indexed datasets have them: ids in `.bin`, and `.idx`, the index."""

    def __init__(self, data: BinaryIO, index: Path, dtype: np.dtype[Any]) -> None:
        self._data, self._index, self._dtype = data, index, dtype
        self._sizes: list[NDArray[np.int64]] = []
        self._sequences: list[NDArray[np.int64]] = []

    def write(self, values: NDArray[Any], sizes: NDArray[np.int64], sequences: NDArray[np.int64]) -> None:
        """Write ids: sequences of the given `sizes`, in documents of `sequences` sequences each."""
        self._data.write(values.astype(self._dtype, copy=False).data)
        self._sizes.append(sizes)
        self._sequences.append(sequences)

    def close(self) -> None:
        """Close the data file and write the index."""
        self._data.close()
        sizes = np.concatenate([np.zeros(0, np.int64), *self._sizes])
        begins = (np.cumsum(sizes) - sizes) * self._dtype.itemsize
        documents = np.cumsum(np.concatenate([np.zeros(1, np.int64), *self._sequences]))
        with open(self._index, "wb") as file:
            file.write(b"MMIDIDX\x00\x00" + struct.pack("<QB", 1, _MEGATRON_CODES[self._dtype.name]))
            file.write(struct.pack("<QQ", len(sizes), len(documents)))
            file.writelines(
                values.astype(kind).data for values, kind in ((sizes, "<i4"), (begins, "<i8"), (documents, "<i8"))
            )


class MegatronShard(ShardWriter):
    """Writer of `NAME.bin` and `NAME.idx`, an indexed dataset of Megatron-LM in which each document is one sequence.

    With masks, these are a dataset of their own with the same documents, `NAME_loss_mask.bin` and `NAME_loss_mask.idx`, of type
    uint8.
    """

    def _begin(self) -> None:
        self._ids = Indexed(self._file(".bin"), self._path(".idx"), megatron_type(self._layout.vocab_size))
        self._all = [self._ids]
        if self._layout.masks:
            self._all.append(Indexed(self._file("_loss_mask.bin"), self._path("_loss_mask.idx"), np.dtype(np.uint8)))

    def _write(self, rows: Sequences) -> None:
        for files, values in zip(self._all, (rows.ids.ids, rows.mask), strict=False):
            if values is not None:
                files.write(values, np.diff(rows.ids.offsets), np.ones(len(rows.ids), np.int64))


class DatatroveShard(ShardWriter):
    """Writer of `NAME.ds`, as datatrove has it: ids of uint16 or uint32, and in `NAME.ds.index` where each document ends.

    With masks, `NAME.ds.loss` has a byte for each id.
    """

    def _begin(self) -> None:
        self._type = np.dtype("<u2" if self._layout.vocab_size <= 1 << 16 else "<u4")
        endings = [".ds", ".ds.index", *([".ds.loss"] if self._layout.masks else [])]
        self._all = [self._file(ending) for ending in endings]
        self._size = 0

    def _write(self, rows: Sequences) -> None:
        ends = (rows.ids.offsets[1:] + self._size).astype("<u8")
        self._size += len(rows.ids.ids)
        for file, values in zip(self._all, (rows.ids.ids.astype(self._type), ends, rows.mask), strict=False):
            if values is not None:
                file.write(values.data)


WRITERS: dict[Format, type[ShardWriter]] = {
    "parquet": ParquetShard,
    "npy": NpyShard,
    "megatron": MegatronShard,
    "datatrove": DatatroveShard,
}
