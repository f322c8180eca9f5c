"""Messages that are typed."""

from __future__ import annotations

import pytest

from tokenweir.cli.terminal.keyboard import typed

pytest.importorskip("prompt_toolkit")
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import create_pipe_input


def test_a_history_that_can_no_longer_be_read_is_empty(tmp_path, monkeypatch, capsys):
    def fails(history):
        raise IsADirectoryError(21, "Is a directory")

    monkeypatch.setattr(FileHistory, "load_history_strings", fails)
    with create_pipe_input() as keys, create_app_session(input=keys):
        keys.send_text("hi\r\r\r")
        assert next(typed({}, tmp_path / "history")) == "hi"
    assert "Is a directory" not in "".join(capsys.readouterr())
