"""The program `tokenweir chat`, and what its engine is to say."""

from __future__ import annotations

import os
import sys

CHAT = (sys.executable, "-m", "tokenweir", "chat")
ANSWER = "<think>\nLet me see.\n</think>\n\nIt is 👩‍🚀 — done.<|im_end|>"


def environment(**changes):
    """Return an environment for a program without variables that would change its output, updated with `changes`."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("TOKENWEIR", "PYTHON", "NO_COLOR"))
    }
    terminal = {"TERM": "xterm", "TOKENWEIR_NO_HISTORY": "1"}
    terminal["PROMPT_TOOLKIT_NO_CPR"] = "1"  # a pseudo-terminal does not tell where its cursor is
    return kept | terminal | {"PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"} | changes
