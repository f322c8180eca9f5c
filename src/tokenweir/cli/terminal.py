"""What a terminal takes: codes or plain text, colours or none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from tokenweir.encode.visible_text import visible

DIM, PLAIN = "\x1b[2m", "\x1b[0m"


def controllable(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether `stream` obeys escape codes: a terminal that is not dumb."""
    return stream.isatty() and environ.get("TERM", "dumb") != "dumb"


def styled(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether `stream` is to have colours: it obeys escape codes, and nobody set `NO_COLOR` (no-color.org)."""
    return controllable(stream, environ) and not environ.get("NO_COLOR")


def dim(text: str, style: bool) -> str:
    """Make `text` visible, and dim where the terminal takes it."""
    return f"{DIM}{visible(text)}{PLAIN}" if style else visible(text)
