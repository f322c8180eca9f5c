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
    """Everything that determines the bytes of the shards.

    Attributes:
        version: The version of the manifest and of the shards.
        inputs: The files.
        tokenizer: The hash of what ids mean and of how texts become ids.
        settings: The command's options.

    """

    version: int
    inputs: tuple[Input, ...]
    tokenizer: str
    settings: Mapping[str, str | int | bool | None]


class Shard(msgspec.Struct, frozen=True):
    """A complete shard.

    Attributes:
        part: The number of its part.
        files: Names and sizes.
        skipped: Number of rows that were left out because they are missing or null.

    """

    part: int
    files: dict[str, int]
    documents: int
    tokens: int
    skipped: int = 0


class Manifest:
    """The manifest of a folder that this process writes into; `shards` has the complete ones by their part's number."""

    def __init__(self, folder: Path, header: RunHeader) -> None:
        """Start in a new folder, or resume a run with the same header.

        Raise `CorpusError` if another process writes into the folder, or it has the shards of another run.
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
        """Record a shard whose files have been renamed."""
        self.shards[shard.part] = shard
        with naming(self._folder):
            self._file.write(msgspec.json.encode(shard) + b"\n")
            os.fsync(self._file.fileno())

    def close(self, *, finished: bool) -> None:
        """Release the folder; after a complete run, sort the shards first."""
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
    """Return a description of the differences between two headers."""
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
