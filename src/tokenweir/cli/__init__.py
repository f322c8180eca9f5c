"""The command line: `tokenweir chat | serve | encode | encode-files | preprocess-data | decode | count | tokens | render |
inspect | verify | check | fetch-model`.

Every command is one file, and imports heavy packages only when it runs: `tokenweir --help` needs click alone.

Commands share these files: `options.py` and `model.py` for options, inputs, engines and tokenizers; `workers.py` for the
processes of `serve`; `conversation.py` and `attachments.py` for `chat`; `terminal/` for keys, answers, tokens and origins at a
terminal.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from tokenweir.cli import (
    chat,
    check,
    count,
    decode,
    encode,
    encode_files,
    fetch_model,
    inspect,
    preprocess_data,
    render,
    serve,
    tokens,
    verify,
)
from tokenweir.encode.base.visible_text import visible
from tokenweir.encode.errors import TokenweirError, UnsupportedTokenizerError, without_number

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of SIGINT."""


class _Failure(click.ClickException):
    """Exception that click shows as one line on stderr, with exit code 1 and without a traceback."""

    def show(self, file: IO[Any] | None = None) -> None:
        line = " ".join(visible(self.message).split("\n"))
        click.echo(f"tokenweir: error: {line}", file=file or sys.stderr)


class _Closed(io.TextIOBase):
    """Replacement for a standard output that the parent process has closed: writing to it raises `OSError`."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


@contextmanager
def _report_errors() -> Iterator[None]:
    """Context manager that converts the exceptions of a command to an error message of one line and an exit code.

    Control characters in the message are escaped.
    """
    try:
        yield
    except BrokenPipeError:  # the reader of our output is gone; click ends quietly
        raise
    except click.ClickException as error:
        error.message = visible(error.message)  # type: ignore[misc] # click shows it
        raise
    except UnsupportedTokenizerError as error:  # its message names only the construct
        raise _Failure(f"not supported: {error}") from error
    except (TokenweirError, OSError) as error:
        raise _Failure(without_number(error)) from error
    except MemoryError as error:
        raise _Failure("out of memory") from error
    except KeyboardInterrupt as error:
        raise click.exceptions.Exit(INTERRUPTED) from error


class _Commands(click.Group):
    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _report_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        if sys.stdin is None:  # closed by the parent
            sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
        if sys.stdout is None:
            sys.stdout = _Closed()
        if sys.stderr is None:
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # characters outside the encoding become escapes instead of errors
                stream.reconfigure(errors="backslashreplace")
        with _report_errors():
            return super().invoke(ctx)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(package_name="tokenweir", message="%(version)s")
def main() -> None:
    """Chat messages in, prompt ids out; token ids back, clean text out, token by token.

    Every option of a command can also come from the environment: --max-tokens as TOKENWEIR_MAX_TOKENS, and so on. The
    flag wins.
    """
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (
    chat.chat,
    serve.serve,
    encode.encode,
    encode_files.encode_files,
    preprocess_data.preprocess_data,
    decode.decode,
    count.count,
    tokens.tokens,
    render.render,
    inspect.inspect,
    verify.verify,
    check.check,
    fetch_model.fetch_model,
):
    main.add_command(_command)
