"""Files at local paths and at URLs, which fsspec opens: reading, and folders in which a file is complete or absent."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO

from tokenweir.encode.base.platform import lock_file
from tokenweir.encode.errors import CorpusError, without_path

TEMPORARY = ".tmp-"
"""Name prefix of incomplete files."""


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Context manager that converts `OSError` and `ValueError` to a `CorpusError` whose message begins with `path`."""
    try:
        yield
    except CorpusError:  # it names a file already
        raise
    except (ImportError, OSError, ValueError) as error:  # fsspec names the package that a protocol needs
        raise CorpusError(f"{path}: {without_path(error)}") from error


def is_url(path: str) -> bool:
    """Return whether a path is a URL, perhaps a chain of several, and not a local path."""
    return "://" in path


def at_url(url: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path in it; raise `CorpusError` if fsspec is not installed."""
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError as error:
        raise CorpusError(f"{url}: URLs need fsspec: pip install 'tokenweir[corpus]'") from error
    found: tuple[Any, str] = url_to_fs(url)
    return found


def open_binary(path: str) -> BinaryIO:
    """Open a file at a local path or a URL for reading."""
    if not is_url(path):
        return open(path, "rb")
    files, place = at_url(path)
    return io.BufferedReader(files.open(place, "rb"))


@dataclass(frozen=True)
class Folder:
    """An output folder on a local disk. Files are staged there, and appear under their names, flushed, when published.

    Attributes:
        path: The path or URL of the folder.
        owner: A part of the names of staged files and of the lock, by which runs on several machines share a folder.

    """

    path: str
    owner: str

    def staged(self, name: str) -> Path:
        """Return the local path at which a file of this name is written before it is published."""
        return Path(self.path, f"{TEMPORARY}{self.owner}-{os.getpid()}-{name}")

    def publish(self, names: Sequence[str]) -> None:
        """Rename staged files to their names; existing files are replaced."""
        for name in names:
            with open(self.staged(name), "r+b") as file:  # Windows flushes files that may be written only
                os.fsync(file.fileno())
        for name in names:
            os.replace(self.staged(name), Path(self.path, name))

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the files in the folder in bytes, by name."""
        found = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # removed meanwhile, by another machine
                    if entry.is_file():
                        found[entry.name] = entry.stat().st_size
        return found

    def read(self, name: str) -> bytes:
        """Return the content of a file; raise `FileNotFoundError` if it does not exist."""
        return Path(self.path, name).read_bytes()

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; missing ones are ignored."""
        for name in names:
            Path(self.path, name).unlink(missing_ok=True)

    def lock(self) -> IO[str] | None:
        """Lock the folder for this owner; return the file that holds the lock while it is open.

        Return None for a folder at a URL, which has no locks. Raise `CorpusError` if another run has the lock.
        """
        file = open(Path(self.path, f".lock-{self.owner}"), "w")  # noqa: SIM115 - held as long as the run
        try:
            lock_file(file)
        except OSError as error:
            file.close()
            raise CorpusError(f"{self.path}: another run is writing into it") from error
        return file

    def create(self) -> None:
        """Create the folder unless it is there."""
        os.makedirs(self.path, exist_ok=True)

    def write(self, name: str, content: bytes) -> None:
        """Write a file as a whole."""
        try:
            self.staged(name).write_bytes(content)
            self.publish([name])
        finally:
            self.discard([name])

    def discard(self, names: Iterable[str]) -> None:
        """Remove staged files; missing ones are ignored. Published files stay."""
        for name in names:
            self.staged(name).unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove staged files that a killed run of this owner has left."""
        self.remove([name for name in self.sizes() if name.startswith(f"{TEMPORARY}{self.owner}-")])


class RemoteFolder(Folder):
    """A folder at a URL. Files are staged on the local disk, uploaded under temporary names and moved, so that also a store without atomic puts has no part."""

    def staged(self, name: str) -> Path:
        return Path(_scratch(os.getpid()).name, name)

    def publish(self, names: Sequence[str]) -> None:
        files, folder = at_url(self.path)
        moves = [(f"{folder}/{TEMPORARY}{self.owner}-{os.getpid()}-{name}", f"{folder}/{name}") for name in names]
        for name, (uploaded, _) in zip(names, moves, strict=True):
            files.put_file(str(self.staged(name)), uploaded)
        for uploaded, final in moves:
            files.mv(uploaded, final)
        self.discard(names)

    def sizes(self) -> dict[str, int]:
        files, folder = at_url(self.path)
        files.invalidate_cache(folder)
        try:
            found = files.ls(folder, detail=True)
        except FileNotFoundError:  # a store without folders has an empty one nowhere
            return {}
        return {one["name"].rpartition("/")[2]: one["size"] for one in found if one["type"] == "file"}

    def read(self, name: str) -> bytes:
        files, folder = at_url(self.path)
        content: bytes = files.cat_file(f"{folder}/{name}")
        return content

    def remove(self, names: Iterable[str]) -> None:
        files, folder = at_url(self.path)
        for name in names:
            with suppress(FileNotFoundError):
                files.rm_file(f"{folder}/{name}")

    def lock(self) -> IO[str] | None:
        return None

    def create(self) -> None:
        files, folder = at_url(self.path)
        files.makedirs(folder, exist_ok=True)


def folder_at(path: str, owner: str) -> Folder:
    """Return the folder at a path or URL."""
    return RemoteFolder(path.rstrip("/"), owner) if is_url(path) else Folder(path, owner)


@cache
def _scratch(process: int) -> tempfile.TemporaryDirectory[str]:
    """Return the local folder of a process for files that are uploaded; a fork gets one of its own."""
    return tempfile.TemporaryDirectory(prefix="tokenweir-")
