"""`chat`, as a person at a terminal and as a program at a pipe have it."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tokenweir.cli import main
from tokenweir.encode.tokenizer import Tokenizer

PseudoTerminal = runpy.run_path(str(Path(__file__).with_name("pseudo_terminal.py")))["PseudoTerminal"]

CHAT = (sys.executable, "-m", "tokenweir", "chat")
ANSWER = "<think>\nLet me see.\n</think>\n\nIt is 👩‍🚀 — done.<|im_end|>"


def environment(**changes):
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("TOKENWEIR", "PYTHON", "NO_COLOR"))
    }
    return kept | {"TERM": "xterm", "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"} | changes


@pytest.fixture
def recording(tmp_path):
    """Write what an engine is to say, and how fast; returns the `--engine` option."""

    def write(text, wait_ms=0.0):
        ids = Tokenizer.default().encode(text)
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps({"name": "test", "prompt": "?", "ids": ids, "waits_ms": [wait_ms] * len(ids)}))
        return f"--engine=replay:{path}"

    return write


def piped(*args, stdin="hi\n", env=None):
    return CliRunner().invoke(main, ["chat", *args], input=stdin, env=env)


def terminal(*args, **env):
    return PseudoTerminal(*CHAT, *args, env=environment(**env))


# -- at a pipe ---------------------------------------------------------------------------------------------------------


def test_only_the_answer_goes_to_stdout(recording):
    result = piped(recording(ANSWER))
    assert result.stdout == "It is 👩‍🚀 — done.\n"
    tokens = len(Tokenizer.default().encode(ANSWER))
    assert re.fullmatch(
        rf"\[{tokens} tokens, \d+ thinking; prompt \d+; first token \d+\.\d\d s; .*stop\]\n", result.stderr
    )
    assert result.exit_code == 0


@pytest.mark.parametrize("think", ["show", "dim"])
def test_thinking_has_a_label_where_it_cannot_be_dim(recording, think):
    result = piped(recording(ANSWER), "--think", think)
    assert result.stdout == "[thinking]\nLet me see.\n\n[answer]\nIt is 👩‍🚀 — done.\n"


def test_escape_sequences_are_shown(recording):
    result = piped(recording("a\x1b]52;c;aGk=\x07b\rc\u202ed\x9b1m<|im_end|>"))
    assert result.stdout == "a␛]52;c;aGk=␇b␍c\\u202ed\\x9b1m\n"


def test_output_that_is_not_utf8(recording):
    env = environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    result = subprocess.run([*CHAT, recording(ANSWER)], input=b"hi\n", capture_output=True, env=env, check=True)
    assert result.stdout == b"It is \\U0001f469\\u200d\\U0001f680 \\u2014 done.\n"


def test_a_reader_that_leaves(recording):
    command = " ".join(["exec", *CHAT, recording("word " * 500 + "<|im_end|>", wait_ms=2)])
    with subprocess.Popen(
        ["sh", "-c", command], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(b"hi\n")
        process.stdin.flush()
        assert process.stdout.read(4) == b"word"
        process.stdout.close()
        assert process.wait(timeout=30) == 1
        assert process.stderr.read() == b""


def test_every_line_is_a_message_of_one_conversation(recording):
    notes = piped(recording("Yes.<|im_end|>"), stdin="one\ntwo\n\n/clear\none").stderr
    prompts = [int(count) for count in re.findall(r"prompt (\d+)", notes)]
    assert len(prompts) == 3
    assert prompts[1] > prompts[0] == prompts[2]


def test_the_system_message_and_the_options(recording):
    engine = recording("one two three four<|im_end|>")
    plain, system = (
        int(re.search(r"prompt (\d+)", piped(engine, *more).stderr)[1]) for more in ((), ("--system", "Be brief."))
    )
    assert system > plain
    stopped = piped(engine, "--stop", "three")
    assert stopped.stdout == "one two \n"
    assert "; stop at 'three']" in stopped.stderr
    assert "; length]" in piped(engine, "--max-tokens", "2").stderr
    assert piped(engine, env={"TOKENWEIR_STOP": "two"}).stdout == "one \n"


def test_the_seed_repeats_the_toy():
    first, again, other = (
        piped("--engine=ngram", "--max-tokens=40", "--think=show", f"--seed={seed}", "--temperature=1").stdout
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_commands(recording):
    result = piped(recording("No.<|im_end|>"), stdin="/help\n/demo nothing\n/nonsense\n /quit is a word\n/quit\nmore\n")
    assert "/demo [name]  play a recorded answer: 1-recording," in result.stderr
    assert "no recording is named nothing; there are: 1-recording," in result.stderr
    assert "/nonsense is not a command; /help lists them" in result.stderr
    assert result.stdout == "No.\n"


def test_a_real_engine(tiny_model):
    result = piped(f"--engine=ctranslate2:{tiny_model}", "--max-tokens=20", "--think=show")
    assert result.stdout.strip()
    assert "[20 tokens" in result.stderr


@pytest.mark.parametrize(
    ("args", "stdin", "code", "message"),
    [
        (("--engine=ctranslate2:/nowhere",), "hi", 1, "tokenweir: error: /nowhere/vocabulary.json: not a CTranslate2"),
        (("--engine=replay:/nowhere.json",), "hi", 1, "tokenweir: error: /nowhere.json: not a recording"),
        (("--engine=replay:nobody",), "hi", 2, "no recording is named 'nobody'"),
        (("--engine=oracle",), "hi", 2, "unknown engine 'oracle'"),
        (("--stop=",), "hi", 2, "the empty text would end every answer"),
        (("--engine=ngram",), b"ok\nbad \xff\n", 1, "<stdin>: byte 0xff at offset 7 is not UTF-8"),
    ],
)
def test_errors(args, stdin, code, message):
    result = piped(*args, "--max-tokens=1", stdin=stdin)
    assert result.exit_code == code
    assert message in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "--tokenizer needs the --engine that speaks its ids"),
        (("--engine=ngram",), "ngram speaks the embedded vocabulary only"),
        (("--engine=local",), "local brings its own tokenizer"),
    ],
)
def test_an_engine_needs_the_tokenizer_whose_ids_it_speaks(data, args, message):
    result = piped("--tokenizer", str(data("tokenizers/qwen3/tokenizer.json")), *args)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_small_model_answers_by_default(small_model):
    result = piped("--max-tokens=16", stdin="What is the capital of France?\n")
    assert "Paris" in result.stdout
    assert result.stderr.startswith("SmolLM2-135M-Instruct answers, a small model in this process")


def test_without_the_small_model_the_toy_answers_and_says_so(cache):
    result = piped("--max-tokens=4", "--think=show")
    assert result.stdout.strip()
    assert result.stderr.startswith(
        "The small model is not here yet: `tokenweir fetch-model` downloads it (93 MB). An n-"
    )
    result = piped("--engine=local")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("tokenweir: error: The small model is not here yet")


def test_a_tokenizer_without_a_template(data, recording):
    result = piped("--tokenizer", str(data("tokenizers/gpt2/tokenizer.json")), recording("x"))
    assert (result.exit_code, result.stderr) == (1, "tokenweir: error: the tokenizer has no chat template\n")


# -- at a terminal -----------------------------------------------------------------------------------------------------


def test_thinking_is_dim_and_ctrl_d_ends(recording):
    with terminal(recording(ANSWER)) as screen:
        screen.expect("Answers come from replay:")
        screen.expect("> ")
        screen.type("hi\n")
        shown = screen.expect("\x1b[2m[")  # the closing line
        dim = "".join(re.findall(r"\x1b\[2m(.*?)\x1b\[0m", shown, re.DOTALL))
        assert dim == "Let me see.\r\n"
        assert re.sub(r"\x1b\[[02]m", "", shown).endswith("Let me see.\r\n\r\nIt is 👩‍🚀 — done.\r\n")
        screen.expect("; stop]")
        screen.expect("> ")
        screen.type("\x04")
        assert screen.end() == 0


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_styles_where_they_are_not_wanted(recording, env):
    with terminal(recording(ANSWER), "--think=dim", **env) as screen:
        screen.expect("> ")
        screen.type("hi\n")
        screen.expect("[thinking]")
        screen.expect("; stop]")
        screen.expect("> ")
        screen.type("/quit\n")
        assert screen.end() == 0
        assert not re.search(r"\x1b\[[0-9;]*m", screen.shown)


def test_nothing_that_acts_reaches_the_terminal(recording):
    with terminal(recording("x\x1b]52;c;aGk=\x07\x1b[2Jy\rz\x9b2J<|im_end|>")) as screen:
        screen.expect("> ")
        screen.type("hi\n")
        screen.expect("x␛]52;c;aGk=␇␛[2Jy␍z\\x9b2J")
        screen.expect("; stop]")
        assert not re.search(r"\x1b\](?!0)|\x07|\x1b\[2J|\x9b", screen.shown)


def test_ctrl_c_stops_the_answer_and_not_the_program(recording):
    with terminal(recording("word " * 2000, wait_ms=20)) as screen:
        screen.expect("> ")
        screen.type("hi\n")
        screen.expect("word word ")
        screen.type("\x03")
        screen.expect("; Ctrl-C]")
        screen.expect("> ")
        screen.type("again\n")
        screen.expect("word word ")
        screen.type("\x03")
        screen.expect("; Ctrl-C]")
        screen.expect("> ")
        screen.interrupt_prompt()
        screen.expect("(Ctrl-C again or Ctrl-D ends)")
        screen.expect("> ")
        screen.interrupt_prompt()
        assert screen.end() == 0
        assert "Traceback" not in screen.shown


def test_ctrl_c_stops_a_real_engine(tiny_model):
    args = (f"--engine=ctranslate2:{tiny_model}", "--max-tokens=1000000", "--think=show")
    with terminal(*args, TERM="dumb") as screen:
        screen.expect("> ")
        screen.type("hi\n")
        screen.expect("hi\r\n")
        screen.more()
        screen.type("\x03")
        screen.expect("; Ctrl-C]")
        screen.expect("> ")
        screen.type("\x04")
        assert screen.end() == 0


def test_an_error_does_not_end_the_conversation(tiny_model):
    args = (f"--engine=ctranslate2:{tiny_model}", "--seed=1", "--temperature=1")
    with terminal(*args) as screen:
        screen.expect("> ")
        for _ in range(2):
            screen.type("hi\n")
            screen.expect("error: CTranslate2 seeds the whole process, not a call; seed=1 cannot be honoured")
            screen.expect("> ")


def test_a_demo_says_what_it_is():
    with terminal("--engine=ngram") as screen:
        screen.expect("An n-gram toy answers: it strings together words")
        screen.expect("> ")
        screen.type("/demo code\n")
        screen.expect("A recording named 3-code, not a model.")
        screen.expect("```")
        screen.type("\x03")
        screen.expect("; Ctrl-C]")


def test_history(recording):
    pytest.importorskip("readline")
    with terminal(recording("Yes.<|im_end|>")) as screen:
        screen.expect("> ")
        screen.type("a memorable line\n")
        screen.expect("; stop]")
        screen.expect("> ")
        screen.type("\x1b[A")
        screen.expect("a memorable line")
