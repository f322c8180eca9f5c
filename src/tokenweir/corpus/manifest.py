"""Manifest of a folder of shards: the run's header, and the complete shards.

While machines work, the folder has the header and a record for each complete shard, in files of their own; so nothing is ever
appended, which object stores cannot. The machine that finds all records joins them to `manifest.jsonl`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO

import msgspec

from tokenweir.corpus.inputs import Input
from tokenweir.corpus.shards import NAMES
from tokenweir.corpus.storage import Folder, naming
from tokenweir.encode.errors import CorpusError

NAME = "manifest.jsonl"
HEADER = ".run.json"


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
        number: Its number.
        files: The sizes of its files in bytes, by name.
        documents: Number of documents.
        tokens: Number of ids.
        skipped: Number of rows that were left out because they are missing or null.

    """

    number: int
    files: dict[str, int]
    documents: int
    tokens: int
    skipped: int = 0


class Manifest:
    """The manifest of a folder of shards, of which this process writes a share.

    Attributes:
        shards: The complete shards, also of other machines, by number.

    """

    def __init__(self, folder: Folder, header: RunHeader) -> None:
        """Lock the share of the folder, and start a run in the folder or resume one with the same header.

        Args:
            folder: The folder, which is created if it does not exist.
            header: What determines the bytes of the shards.

        Raises:
            CorpusError: Another process writes the same share, or the folder has the shards of another run or cannot be
                read or written.

        """
        self._folder, self._header = folder, header
        self.shards: dict[int, Shard] = {}
        self._lock: IO[str] | None = None
        with naming(folder.path):
            folder.create()
            self._lock = folder.lock()
            try:
                folder.clear()
                self._begin()
            except BaseException:
                self.close()
                raise

    def _begin(self) -> None:
        there = self._folder.sizes()
        if NAME not in there and HEADER not in there:
            if (other := min((name for name in there if name.startswith(NAMES)), default=None)) is not None:
                raise CorpusError(
                    f"{self._folder.path}/{other}: is there already, and of no run: choose another folder"
                )
            self._folder.write(HEADER, msgspec.json.encode(self._header))
        self.read()

    def add(self, shard: Shard) -> None:
        """Write the record of a shard whose files are complete under their final names, as a file of its own.

        Raises:
            CorpusError: The record cannot be written.

        """
        self.shards[shard.number] = shard
        with naming(self._folder.path):
            self._folder.write(_record(shard.number), msgspec.json.encode(shard))

    def finish(self, number: int) -> None:
        """Look for the shards of all machines; if they are `number`, join their records to the manifest.

        Raises:
            CorpusError: The folder has the shards of another run, or cannot be read or written.

        """
        with naming(self._folder.path):
            self.read()
            if len(self.shards) != number:
                return
            shards = [msgspec.json.encode(shard) for _, shard in sorted(self.shards.items())]
            self._folder.write(NAME, b"\n".join([msgspec.json.encode(self._header), *shards, b""]))
            self._folder.remove([HEADER, *map(_record, self.shards)])

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.close()

    def read(self) -> None:
        """Read the shards that are complete: those whose files are there with the recorded sizes.

        Raises:
            CorpusError: The folder has the shards of another run, or its manifest is invalid.
            OSError: The folder cannot be read.

        """
        there = self._folder.sizes()
        try:
            found = [*self._joined(there), *self._records(there)]
        except FileNotFoundError:  # another machine has just joined the records
            there = self._folder.sizes()
            found = [*self._joined(there), *self._records(there)]
        self.shards = {
            shard.number: shard for shard in found if all(there.get(name) == size for name, size in shard.files.items())
        }

    def _joined(self, there: Mapping[str, int]) -> Iterator[Shard]:
        name = NAME if NAME in there else HEADER
        first, *lines = self._folder.read(name).splitlines()
        try:
            found = msgspec.json.decode(first, type=RunHeader)
            shards = [msgspec.json.decode(line, type=Shard) for line in lines]
        except msgspec.MsgspecError as error:
            raise CorpusError(f"{self._folder.path}/{name}: is no manifest: {error}") from error
        if found != self._header:
            differences = ", ".join(_differences(found, self._header))
            raise CorpusError(f"{self._folder.path}: has shards of a run with {differences}: choose another folder")
        yield from shards

    def _records(self, there: Mapping[str, int]) -> Iterator[Shard]:
        for name in there:
            if name.startswith(f".{NAMES}"):
                yield msgspec.json.decode(self._folder.read(name), type=Shard)


def _record(number: int) -> str:
    return f".{NAMES}{number:05d}.json"


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
