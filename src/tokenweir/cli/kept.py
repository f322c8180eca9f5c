"""Conversations at a terminal, kept so that `chat --continue` can take up the last one."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import Any

from tokenweir.encode.base.cache import make_room, read_own, store

MOST = 20
"""Conversations that are kept; the oldest one makes room."""


class KeptConversations:
    """Folder of conversations, each a file as `/save` writes it, which its owner alone can read.

    Args:
        folder: The folder; it is made with the first conversation.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._current: Path | None = None

    def last(self) -> bytes | None:
        """Return the content of the file that was written last, which the next `save` replaces; None without a file.

        Raises:
            OSError: The file cannot be read, or others can write it.

        """
        files = self._folder.glob("*.json")
        self._current = max(files, key=lambda file: file.stat().st_mtime_ns, default=None)
        return None if self._current is None else read_own(self._current)

    def save(self, messages: list[dict[str, Any]]) -> None:
        """Write the conversation; its first time takes a new file.

        Raises:
            OSError: The file cannot be written.
            ValueError: A text has no UTF-8 form.

        """
        data = json.dumps(messages, ensure_ascii=False, indent=1).encode()
        if self._current is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_room(self._folder, "*.json", MOST)
            self._current = self._folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}.json"
        store(self._current, data + b"\n")

    def begin(self) -> None:
        """Let the next `save` begin another conversation."""
        self._current = None

    def forget(self) -> None:
        """Delete the conversation, and let the next `save` begin another one."""
        if self._current is not None:
            self._current.unlink(missing_ok=True)
        self._current = None
