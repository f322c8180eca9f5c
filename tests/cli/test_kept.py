"""Conversations that are kept, and `chat --continue`."""

from __future__ import annotations

import json
import os
import re

import pytest
from chat_program import CHAT, environment
from commands import run
from tmux import Tmux

from tokenweir.cli.kept import MOST, KeptConversations

HI = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Yes."}]


@pytest.fixture
def kept(tmp_path):
    return KeptConversations(tmp_path / "history.conversations")


def files(tmp_path):
    return sorted((tmp_path / "history.conversations").glob("*.json"))


def piped(tmp_path, *args, stdin=""):
    return run("chat", "--history", tmp_path / "history", *args, stdin=stdin)


def test_the_last_one_written_is_the_last(kept, tmp_path):
    assert kept.last() is None
    kept.save(HI)
    (first,) = files(tmp_path)
    assert (first.stat().st_mode & 0o777, first.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    os.utime(first, (1, 1))  # clocks of file systems are coarse
    kept.begin()
    kept.save(HI[:1])
    assert len(files(tmp_path)) == 2
    assert json.loads(kept.last()) == HI[:1]
    os.utime(first, (1 << 32, 1 << 32))
    assert json.loads(kept.last()) == HI
    kept.save([*HI, *HI])
    assert json.loads(first.read_bytes()) == [*HI, *HI]
    kept.forget()
    assert len(files(tmp_path)) == 1
    assert json.loads(kept.last()) == HI[:1]


def test_their_number_is_bounded(kept, tmp_path):
    for number in range(MOST + 3):
        kept.begin()
        before = set(files(tmp_path))
        kept.save([{"role": "user", "content": str(number)}])
        (new,) = set(files(tmp_path)) - before
        os.utime(new, (number, number))
    said = {json.loads(file.read_bytes())[0]["content"] for file in files(tmp_path)}
    assert said == {str(number) for number in range(3, MOST + 3)}


def test_a_conversation_at_a_terminal_is_kept_and_taken_up(tmp_path, recording):
    env = environment(TOKENWEIR_HISTORY=str(tmp_path / "history"))
    del env["TOKENWEIR_NO_HISTORY"]
    engine = recording("Yes.<|im_end|>")
    (tmp_path / "one").mkdir()
    with Tmux(tmp_path / "one", *CHAT, engine, "--system", "Be brief.", env=env) as screen:
        screen.expect("\n>")
        screen.enter("hi")
        screen.expect("; stop]")
    (file,) = files(tmp_path)
    system = {"role": "system", "content": "Be brief."}
    assert json.loads(file.read_bytes()) == [system, *HI]
    (tmp_path / "two").mkdir()
    with Tmux(tmp_path / "two", *CHAT, engine, "--continue", env=env) as screen:
        screen.expect("2 messages go before; the last of yours: hi")
        screen.enter("more")
        screen.expect("; stop]")
        assert json.loads(file.read_bytes())[3]["content"] == "more"
        screen.expect("\n>", times=2)
        screen.enter("/clear")
        screen.expect("is forgotten")
        assert files(tmp_path) == []


def test_a_message_continues_the_last_conversation(kept, tmp_path, recording):
    kept.save(HI)
    engine = recording("No.<|im_end|>")
    alone = piped(tmp_path, engine, "--once", "more")
    result = piped(tmp_path, engine, "--continue", "--once", "more")
    assert result.stdout == "No.\n"
    alone, longer = (int(re.search(r"prompt (\d+)", each.stderr)[1]) for each in (alone, result))
    assert longer > alone
    (file,) = files(tmp_path)
    more = [{"role": "user", "content": "more"}, {"role": "assistant", "content": "No."}]
    assert json.loads(file.read_bytes()) == [*HI, *more]
    assert piped(tmp_path, engine, "--continue", "--no-history", "--once", "again").exit_code == 0
    assert json.loads(file.read_bytes()) == [*HI, *more]
    piped(tmp_path, engine, "--continue", "--system", "Be brief.", "--once", "again")
    assert json.loads(file.read_bytes())[0] == {"role": "system", "content": "Be brief."}


def test_what_comes_from_a_pipe_is_not_kept(tmp_path, recording):
    piped(tmp_path, recording("No.<|im_end|>"), stdin="hi\n")
    assert files(tmp_path) == []


def test_a_file_that_is_loaded_is_kept_as_another_conversation(kept, tmp_path, recording):
    kept.save(HI)
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(HI[:1]))
    piped(tmp_path, recording("No.<|im_end|>"), "--continue", stdin=f"/load {saved}\n/retry\n")
    assert [len(json.loads(file.read_bytes())) for file in files(tmp_path)] == [2, 2]


def test_what_cannot_be_continued_is_told(kept, tmp_path, recording):
    engine = recording("No.<|im_end|>")
    result = piped(tmp_path, engine, "--continue", "--once", "hi")
    assert result.exit_code == 2
    assert "--continue: no conversation is kept yet; those at a terminal are" in result.stderr
    kept.save(HI)
    (file,) = files(tmp_path)
    for content, mode, told in (
        (b"[1", 0o600, "Expecting"),
        (b"\xff", 0o600, "can't decode"),
        (b"[]", 0o666, "is not to be trusted"),
    ):
        file.write_bytes(content)
        file.chmod(mode)
        result = piped(tmp_path, engine, "--continue", "--once", "hi")
        assert result.exit_code == 2
        assert re.search(
            f"--continue: the last conversation cannot be read: .*{told}", result.stderr.replace("\n", " ")
        )


def test_control_characters_of_a_kept_message_are_shown(kept, tmp_path, recording):
    kept.save([{"role": "user", "content": [{"type": "text", "text": "a\x1b[2Jb"}]}, HI[1]])
    result = piped(tmp_path, recording("No.<|im_end|>"), "--continue", "--once", "hi")
    assert "the last of yours: a␛[2Jb" in result.stderr


def test_a_conversation_that_cannot_be_kept_goes_on(kept, tmp_path, recording, monkeypatch):
    kept.save(HI)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(KeptConversations, "save", full)
    result = piped(tmp_path, recording("No.<|im_end|>"), "--continue", stdin="one\ntwo\n")
    assert (result.exit_code, result.stdout) == (0, "No.\nNo.\n")
    assert result.stderr.count("The conversation is no longer kept: No space left on device") == 1
