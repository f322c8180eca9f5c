"""The cache folder: compiled patterns and kernels, and the tables of tokenizers. Its files only save time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder named by TOKENWEIR_CACHE, else `tokenweir` in XDG_CACHE_HOME or `~/.cache`."""
    if folder := os.environ.get("TOKENWEIR_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tokenweir"


def store(path: Path, *data: bytes | memoryview) -> None:
    """Write a file atomically from one or more parts: readers see all of it or nothing, even with concurrent writers.

    The file is readable by its owner only.

    Raises:
        OSError: The file cannot be written.

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
