"""`chat`, as a person at a terminal has it: keys, pastes, a window that changes, and what is on the screen."""

from __future__ import annotations

import json
import re

import pytest
from chat_program import ANSWER, CHAT, environment
from pseudo_terminal import PROMPT, PseudoTerminal
from tmux import Tmux


def words(count):
    """Return an answer of words of one to nine letters."""
    return " ".join("abcdefghi"[: 1 + i * 7 % 9] for i in range(count))


@pytest.fixture
def window(tmp_path, recording):
    """Open `chat` in a window; `said` is the answer, a token each `wait_ms`."""
    opened = []

    def start(said, *args, columns=80, rows=24, wait_ms=0.0, history=None):
        env = environment()
        if history is not None:
            del env["TOKENWEIR_NO_HISTORY"]
            env["TOKENWEIR_HISTORY"] = str(history)
        folder = tmp_path / f"window-{len(opened)}"
        folder.mkdir()
        screen = Tmux(folder, *CHAT, recording(said, wait_ms), *args, columns=columns, rows=rows, env=env)
        opened.append(screen)
        screen.expect("\n>")
        return screen

    yield start
    for screen in opened:
        screen.__exit__()


def terminal(*args, **env):
    return PseudoTerminal(*CHAT, *args, env=environment(**env))


# -- what is shown -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [20, 80, 200])
def test_words_stay_whole(window, columns):
    said = words(100)
    screen = window(said + "<|im_end|>", columns=columns, rows=40)
    screen.enter("hi")
    shown = screen.expect("stop]")
    answer = shown[shown.index("hi\n") + 3 : shown.index("[")].split("\n")
    assert " ".join(" ".join(answer).split()) == said
    assert all(len(line) <= columns for line in answer)
    assert max(len(line) for line in answer) > columns - 10 or len(answer) == 1


def test_words_stay_whole_while_the_window_changes(window):
    said = words(150)
    screen = window(said + "<|im_end|>", columns=90, rows=40, wait_ms=15)
    screen.enter("hi")
    for columns in (40, 25, 70, 33):
        screen.expect("abcdefgh")
        screen.resize(columns, 40)
    shown = screen.expect("stop]")
    answer = shown[shown.index("hi\n") + 3 : shown.rindex("[")].split("\n")
    # tmux wraps anew a moment before the program can know it; what is drawn in between may leave a row above
    assert " ".join(" ".join(answer).split()).endswith(said)
    assert all(len(line) <= 33 for line in answer)


def test_markdown_is_drawn_and_nothing_left_out(window):
    said = (
        "# Head\n\nSome **bold** <b>text</b> &lt; \\(x\\) ![i](http://a/b.png)\n\n[r]: http://c\n\n```py\nx = 1\n```\n"
    )
    screen = window(said + "<|im_end|>")
    screen.enter("hi")
    shown = screen.expect("stop]")
    assert "\nHead\n\nSome bold <b>text</b> &lt; \\(x\\) !i (http://a/b.png)\n\n[r]: http://c\n\n x = 1\n" in shown


def test_thinking_is_dim_and_ctrl_d_ends(recording):
    with terminal(recording(ANSWER)) as screen:
        screen.expect("Answers come from replay:")
        screen.enter("hi")
        shown = screen.expect("; stop]")
        assert re.search(r"\x1b\[2mLet me see\.\x1b\[0m", shown)
        assert "It is 👩‍🚀 — done." in shown
        assert not re.search(r"\x1b\[2m[^\x1b]*done", shown)
        screen.expect(PROMPT)
        screen.type("\x04")
        assert screen.end() == 0


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_styles_where_they_are_not_wanted(recording, env):
    with terminal(recording(ANSWER), "--reasoning=dim", **env) as screen:
        screen.enter("hi")
        screen.expect("[thinking]")
        shown = screen.expect("; stop]")
        assert "done." in shown
        assert not re.search(r"\x1b\[[0-9;]*m", shown)
        screen.enter("/quit")
        assert screen.end() == 0


