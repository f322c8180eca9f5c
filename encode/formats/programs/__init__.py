"""Programs of model folders that write prompts in place of a chat template.

No code of a model is run. For the programs in `_TEMPLATES` this folder has a Jinja template that writes the same prompts.
"""

from __future__ import annotations

from pathlib import Path

_PATTERNS = ("encoding*.py", "encoding/encoding*.py")
_TEMPLATES = {"encoding_dsv32.py": "deepseek-v3.2.jinja"}


def prompt_programs(folder: Path) -> list[Path]:
    """Return the Python files in a model folder that write its prompts, recognised by their names (`encoding*.py`)."""
    return [program for pattern in _PATTERNS for program in sorted(folder.glob(pattern))]


def template_of_program(folder: Path) -> str | None:
    """Return the Jinja source that writes the same prompts as a model folder's program; None if no such source is known."""
    for program in prompt_programs(folder):
        if (name := _TEMPLATES.get(program.name)) is not None:
            return (Path(__file__).parent / name).read_text("utf-8")
    return None
