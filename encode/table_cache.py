"""Tokenizers kept in files as they lie in memory, so that one that was loaded before is there in milliseconds.

A file has what was read from a tokenizer's files, and the tables that were made of it (core/base/table_file.h). It holds
for the files it was made from, each known by path, size, times and inode, and for the code that made it. What is damaged,
stale or another user's is passed over and made again, so the cache only saves time. Nothing locks: a file appears whole,
by renaming, and whoever comes last wins.

Kept are byte-level and character BPE, the models that take long to build, from files of half a megabyte and more.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

import msgspec
import numpy as np
from msgspec.structs import replace

from tokenweir.encode import _core
from tokenweir.encode.cache import cache_folder, open_own, store
from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.formats import find_in_folder, gguf
from tokenweir.encode.formats.folder import beside
from tokenweir.encode.formats.gguf.metadata import Metadata
from tokenweir.encode.spec import BPE, Model, RankBPE, TokenizerSpec

MIN_BYTES = 1 << 19
"""The least bytes of a tokenizer's files that are worth keeping: what is smaller is built as fast as it is found."""

MAX_KEPT = 32
"""The most files in the cache's folder; the oldest go first."""

MIN_AGE_NS = 2_000_000_000
"""A file that was changed less than this before it was read may change again without a change of its time."""

_MAX_BYTES = 1 << 31
_MAGIC = b"tokenweir tables"
_PREAMBLE = struct.Struct("<16sQQQ24x")  # magic, bytes of the head, checksums of head and tables


class Source(msgspec.Struct, frozen=True, array_like=True):
    """A file that a tokenizer is read from, and how to tell that it is still the same.

    Attributes:
        path: The file.
        state: Size, time of change of content and of anything, inode and device; None if there is no such file.

    """

    path: str
    state: tuple[int, int, int, int, int] | None

    @classmethod
    def at(cls, path: Path) -> Self:
        """The file as it is now."""
        try:
            found = path.stat()
        except OSError:
            return cls(str(path), None)
        return cls(str(path), (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev))


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """What a file says before its tables, as msgpack."""

    key: str
    code: str
    sources: tuple[Source, ...]
    digest: str
    spec: TokenizerSpec  # without the tokens and merges, which are among the tables


class Kept(NamedTuple):
    """A tokenizer from the cache.

    Attributes:
        spec: What its files said.
        tables: What was made of it.

    """

    spec: TokenizerSpec
    tables: _core.KeptTables


class Origin(NamedTuple):
    """What a tokenizer was read from: enough to have it again in another process.

    Attributes:
        path: The file or folder.
        pattern: What `Tokenizer.from_file` was given.
        special_tokens: The same.
        nfc: The same.
        digest: The SHA-256 of its files.

    """

    path: str
    pattern: str | None
    special_tokens: tuple[tuple[str, int], ...] | None
    nfc: bool
    digest: str


class Entry:
    """The files of one tokenizer, and its place in the cache; to be made before they are read.

    Attributes:
        sources: All files that reading it may look at.
        from_cache: The tokenizer was found there.

    """

    from_cache = False

    def __init__(
        self, path: Path, pattern: str | None, special_tokens: Mapping[str, int] | None, nfc: bool = True
    ) -> None:
        """Find the files.

        Raises:
            TokenizerFileError: A folder has no tokenizer file, or several.

        """
        path = Path(os.path.abspath(path))
        file = find_in_folder(path) if os.path.isdir(path) else path  # `Path.is_dir` fails for names that are too long
        self.sources = tuple(map(Source.at, [file, *beside(file)]))
        self._given = (str(path), pattern, None if special_tokens is None else tuple(special_tokens.items()), nfc)
        self._key = hashlib.sha256(json.dumps(self._given).encode()).hexdigest()
        self._path = cache_folder() / f"{self._key}.tables"
        self._started = time.time_ns()
        self._known_digest: str | None = None  # of the files as they were then

    def find(self, *, verify: bool = False) -> Kept | None:
        """What is kept of the tokenizer; None if there is nothing that holds.

        Args:
            verify: Read the tokenizer's files and compare their hash, rather than trust their times.

        """
        try:
            block = _read_block(self._path)
            magic, size, head_sum, tables_sum = _PREAMBLE.unpack(block.memory[: _PREAMBLE.size].tobytes())
            start = _PREAMBLE.size + _padded(size)
            head, tables = block.memory[_PREAMBLE.size : start], block.memory[start:]
            if magic != _MAGIC or (head_sum, tables_sum) != (_core.checksum(head), _core.checksum(tables)):
                return None
            found = _decoder().decode(head[:size].data)
            if (found.key, found.code, found.sources) != (self._key, _code(), self.sources):
                return None
            if verify and found.digest != self._hash():
                return None
            kept = _core.KeptTables(block, start)
            self._known_digest = found.digest
            self.from_cache = True
            return Kept(replace(found.spec, model=_with_tables(found.spec.model, kept)), kept)
        except (OSError, ValueError, struct.error, msgspec.DecodeError, TokenizerFileError):
            return None

    def keep(self, spec: TokenizerSpec, model: _core.Model, tokens: _core.TokenBytes) -> None:
        """Keep a tokenizer that has just been read; a failure to do so is none of the caller's."""
        with suppress(OSError, UnicodeEncodeError):  # a path need not be UTF-8
            if not self._worth_keeping():
                return
            bare, ids, merges = _parts(spec.model)
            tables = None if ids is None else _core.keep_tables(ids, merges, model, tokens)
            digest = None if tables is None else self.digest()
            if bare is None or tables is None or digest is None:
                return
            head = _Head(self._key, _code(), self.sources, digest, replace(spec, model=bare))
            encoded = msgspec.msgpack.encode(head)
            if _decoder().decode(encoded) != head:
                return
            padded = np.zeros(_padded(len(encoded)), np.uint8)
            padded[: len(encoded)] = np.frombuffer(encoded, np.uint8)
            preamble = _PREAMBLE.pack(_MAGIC, len(encoded), _core.checksum(padded), _core.checksum(tables))
            _make_room(self._path.parent)
            store(self._path, preamble, padded.data, tables.data)

    def origin(self) -> Origin | None:
        """What the tokenizer was read from, if that is still there."""
        try:
            digest = self.digest() if self._holds() else None
        except OSError:
            digest = None
        return None if digest is None else Origin(*self._given, digest)

    def digest(self) -> str | None:
        """The SHA-256 of the names and contents of the files that there are; None if they have changed.

        Raises:
            OSError: One of them cannot be read.

        """
        if self._known_digest is None:
            digest = self._hash()
            self._known_digest = digest if self._holds() else None
        return self._known_digest

    def _holds(self) -> bool:
        return all(Source.at(Path(source.path)) == source for source in self.sources)

    def _hash(self) -> str:
        digest = hashlib.sha256()
        for source in self.sources:
            if source.state is not None:
                content = _content(Path(source.path))
                digest.update(f"{Path(source.path).name}\0{len(content)}\0".encode(errors="surrogateescape"))
                digest.update(content)
        return digest.hexdigest()

    def _worth_keeping(self) -> bool:
        states = [source.state for source in self.sources if source.state is not None]
        if sum(size for size, *_ in states) < MIN_BYTES:
            return False
        return all(max(changed, any_change) < self._started - MIN_AGE_NS for _, changed, any_change, *_ in states)


