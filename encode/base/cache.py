"""The cache folder: compiled patterns and kernels, and the tables of tokenizers. Its files only save time."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from io import FileIO
from pathlib import Path

from tokenweir.encode.base.platform import is_own_file, open_unfollowed


def cache_folder() -> Path:
    """Return the folder named by TOKENWEIR_CACHE, else `tokenweir` in XDG_CACHE_HOME or `~/.cache`."""
    if folder := os.environ.get("TOKENWEIR_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tokenweir"


def store(path: Path, *data: bytes | memoryview) -> None:
    """Write a file atomically from one or more parts: readers see all of it or nothing, even with concurrent writers.

    The file is readable by its owner only.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in data:
                file.write(part)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def open_own(path: Path) -> FileIO:
    """Open a file for reading that `store` may have written.

    Raise `OSError` if it does not exist, this user does not own it, or others can write it.

    A folder that others can write to may hold their links, their pipes, and files that pass every checksum.
    """
    descriptor = open_unfollowed(path)
    try:
        if not is_own_file(os.fstat(descriptor)):
            raise OSError(f"{path} is not to be trusted")
        return open(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def read_own(path: Path) -> bytes:
    """Return the content of a file that `store` may have written; raise `OSError` as `open_own` does."""
    with open_own(path) as file:
        return file.read()


def make_room(folder: Path, pattern: str, most: int) -> None:
    """Remove the oldest files of a glob pattern from a folder, so that with one more there are at most `most`."""
    with suppress(OSError):  # another process removed them
        newest_first = sorted(folder.glob(pattern), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in newest_first[most - 1 :]:
            file.unlink(missing_ok=True)
