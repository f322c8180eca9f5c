"""Inventories of other projects' documentation, small and local, so that building needs no network.

Intersphinx reads the whole inventory of a project from its site. A build without a network would then fail, and its links would
be unchecked. The names that these pages link to are few, so they are listed here.
"""

from __future__ import annotations

import zlib
from pathlib import Path

ABC = "AsyncGenerator AsyncIterable AsyncIterator Awaitable Callable Collection Iterable Iterator Mapping Sequence"

NAMES = {
    "python": (
        "https://docs.python.org/3",
        {
            **dict.fromkeys((f"collections.abc.{name}" for name in ABC.split()), "library/collections.abc.html#$"),
            "collections.Counter": "library/collections.html#$",
            "contextlib.AbstractAsyncContextManager": "library/contextlib.html#$",
            "contextlib.AbstractContextManager": "library/contextlib.html#$",
            "pathlib.Path": "library/pathlib.html#$",
            "socket.socket": "library/socket.html#$",
        },
    ),
    "numpy": (
        "https://numpy.org/doc/stable",
        {
            **dict.fromkeys(("numpy.dtype", "numpy.ndarray"), "reference/generated/$.html#$"),
            **dict.fromkeys(("numpy.int32", "numpy.integer"), "reference/arrays.scalars.html#$"),
        },
    ),
    "pyarrow": (
        "https://arrow.apache.org/docs/python",
        dict.fromkeys(("pyarrow.LargeListArray", "pyarrow.Table"), "generated/$.html#$"),
    ),
    "starlette": (
        "https://www.starlette.io",
        {"starlette.applications.Starlette": "applications/", "starlette.middleware.Middleware": "middleware/"},
    ),
}
"""By project: its site, and the page of each class; `$` stands for the name."""


def write(folder: Path) -> dict[str, tuple[str, str]]:
    """Write the inventories into a folder, in Sphinx's format.

    Returns:
        The value of `intersphinx_mapping`.

    """
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for project, (site, pages) in NAMES.items():
        lines = "".join(f"{name} py:class 1 {page.replace('$', name)} -\n" for name, page in pages.items())
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n# The remainder of this file is compressed using zlib.\n"
        path = folder / f"{project}.inv"
        path.write_bytes(head.encode() + zlib.compress(lines.encode()))
        mapping[project] = (site, str(path))
    return mapping
