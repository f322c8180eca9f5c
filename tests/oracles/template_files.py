"""Chat templates: the embedded one, those of the data, and more from a folder that TOKENWEIR_TEMPLATES names."""

from __future__ import annotations

import os
from pathlib import Path

_EMBEDDED = Path(__file__).resolve().parents[2] / "encode" / "data" / "chat_template.jinja"
_SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def template_files(*more_folders: str) -> dict[str, str]:
    """Return the source of each distinct template by its name; `more_folders` are folders of the data to search as well."""
    data = Path(os.environ.get("TOKENWEIR_DATA") or _SHARED)
    folders = [data / folder for folder in ("templates", "templates-more", *more_folders)]
    if more := os.environ.get("TOKENWEIR_TEMPLATES"):
        folders.append(Path(more))
    sources = {"embedded": _EMBEDDED.read_text("utf-8")}
    for folder in folders:
        for path in sorted(folder.rglob("*.jinja")):
            source = path.read_text("utf-8")
            if source not in sources.values():
                sources[path.stem if path.stem not in sources else f"{path.stem} ({path.parent.name})"] = source
    return sources
