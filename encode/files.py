"""Reading of the files that a user names: regular files only, and no pointers of Git LFS in their place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tokenweir.encode.errors import TokenizerFileError, without_path

_POINTER = b"version https://git-lfs.github.com/spec/"


def check_regular(path: Path) -> int:
    """Return the size of a regular file in bytes.

    Raises:
        OSError: It is not accessible, or not a regular file: a device may be endless, and opening a FIFO waits.

    """
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(
            f"is a {'folder' if stat.S_ISDIR(found.st_mode) else 'device, pipe or socket'}, not a regular file"
        )
    return found.st_size


def read_regular(path: Path, most: int | None = None) -> bytes:
    """Return the content of a regular file, of at most `most` bytes if they are given.

    Raises:
        OSError: It cannot be read, is not a regular file, too large, or a pointer of Git LFS.

    """
    if (size := check_regular(path)) > (size if most is None else most):
        raise OSError(f"{size} bytes; at most {most} are read")
    data = path.read_bytes()
    refuse_pointer(data)
    return data


def refuse_pointer(data: bytes | bytearray | memoryview) -> None:
    """Raise `OSError` if the content of a file, or its beginning, is that of a pointer of Git LFS."""
    if bytes(data[: len(_POINTER)]) == _POINTER:
        raise OSError("is a pointer of Git LFS, not the file itself: fetch it by git lfs pull")


def read_text(path: Path) -> str:
    """Return the text of a regular file in UTF-8; raise `TokenizerFileError`, with the path, if it cannot be read."""
    try:
        return read_regular(path).decode().replace("\r\n", "\n").replace("\r", "\n")  # as Python reads text files
    except (OSError, UnicodeDecodeError) as error:
        raise TokenizerFileError(f"{path}: {without_path(error)}") from error
