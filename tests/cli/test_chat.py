"""`chat`, as a program at a pipe has it."""

from __future__ import annotations

import json
import re
import subprocess
from functools import partial

import pytest
from case_tables import cases
from chat_program import ANSWER, CHAT, environment
from commands import run

from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)


piped = partial(run, "chat", stdin="hi\n")


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
    result = piped(recording(ANSWER), "--reasoning", think)
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
        piped("--engine=ngram", "--max-tokens=40", "--reasoning=show", f"--seed={seed}", "--temperature=1").stdout
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_commands(recording):
    result = piped(recording("No.<|im_end|>"), stdin="/help\n/demo nothing\n/nonsense\n /quit is a word\n/quit\nmore\n")
    assert "/demo    [NAME]: play a recorded answer: 1-recording," in result.stderr
    assert "no recording is named nothing; there are: 1-recording," in result.stderr
    assert "/nonsense is not a command; /help lists them" in result.stderr
    assert result.stdout == "No.\n"


def test_a_real_engine(tiny_model):
    result = piped(f"--engine=ctranslate2:{tiny_model}", "--max-tokens=20", "--reasoning=show")
    assert result.stdout.strip()
    assert "[20 tokens" in result.stderr


def test_the_small_model_answers_by_default(small_model):
    result = piped("--max-tokens=16", "--temperature=0", stdin="What is the capital of France?\n")
    assert "Paris" in result.stdout
    assert result.stderr.startswith("SmolLM2-135M-Instruct answers, a small model in this process")


def test_without_the_small_model_the_toy_answers_and_says_so(cache):
    result = piped("--max-tokens=4", "--reasoning=show")
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


def test_one_message(recording):
    result = piped(recording("Yes.<|im_end|>"), "--once", "/quit is a word here", stdin="")
    assert (result.exit_code, result.stdout) == (0, "Yes.\n")
    assert result.stderr.count("; prompt") == 1
    one, two = (
        int(re.search(r"prompt (\d+)", piped(recording("Yes.<|im_end|>"), *args, stdin=text).stderr)[1])
        for args, text in ((("--once", "a\nb"), ""), (("--once", "-"), "a\nb\n"))
    )
    assert one == two


def test_a_conversation_is_saved_and_loaded(recording, tmp_path):
    saved = tmp_path / "saved.json"
    engine = recording("No.<|im_end|>")
    piped(engine, stdin=f"/system Be brief.\nhi\n/save {saved}\n")
    assert json.loads(saved.read_text()) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "No."},
    ]
    rendered = run("render", saved)
    assert "Be brief." in rendered.stdout
    notes = piped(engine, stdin=f"/load {saved}\nhi\n").stderr
    assert "3 messages are loaded." in notes
    alone = piped(engine, stdin="hi\n").stderr
    assert int(re.search(r"prompt (\d+)", notes)[1]) > int(re.search(r"prompt (\d+)", alone)[1])


@pytest.mark.parametrize(("line", "note"), CASES["one_line_answers"])
def test_commands_that_answer_in_a_line(recording, tmp_path, line, note):
    (tmp_path / "text").write_text("text")
    (tmp_path / "number.json").write_text("1")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "no-content.json").write_text('[{"role": "user"}]')
    (tmp_path / "surrogate.json").write_text(r'[{"role": "user", "content": "\ud800"}]')
    result = piped(recording("Yes.<|im_end|>"), stdin=line.format(tmp_path) + "\nhi\n")
    assert note in result.stderr
    assert (result.exit_code, result.stdout) == (0, "Yes.\n")


def test_settings_hold_for_what_comes(recording):
    lines = "/set stop two\nhi\n/set stop\n/think show\nhi\n/model ngram\n/set max_tokens 40\nhi\n"
    result = piped(recording("<think>\na\n</think>\n\none two<|im_end|>"), stdin=lines)
    assert result.stdout.startswith("one \n[thinking]\na\n\n[answer]\none two\n")
    assert "stop is ('two',)." in result.stderr
    assert "; stop at 'two']" in result.stderr
    assert "An n-gram toy answers" in result.stderr
    assert "; length]" in result.stderr.splitlines()[-1] or "; stop]" in result.stderr.splitlines()[-1]


def test_another_answer_takes_the_place_of_the_last(recording, tmp_path):
    saved = tmp_path / "saved.json"
    result = piped(recording("Yes.<|im_end|>"), stdin=f"hi\n/retry\n/save {saved}\n")
    assert result.stdout == "Yes.\nYes.\n"
    assert [message["role"] for message in json.loads(saved.read_text())] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("line", "message"),
    [(b"/model ctranslate2:/nowhere", "/nowhere"), (b"bad \xff", "<stdin>: byte 0xff at offset 7 is not UTF-8")],
)
def test_an_error_ends_the_conversation_at_a_pipe(recording, line, message):
    result = piped(recording("Yes.<|im_end|>"), stdin=b"hi\n" + line + b"\nhi\n")
    assert (result.exit_code, result.stdout) == (1, "Yes.\n")
    assert message in result.stderr


def test_the_tokens_of_an_answer(recording):
    result = piped(recording("Yes.<|im_end|>"), stdin="hi\n/tokens\n/tokens Hi you\n")
    ids = Tokenizer.default().encode("Yes.<|im_end|>")
    answer, text = result.stdout.split("Yes.\n", 1)[1].split("characters\n")[:2]
    assert answer.startswith("Yes.<|im_end|>\n" + " ".join(map(str, ids)))
    assert text.startswith("Hi you\n")
