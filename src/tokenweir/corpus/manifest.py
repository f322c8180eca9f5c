"""Manifest of a folder of shards: the run's header, and the complete shards.

A manifest is a file of JSON lines, one for the run and one for each shard, which is appended after the shard's files
are renamed. A truncated line is ignored. A lock keeps other runs out of the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import msgspec

from tokenweir.corpus.inputs import Input, naming
from tokenweir.corpus.shards import NAMES, TEMPORARY
from tokenweir.encode.errors import CorpusError
from tokenweir.encode.platform import lock_file

NAME = "manifest.jsonl"


class RunHeader(msgspec.Struct, frozen=True):
    """Record of everything that determines the bytes of a run's shards.

    Attributes:
        version: The version of the manifest and of the shards.
        inputs: The input files.
        tokenizer: A digest of the meaning of ids and of how texts become ids.
        settings: The run's options.

    """

    version: int
    inputs: tuple[Input, ...]
    tokenizer: str
    settings: Mapping[str, str | int | bool | None]


class Shard(msgspec.Struct, frozen=True):
    """Record of a complete shard.

    Attributes:
        part: The number of the part of the input that it has.
        files: The sizes of its files in bytes, by name.
        documents: Number of documents.
        tokens: Number of ids.
        skipped: Number of rows that were left out because they are missing or null.

    """

    part: int
    files: dict[str, int]
    documents: int
    tokens: int
    skipped: int = 0


class Manifest:
    """The manifest of a folder of shards, which is locked for this process.

    Attributes:
        shards: The complete shards, by the number of their part.

    """

    def __init__(self, folder: Path, header: RunHeader) -> None:
        """Lock the folder, and start a run in it or resume one with the same header.

        Args:
            folder: The folder, which is created if it does not exist.
            header: What determines the bytes of the shards.

        Raises:
            CorpusError: Another process writes into the folder, or it has the shards of another run.

        """
        self._folder = folder
        self._path = folder / NAME
        self.shards: dict[int, Shard] = {}
        with naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock: IO[str] = open(folder / ".lock", "w")  # noqa: SIM115 - held as long as the run
        try:
            lock_file(self._lock)
        except OSError as error:
            self._lock.close()
            raise CorpusError(f"{folder}: another run is writing into it") from error
        self._header = header
        try:
            if self._path.exists():
                self._read()
            elif (other := min(folder.glob(f"{NAMES}*"), default=None)) is not None:  # perhaps an input
                raise CorpusError(f"{other}: is there already, and of no run: choose another folder")
            for left in folder.glob(f"{TEMPORARY}*"):
                left.unlink(missing_ok=True)
            self._rewrite()
            self._file: IO[bytes] = open(self._path, "ab", buffering=0)  # noqa: SIM115
        except BaseException:
            self._lock.close()
            raise

    def add(self, shard: Shard) -> None:
        """Record a shard whose files are complete under their final names."""
        self.shards[shard.part] = shard
        with naming(self._folder):
            self._file.write(msgspec.json.encode(shard) + b"\n")
            os.fsync(self._file.fileno())

    def close(self, *, finished: bool) -> None:
        """Unlock the folder; if the run has `finished`, first rewrite the manifest with the shards in order."""
        self._file.close()
        try:
            if finished:
                self._rewrite()
        finally:
            self._lock.close()

    def _read(self) -> None:
        first, *lines = self._path.read_bytes().split(b"\n")
        try:
            found = msgspec.json.decode(first, type=RunHeader)
            if found != self._header:
                differences = ", ".join(_differences(found, self._header))
                raise CorpusError(f"{self._folder}: has shards of a run with {differences}: choose another folder")
        except msgspec.MsgspecError as error:
            raise CorpusError(f"{self._path}: is no manifest: {error}") from error
        for line in lines[:-1]:  # a line without line feed is truncated
            try:
                shard = msgspec.json.decode(line, type=Shard)
            except msgspec.MsgspecError:
                continue
            if all(_size(self._folder / name) == size for name, size in shard.files.items()):
                self.shards[shard.part] = shard

    def _rewrite(self) -> None:
        shards = [msgspec.json.encode(shard) for _, shard in sorted(self.shards.items())]
        temporary = self._folder / f"{TEMPORARY}{NAME}"
        with naming(self._folder):
            try:
                temporary.write_bytes(b"\n".join([msgspec.json.encode(self._header), *shards, b""]))
                os.replace(temporary, self._path)
            finally:
                temporary.unlink(missing_ok=True)


def _differences(found: RunHeader, wanted: RunHeader) -> Iterator[str]:
    """Yield a phrase for each difference between two headers, such as "another tokenizer".

    Args:
        found: The header in the folder.
        wanted: The header of this run.

    """
    if found.version != wanted.version:
        yield f"another version ({found.version})"
    if found.inputs != wanted.inputs:
        others = sorted({file.path for file in set(found.inputs) ^ set(wanted.inputs)})
        yield f"other files ({others[0]})" if others else "files in another order"
    names = sorted(found.settings.keys() | wanted.settings.keys())
    changed = [name for name in names if found.settings.get(name) != wanted.settings.get(name)]
    if found.tokenizer != wanted.tokenizer and "options" not in changed:  # its hash depends on them
        yield "another tokenizer"
    for name in changed:
        yield f"other {name}" if name == "options" else f"another {name}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
