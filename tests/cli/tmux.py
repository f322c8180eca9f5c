"""A program in a terminal of tmux, which wraps, scrolls and resizes as a person's terminal does."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time

import pytest

TIMEOUT = 30.0


class Tmux:
    """A program that runs in a tmux window of its own, to which tests type and whose screen they read."""

    def __init__(self, folder, *command, columns=80, rows=24, env=None):
        if shutil.which("tmux") is None:
            if os.environ.get("REQUIRE_TMUX"):
                raise AssertionError("tmux is not installed")
            pytest.skip("tmux is not installed")
        self._socket = str(folder / "tmux")
        (folder / "tmux.conf").write_text('set -g default-terminal "screen-256color"\nset -g status off\n')
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in (env or {}).items() if name != "TERM")
        line = f"env {settings} {shlex.join(command)}; echo ended with $?; exec cat"
        self._tmux("-f", str(folder / "tmux.conf"), "new-session", "-d", "-x", str(columns), "-y", str(rows), line)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._tmux("kill-server")

    def _tmux(self, *args):
        result = subprocess.run(["tmux", "-S", self._socket, *args], capture_output=True, text=True, check=True)
        return result.stdout

    def keys(self, *names):
        """Press keys by tmux's names for them: "Enter", "C-c", "M-Enter"."""
        self._tmux("send-keys", *names)

    def type(self, text):
        self._tmux("send-keys", "-l", text)

    def enter(self, text):
        self.type(text)
        self.keys("Enter")

    def paste(self, text):
        """Paste a text as a terminal does: as a bracketed paste if the program has switched that on."""
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p")

    def resize(self, columns, rows=24):
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self, *, joined=False, colors=False):
        """Return the text of the terminal, scrolled lines included.

        With `joined`, wrapped lines are joined, with `colors`, escape codes are kept.
        """
        flags = ["-J"] * joined + ["-e"] * colors
        return self._tmux("capture-pane", "-p", "-S", "-", *flags).rstrip("\n")

    def expect(self, text, times=1):
        """Wait until `text` is on the screen at least `times` times; return the screen's text."""
        end = time.monotonic() + TIMEOUT
        while (screen := self.screen()).count(text) < times:
            assert time.monotonic() < end, f"{text!r} was not shown {times} times; the screen was:\n{screen}"
            time.sleep(0.05)
        return screen