def _content(path: Path) -> bytes | memoryview:
    """What a tokenizer may be made of: of a GGUF file, which may have gigabytes of tensors, what stands before them."""
    return Metadata.from_file(path).head if gguf.is_gguf(path) else path.read_bytes()


def _padded(size: int) -> int:
    return -(-size // 64) * 64


def _read_block(path: Path) -> _core.TableBlock:
    """Read a file as `open_own` opens it, and raise as it does."""
    with open_own(path) as file:
        size = os.fstat(file.fileno()).st_size
        if not _PREAMBLE.size <= size <= _MAX_BYTES:
            raise OSError(f"{path} has {size} bytes")
        block = _core.TableBlock(size)
        rest = block.memory.data
        while rest:
            if not (n := file.readinto(rest)):
                raise OSError(f"{path} is cut short")
            rest = rest[n:]
        return block


def _parts(model: Model) -> tuple[Model | None, _core.TokenIds | _core.RankIds | None, _core.Merges | None]:
    """A model without its tables, and these; None where it is not of a kind that is kept."""
    match model:
        case RankBPE(ranks):
            ids = ranks if isinstance(ranks, _core.RankIds) else _core.RankIds(dict(ranks))
            return replace(model, ranks={}), ids, None
        case BPE():
            tokens = model.vocab if isinstance(model.vocab, _core.TokenIds) else _core.TokenIds(dict(model.vocab))
            merges = model.merges if isinstance(model.merges, _core.Merges) else _core.Merges(model.merges)
            return replace(model, vocab={}, merges=[]), tokens, merges
        case _:
            return None, None, None


def _with_tables(model: Model, kept: _core.KeptTables) -> Model:
    match model:
        case RankBPE():
            return replace(model, ranks=kept.ids)
        case BPE():
            return replace(model, vocab=kept.ids, merges=kept.merges)
        case _:
            raise TokenizerFileError(f"a {type(model).__name__} model is not kept")


@cache
def _decoder() -> msgspec.msgpack.Decoder[_Head]:
    return msgspec.msgpack.Decoder(_Head)


@cache
def _code() -> str:
    """What stands for the code that reads and builds: its files' sizes and times, the compiled core's, and Python's Unicode,
    which has a say in what is a control token.
    """
    states = []
    folders = [os.path.dirname(__file__)]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith((".py", ".so", ".pyd")):
                    found = entry.stat()
                    states.append((entry.name, found.st_size, found.st_mtime_ns))
    states.sort()
    return hashlib.sha256(json.dumps([unicodedata.unidata_version, states]).encode()).hexdigest()


def _make_room(folder: Path) -> None:
    """Remove the oldest files, so that one more can be kept."""
    with suppress(OSError):  # somebody else removed them
        newest_first = sorted(folder.glob("*.tables"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in newest_first[MAX_KEPT - 1 :]:
            file.unlink(missing_ok=True)
