"""A program in a pseudo-terminal, as a person has it before them."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import time

TIMEOUT = 30.0
PROMPT = "\x1b[0m>"
"""The prompt of `chat`, as prompt_toolkit writes it."""


def take_ctrl_c():
    """Restore the default handling of SIGINT, for `preexec_fn`: background jobs of a shell, and their children, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal(io.StringIO):
    """A text that says it is a terminal."""

    def isatty(self):
        return True


class PseudoTerminal:
    """A program that runs in a pseudo-terminal of its own, to which tests type and whose output they read.

    Attributes:
        shown: Everything it has shown so far.

    """

    def __init__(self, *command, env):
        self.shown = ""
        self._seen = 0
        self._ours, theirs = pty.openpty()
        # A session leader that opens a terminal gets it as its controlling one, so that Ctrl-C reaches it.
        script = 'exec "$@" <"$0" >"$0" 2>&1'
        self._process = subprocess.Popen(
            ["sh", "-c", script, os.ttyname(theirs), *command],
            env=env,
            start_new_session=True,
            preexec_fn=take_ctrl_c,  # noqa: PLW1509 - it takes no lock that a thread could hold
        )
        self._theirs = theirs

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._process.kill()
        self._process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def type(self, keys):
        os.write(self._ours, keys.encode())

    def enter(self, line):
        """Wait for the prompt of `chat`, and answer it."""
        self.expect(PROMPT)
        self.type(f"{line}\r")

    def expect(self, text):
        """Wait until `text` is shown behind the text that was expected last; return the output in between."""
        end = time.monotonic() + TIMEOUT
        while (found := self.shown.find(text, self._seen)) < 0:
            if not self._read(end):
                raise AssertionError(f"{text!r} was not shown; shown was {self.shown[self._seen :]!r}")
        between = self.shown[self._seen : found]
        self._seen = found + len(text)
        return between

    def more(self):
        """Wait until any output is shown behind the text that was expected last."""
        end = time.monotonic() + TIMEOUT
        while len(self.shown) == self._seen:
            assert self._read(end), "nothing was shown"

    def end(self):
        """Wait for the program's end; return its exit code."""
        code = self._process.wait(TIMEOUT)
        while select.select([self._ours], [], [], 0)[0]:
            self.shown += os.read(self._ours, 65536).decode("utf-8", "replace")
        return code

    def _read(self, end):
        if not select.select([self._ours], [], [], max(0, end - time.monotonic()))[0]:
            return False
        self.shown += os.read(self._ours, 65536).decode("utf-8", "replace")
        return True
