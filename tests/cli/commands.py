"""The program's commands in this process."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

import tokenweir
from tokenweir.cli import main

EMBEDDED = Path(tokenweir.__file__).parent / "encode" / "data"
"""The folder of the embedded model."""


def run(*arguments, stdin=None, env=None):
    """Run a command, to its end or its error; return the result."""
    return CliRunner().invoke(main, [*map(str, arguments)], input=stdin, env=env)
