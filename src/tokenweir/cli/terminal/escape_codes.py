"""Capabilities of a terminal: escape codes and colours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from tokenweir.encode.base.visible_text import visible

DIM, PLAIN = "\x1b[2m", "\x1b[0m"


def controllable(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether `stream` is a terminal that obeys escape codes: `TERM` in `environ` is set, and not to "dumb"."""
    return stream.isatty() and environ.get("TERM", "dumb") != "dumb"


def styled(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether to use colours on `stream`: it supports escape codes, and `NO_COLOR` (no-color.org) is not set."""
    return controllable(stream, environ) and not environ.get("NO_COLOR")


def dim(text: str, style: bool) -> str:
    """Return `text` with control characters made visible; with `style`, also with the escape codes for dim text."""
    return f"{DIM}{visible(text)}{PLAIN}" if style else visible(text)
