"""Files that only save time: compiled patterns and kernels, and the tables of tokenizers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """The folder that the environment variable TOKENWEIR_CACHE names, else `tokenweir` in XDG_CACHE_HOME or `~/.cache`."""
    if folder := os.environ.get("TOKENWEIR_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tokenweir"


def store(path: Path, *data: bytes | memoryview) -> None:
    """Write a file, of one part or several, so that a reader sees all of it or nothing, however many write it at once.

    Only its owner may read it.

    Raises:
        OSError: It cannot be written.

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
