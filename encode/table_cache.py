"""The cache of loaded tokenizers: files with their tables as they are in memory, which load in milliseconds.

A cache file has the spec that was read from a tokenizer's files, and the tables that were built from it
(core/memory/table_file.h). It is valid for its source files, identified by path, size, times and inode, and for the code that
wrote it. A damaged or stale file, or another user's, is ignored and rebuilt, so the cache only saves time. There are no
locks: a file is renamed into place, and the last writer wins.

Only byte-level and character BPE are cached, the models that take long to build, from files of half a megabyte or more.
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
from tokenweir.encode.base.cache import cache_folder, make_room, open_own, store
from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.formats import find_in_folder, gguf
from tokenweir.encode.formats.folder import beside
from tokenweir.encode.formats.gguf.metadata import Metadata
from tokenweir.encode.spec import BPE, Model, RankBPE, TokenizerSpec

MIN_BYTES = 1 << 19
"""The least size of a tokenizer's files for the cache: smaller ones are built as fast as they are looked up."""

MAX_KEPT = 32
"""The most cache files; the oldest are removed first."""

MIN_AGE_NS = 2_000_000_000
"""The least age of a source file when it is read: a younger one may change again within the resolution of its times."""

_MAX_BYTES = 1 << 31
_MAGIC = b"tokenweir tables"
_PREAMBLE = struct.Struct("<16sQQQ24x")  # magic, bytes of the head, checksums of head and tables


class SourceFile(msgspec.Struct, frozen=True, array_like=True):
    """A source file of a tokenizer, with the state that identifies its version.

    Attributes:
        path: The file.
        state: Size, mtime, ctime, inode and device; None if the file does not exist.

    """

    path: str
    state: tuple[int, int, int, int, int] | None

    @classmethod
    def at(cls, path: Path) -> Self:
        """Return a source file with its current state."""
        try:
            found = path.stat()
        except OSError:
            return cls(str(path), None)
        return cls(str(path), (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev))


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """The head of a cache file, as msgpack.

    Attributes:
        key: The hash of the path and options by which the tokenizer was loaded.
        code: The digest of the code that wrote the file.
        sources: The source files as they were then.
        digest: The SHA-256 of their contents.
        spec: The spec, whose model has no tables.

    """

    key: str
    code: str
    sources: tuple[SourceFile, ...]
    digest: str
    spec: TokenizerSpec  # without tokens and merges, which are in the tables


class KeptTokenizer(NamedTuple):
    """A tokenizer from the cache.

    Attributes:
        spec: The spec that was read from its files.
        tables: The tables that were built from the spec.

    """

    spec: TokenizerSpec
    tables: _core.KeptTables


class Origin(NamedTuple):
    """The arguments by which another process can load the same tokenizer again, with a hash of its files.

    Attributes:
        path: The file or folder.
        pattern: The argument of `Tokenizer.from_file`.
        special_tokens: The argument of `Tokenizer.from_file`.
        nfc: The argument of `Tokenizer.from_file`.
        digest: The SHA-256 of the files.

    """

    path: str
    pattern: str | None
    special_tokens: tuple[tuple[str, int], ...] | None
    nfc: bool
    digest: str