def test_nothing_that_acts_reaches_the_terminal(recording):
    texts = ("x\x1b]52;c;aGk=\x07\x1b[2Jy\rz\x9b2J", "&#x1b;[2J&#x202e;", "`span\x1b[2J`", "```\nfenced\x1b[2J\n```")
    with terminal(recording("\n\n".join(texts) + "<|im_end|>")) as screen:
        screen.enter("hi")
        shown = screen.expect("; stop]")
        assert all(words in shown for words in ("]52;c;aGk=", "&#x1b;[2J&#x202e;", "span", "fenced"))
        assert not re.search(r"\x1b\](?!0)|\x07|\x1b\[2J|\x9b|\u202e", screen.shown)


# -- keys --------------------------------------------------------------------------------------------------------------


def test_keys_of_a_message(window):
    """A paste of several lines, a line feed by either key, and completion."""
    screen = window("Yes.<|im_end|>", rows=60)
    screen.paste("one\ntwo\nthree\nfour")
    screen.expect("> one\n  two\n  three\n  four")
    screen.keys("Enter")
    screen.expect("; stop]")
    for times, newline in enumerate(["M-Enter", "\\ Enter"], 2):
        screen.expect("\n>", times=times)
        screen.type("five")
        for key in newline.split():
            screen.keys(key)
        screen.type("six")
        screen.expect("> five\n  six", times=times - 1)
        screen.keys("Enter")
        shown = screen.expect("; stop]", times=times)
        assert shown.count("; prompt") == times
    screen.expect("\n>", times=4)
    screen.type("/thi")
    screen.keys("Tab")
    screen.expect("> /think")
    screen.type(" hid")
    screen.keys("Tab")
    screen.expect("> /think hide")
    screen.keys("Enter")
    screen.expect("Thinking is set to hide.")


def test_a_paste_during_an_answer_is_one_message(window):
    screen = window("word " * 60 + "<|im_end|>", wait_ms=20)
    screen.enter("hi")
    screen.expect("word word")
    screen.paste("one\ntwo")
    screen.expect("; stop]")
    shown = screen.expect("> one\n  two")
    assert "one" not in shown[: shown.index("; stop]")]  # and it was not shown amid the answer


@pytest.mark.parametrize(("columns", "second"), [(80, " " * 9 + "too"), (20, "the conversation as")])
def test_help_stands_in_columns_where_there_is_room(window, columns, second):
    screen = window("Yes.<|im_end|>", columns=columns, rows=60)
    screen.enter("/help")
    lines = screen.expect("follows.").split("\n")
    save = next(i for i, line in enumerate(lines) if line.startswith("/save "))
    assert lines[save].startswith("/save    FILE: write")
    assert lines[save + 1].startswith(second)


def test_history_stays(window, tmp_path):
    history = tmp_path / "state" / "history"
    screen = window("Yes.<|im_end|>", history=history)
    screen.enter("a memorable line")
    screen.expect("; stop]")
    screen.expect("\n>", times=2)  # Ctrl-D means the end of input to the prompt, which may not be there yet
    screen.keys("C-d")
    screen.expect("ended with 0")
    assert history.stat().st_mode & 0o777 == 0o600
    screen = window("Yes.<|im_end|>", history=history)
    screen.keys("Up")
    screen.expect("> a memorable line")


def test_a_history_that_can_no_longer_be_written_is_let_go(window, tmp_path):
    history = tmp_path / "history"
    screen = window("Yes.<|im_end|>", history=history)
    history.unlink()
    history.mkdir()
    for times in (1, 2):
        screen.enter("hi")
        screen.expect("; stop]", times=times)
    screen.keys("Up")
    screen.expect("> hi", times=3)
    assert "Errno" not in screen.screen()


