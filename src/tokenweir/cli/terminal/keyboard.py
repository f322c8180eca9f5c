"""Keyboard input of messages, with history and completion.

A message can have several lines. A paste is put into the line as it is, whatever line feeds it has, since terminals
bracket it; Alt-Enter and a backslash at the end of a line begin another one. The history of all conversations is kept in
a file that only its owner can read.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tokenweir.cli.terminal.escape_codes import controllable
from tokenweir.encode.base.platform import keys_unseen
from tokenweir.encode.errors import without_number

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

_BRACKET_PASTES, _DO_NOT = "\x1b[?2004h", "\x1b[?2004l"


def default_history() -> Path:
    """Return the default path of the history file, below `XDG_STATE_HOME` or `~/.local/state`."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "tokenweir" / "history"


def typed(arguments: Mapping[str, Completer | None], history: Path | None) -> Iterator[str]:
    """Yield the messages that the user types at the terminal, until Ctrl-D, or Ctrl-C twice in a row.

    Args:
        arguments: The completer for the argument of each command, by command.
        history: The file that keeps what was typed; None keeps no history.

    Raises:
        ImportError: prompt_toolkit is not installed.

    """
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    out = sys.stdout if sys.stdout.isatty() else sys.stderr
    session: PromptSession[str] = PromptSession(
        "> ",
        multiline=True,
        prompt_continuation=lambda width, line, wraps: "  "[:width],
        key_bindings=_keys(),
        completer=_completer(arguments),
        complete_while_typing=False,
        history=_history(history),
        enable_suspend=True,
        output=create_output(stdout=out),
    )
    interrupted = False
    while True:
        try:
            message = session.prompt()
        except EOFError:
            return
        except KeyboardInterrupt:
            if interrupted:
                return
            sys.stderr.write("(Ctrl-C again or Ctrl-D ends)\n")
            interrupted = True
        else:
            interrupted = False
            yield message


def _completer(arguments: Mapping[str, Completer | None]) -> Completer:
    """Return a completer for messages: at their beginning it completes the name of a command, then the command's argument.

    Args:
        arguments: The completer for the argument of each command, by command; None for a command without one.

    """
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    class Commands(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
            command, space, argument = document.text_before_cursor.partition(" ")
            if not space and command.startswith("/"):
                yield from (Completion(name, -len(command)) for name in arguments if name.startswith(command))
            elif completer := arguments.get(command):
                yield from completer.get_completions(Document(argument.lstrip()), complete_event)

    return Commands()


def _keys() -> KeyBindings:
    """Return key bindings: Enter sends the message; with Alt, or behind a backslash, it begins another line."""
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def another_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys


def _history(path: Path | None) -> History:
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class Kept(FileHistory):
        def load_history_strings(self) -> Iterable[str]:
            try:
                return super().load_history_strings()
            except OSError:  # it could be read a moment ago
                return ()

        def store_string(self, string: str) -> None:
            with contextlib.suppress(OSError):  # a full disk must not end the conversation
                super().store_string(string)

    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.open("rb+").close()  # fails for a folder
    except OSError as error:
        sys.stderr.write(f"No history is kept: {without_number(error)}\n")
        return InMemoryHistory()
    return Kept(str(path))


@contextlib.contextmanager
def keys_wait() -> Iterator[None]:
    """Suppress echo while an answer streams, and buffer typed keys for the next prompt; a context manager.

    Ctrl-C and Ctrl-Z still act.
    """
    with keys_unseen() as unseen:
        marks = unseen and controllable(sys.stdout)
        if marks:
            sys.stdout.write(_BRACKET_PASTES)
        try:
            yield
        finally:
            if marks:
                sys.stdout.write(_DO_NOT)