class CacheEntry:
    """The cache entry of one tokenizer: its source files and its cache file. Must be created before the files are read.

    Attributes:
        sources: All files that reading the tokenizer may open.
        from_cache: Whether the tokenizer came from the cache.

    """

    from_cache = False

    def __init__(
        self, path: Path, pattern: str | None, special_tokens: Mapping[str, int] | None, nfc: bool = True
    ) -> None:
        """Record the present state of the source files; the arguments are those of `Tokenizer.from_file`.

        Raise `TokenizerFileError` for a folder with no tokenizer file, or several.
        """
        path = Path(os.path.abspath(path))
        file = find_in_folder(path) if os.path.isdir(path) else path  # `Path.is_dir` fails for names that are too long
        self.sources = tuple(map(SourceFile.at, [file, *beside(file)]))
        self._given = (str(path), pattern, None if special_tokens is None else tuple(special_tokens.items()), nfc)
        self._key = hashlib.sha256(json.dumps(self._given).encode()).hexdigest()
        self._path = cache_folder() / f"{self._key}.tables"
        self._started = time.time_ns()
        self._known_digest: str | None = None  # of the files as they were then

    def find(self, *, verify: bool = False) -> KeptTokenizer | None:
        """Load the tokenizer from the cache; return None without a valid cache file.

        With `verify`, also compare the hash of the source files, instead of trusting their times.
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
            return KeptTokenizer(replace(found.spec, model=_with_tables(found.spec.model, kept)), kept)
        except (OSError, ValueError, struct.error, msgspec.DecodeError, TokenizerFileError):
            return None

    def keep(self, spec: TokenizerSpec, model: _core.Model, tokens: _core.TokenBytes) -> None:
        """Write a tokenizer that has just been read to the cache. I/O errors are ignored.

        Nothing is written for small files, files changed a moment ago, or a kind of model that is not cached.
        """
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
            make_room(self._path.parent, "*.tables", MAX_KEPT)
            store(self._path, preamble, padded.data, tables.data)

    def origin(self) -> Origin | None:
        """Return the arguments that load the tokenizer again; None if a file has changed or cannot be read."""
        try:
            digest = self.digest() if self._holds() else None
        except OSError:
            digest = None
        return None if digest is None else Origin(*self._given, digest)

    def digest(self) -> str | None:
        """Return the SHA-256 of the names and contents of the existing files, as they were when this entry was created.

        None if one has changed before the files were hashed.

        Raises:
            OSError: A file cannot be read.

        """
        if self._known_digest is None:
            digest = self._hash()
            self._known_digest = digest if self._holds() else None
        return self._known_digest

    def _holds(self) -> bool:
        return all(SourceFile.at(Path(source.path)) == source for source in self.sources)

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
    """Read the part of a file that a tokenizer depends on: all of it, or of a GGUF file the part before its tensors."""
    return Metadata.from_file(path).head if gguf.is_gguf(path) else path.read_bytes()


def _padded(size: int) -> int:
    return -(-size // 64) * 64


def _read_block(path: Path) -> _core.TableBlock:
    """Read a cache file into a block of memory.

    Raise `OSError` if it is missing or has an invalid size, this user does not own it, or others can write it.
    """
    with open_own(path) as file:
        size = os.fstat(file.fileno()).st_size
        if not _PREAMBLE.size <= size <= _MAX_BYTES:
            raise OSError(f"{path} has {size} bytes")
        block = _core.TableBlock(size)
        rest = block.memory.data
        while rest:
            if not (n := file.readinto(rest)):
                raise OSError(f"{path} is truncated")
            rest = rest[n:]
        return block


def _parts(model: Model) -> tuple[Model | None, _core.TokenIds | _core.RankIds | None, _core.Merges | None]:
    """Split a model into a copy without tables, its map of tokens to ids, and its merges.

    The merges are None for a rank file's model. All three are None for a kind of model that is not cached.
    """
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
            raise TokenizerFileError(f"a {type(model).__name__} model is not cached")


@cache
def _decoder() -> msgspec.msgpack.Decoder[_Head]:
    return msgspec.msgpack.Decoder(_Head)


@cache
def _code() -> str:
    """Return the digest of the code that reads and builds tokenizers, the compiled core included."""
    return code_digest(os.path.dirname(__file__))


def code_digest(folder: str) -> str:
    """Return a SHA-256 of the names and contents of all Python files and compiled modules in a folder and below it.

    Python's version of Unicode is included, because it decides which added tokens are control tokens.
    """
    paths, folders = [], [folder]
    for one in folders:
        with os.scandir(one) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith((".py", ".so", ".pyd")):
                    paths.append(entry.path)
    digest = hashlib.sha256(unicodedata.unidata_version.encode())
    for path in sorted(paths):
        with open(path, "rb") as file:
            data = file.read()
        digest.update(f"\n{os.path.relpath(path, folder)} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()