def test_a_history_that_is_a_folder_is_told(tmp_path, recording):
    (tmp_path / "state" / "tokenweir" / "history").mkdir(parents=True)
    env = environment(XDG_STATE_HOME=str(tmp_path / "state"))
    del env["TOKENWEIR_NO_HISTORY"]
    with Tmux(tmp_path, *CHAT, recording("Yes.<|im_end|>"), env=env) as screen:
        screen.expect("No history is kept: ")
        screen.enter("hi")
        screen.expect("; stop]")


def test_a_system_message_that_is_no_text_does_not_cost_a_saved_file(window, tmp_path):
    saved = tmp_path / "saved.json"
    saved.write_text("before")
    screen = window("Yes.<|im_end|>")
    screen.type("/system ")
    screen._tmux("send-keys", "-H", "ff")
    screen.keys("Enter")
    screen.expect("is set")
    screen.enter(f"/save {saved}")
    screen.expect("not saved: 'utf-8' codec can't encode")
    assert saved.read_text() == "before"


def test_ctrl_c_stops_the_answer_and_not_the_program(window):
    screen = window("word " * 2000, wait_ms=20)
    for times in (1, 2):
        screen.enter("hi")
        screen.expect("> hi\nword word", times=times)
        screen.keys("C-c")
        screen.expect("; Ctrl-C]", times=times)
        screen.expect("\n>", times=times + 1)
    screen.keys("C-c")
    screen.expect("(Ctrl-C again or Ctrl-D ends)")
    screen.keys("C-c")
    shown = screen.expect("ended with 0")
    assert "Traceback" not in shown


def test_an_answer_goes_on_after_it_was_suspended(tmp_path, recording):
    with Tmux(tmp_path, "bash", "--norc", "-i", env=environment(PS1="ready: ")) as screen:
        screen.expect("ready:")
        screen.enter(" ".join([*CHAT, recording("word " * 100 + "<|im_end|>", wait_ms=20)]))
        screen.expect("\n>")
        screen.enter("hi")
        screen.expect("word word")
        screen.keys("C-z")
        screen.expect("Stopped")
        screen.enter("fg")
        screen.expect("; stop]")
        screen.expect("\n>", times=2)


def test_ctrl_c_stops_a_real_engine(tiny_model):
    args = (f"--engine=ctranslate2:{tiny_model}", "--max-tokens=1000000", "--reasoning=show")
    with terminal(*args, TERM="dumb") as screen:
        screen.enter("hi")
        screen.expect("\x1b[?2004l")  # the prompt is over: from here on Ctrl-C is a signal
        screen.more()
        screen.type("\x03")
        screen.expect("; Ctrl-C]")
        screen.expect(PROMPT)
        screen.type("\x04")
        assert screen.end() == 0


def test_an_error_does_not_end_the_conversation(tiny_model):
    args = (f"--engine=ctranslate2:{tiny_model}", "--seed=1", "--temperature=1")
    with terminal(*args) as screen:
        screen.expect(PROMPT)
        for _ in range(2):
            screen.type("hi\r")
            screen.expect("error: CTranslate2 seeds the whole process")
            screen.expect(PROMPT)


def test_another_answer_that_fails_leaves_the_last(tiny_model, tmp_path):
    saved = tmp_path / "saved.json"
    with terminal(f"--engine=ctranslate2:{tiny_model}", "--max-tokens=3") as screen:
        for line, note in (
            ("hi", "; length]"),
            ("/set seed 1", "seed is 1."),
            ("/set temperature 1", "temperature is 1."),
            ("/retry", "error: CTranslate2 seeds the whole process"),
            (f"/save {saved}", "2 messages are in"),
        ):
            screen.enter(f"{line}")
            screen.expect(note)
    assert [message["role"] for message in json.loads(saved.read_text())] == ["user", "assistant"]


def test_a_demo_says_what_it_is(recording):
    with terminal(recording("x")) as screen:
        screen.enter("/demo code")
        screen.expect("A recording named 3-code, not a model.")
        screen.expect("import")
        screen.type("\x03")
        screen.expect("; Ctrl-C]")
