"""The command line: `tokenweir chat | serve | encode | decode | count | render | inspect |
fetch-model`.

Every command is one file, and imports what is heavy when it runs: `tokenweir --help` needs nothing but click.
"""

from __future__ import annotations

import io
import os
import sys
from typing import IO, Any

import click

from tokenweir.cli import chat, count, decode, encode, fetch_model, inspect, render, serve
from tokenweir.cli.terminal import visible
from tokenweir.encode.errors import TokenweirError, UnsupportedTokenizerError


class _Failure(click.ClickException):
    """An error of ours as click shows it: one line on stderr, exit code 1, no traceback."""

    def show(self, file: IO[Any] | None = None) -> None:
        line = " ".join(visible(self.message).split("\n"))
        click.echo(f"tokenweir: error: {line}", file=file or sys.stderr)


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            if getattr(sys, name) is None:  # closed by the parent: nothing to read, and nobody to write to
                setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # what the encoding lacks is shown as an escape and never fails
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output is gone; click ends quietly
            raise
        except UnsupportedTokenizerError as error:  # its message names the construct, and its type says the rest
            raise _Failure(f"not supported: {error}") from error
        except (TokenweirError, OSError) as error:
            raise _Failure(str(error)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tokenweir", message="%(version)s")
def main() -> None:
    """Chat messages in, prompt ids out; token ids back, clean text out, token by token.

    Every option of a command can also come from the environment: --max-tokens as TOKENWEIR_MAX_TOKENS, and so on. The
    flag wins.
    """


for _command in (
    chat.chat,
    serve.serve,
    encode.encode,
    decode.decode,
    count.count,
    render.render,
    inspect.inspect,
    fetch_model.fetch_model,
):
    main.add_command(_command)
