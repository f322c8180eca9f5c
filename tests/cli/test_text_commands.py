"""`encode`, `decode` and `count`: arguments, files and pipes, and errors of one line."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest
from commands import EMBEDDED, run
from hypothesis import given
from hypothesis import strategies as st
from pseudo_terminal import PseudoTerminal

from tokenweir.cli.encode import BATCH_CHARACTERS
from tokenweir.encode.errors import DeviceError, UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer

TEXT = "Hello, 世界! 👩‍🚀 <think>\n"


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


def out(*args, stdin=None):
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def ids_of(line):
    return [int(number) for number in line.split()]


def test_encode_arguments(tok):
    assert [ids_of(line) for line in out("encode", "Hello", TEXT).splitlines()] == [
        tok.encode("Hello"),
        tok.encode(TEXT),
    ]


def test_encode_takes_stdin_as_it_is(tok):
    assert ids_of(out("encode", stdin=TEXT)) == tok.encode(TEXT)
    assert ids_of(out("encode", "-f", "-", stdin=TEXT)) == tok.encode(TEXT)
    assert out("encode", stdin="") == "\n"


def test_encode_files(tok, tmp_path):
    (tmp_path / "a").write_bytes(b"one\r\n")
    (tmp_path / "b").write_bytes(TEXT.encode())
    lines = out("encode", "-f", str(tmp_path / "a"), "--file", str(tmp_path / "b")).splitlines()
    assert [ids_of(line) for line in lines] == [tok.encode("one\r\n"), tok.encode(TEXT)]


@pytest.mark.parametrize("command", ["encode", "count", "tokens"])
def test_a_text_that_is_the_name_of_a_file_is_taken_as_text_and_told(tmp_path, command):
    (tmp_path / "a b").write_bytes(b"two words")
    name = str(tmp_path / "a b")
    result = run(command, name)
    assert result.exit_code == 0
    assert result.stderr == f"{name} is taken as text; to read the file of that name write -f '{name}'\n"
    assert result.stdout == out(command, stdin=name)


def test_encode_lines(tok):
    lines = out("encode", "--lines", stdin="one\n\ntwo\r\nthree").splitlines()
    assert [ids_of(line) for line in lines] == [tok.encode(text) for text in ("one", "", "two\r", "three")]


def test_lines_beyond_one_batch(tok):
    texts = [f"{n} bottles of beer on the wall" for n in range(BATCH_CHARACTERS // 20)]
    lines = out("encode", "--lines", stdin="\n".join(texts)).splitlines()
    assert [ids_of(line) for line in lines] == [tok.encode(text) for text in texts]


def test_encode_json(tok):
    row = json.loads(out("encode", "--json", "a<think>"))
    assert row == {"ids": tok.encode("a<think>"), "tokens": ["a", "<think>"]}


def test_plain_text_has_no_added_tokens(tok):
    assert ids_of(out("encode", "--no-parse-special", "<think>")) == tok.encode("<think>", parse_special=False)
    assert ids_of(out("encode", "<think>")) == [tok.token_to_id("<think>")]
    assert out("count", "<think>") == "1\n"
    assert int(out("count", "--no-parse-special", "<think>")) > 1


def test_special_tokens_can_be_left_out(data):
    path = str(data("tokenizers/llama-3.1/tokenizer.json"))
    with_bos = ids_of(out("encode", "--tokenizer", path, "hi"))
    assert with_bos == [128000, *ids_of(out("encode", "--tokenizer", path, "--no-add-special-tokens", "hi"))]


def test_count(tok):
    assert out("count", "Hello", TEXT) == f"{tok.count('Hello')}\n{tok.count(TEXT)}\n"
    assert out("count", "--lines", stdin="one\ntwo words\n") == f"{tok.count('one')}\n{tok.count('two words')}\n"
    assert json.loads(out("count", "--json", stdin=TEXT)) == {"count": tok.count(TEXT)}


@pytest.mark.parametrize("form", ["{0} {1}", "{0},{1}", " {0} ,\n{1}\n", "[{0}, {1}]", '{{"ids": [{0}, {1}]}}'])
def test_decode_reads_every_form_of_ids(tok, form):
    ids = tok.encode("Hello 世")[:2]
    assert out("decode", stdin=form.format(*ids)) == tok.decode(ids)


def test_decode_arguments_files_and_lines(tok, tmp_path):
    one, two = tok.encode("one"), tok.encode("two\n")
    (tmp_path / "ids").write_text(f"{' '.join(map(str, one))}\n{json.dumps(two)}\n")
    assert out("decode", "--lines", "-f", str(tmp_path / "ids")) == "one\ntwo\n\n"
    assert out("decode", *map(str, one)) == "one"
    assert json.loads(out("decode", "--json", *map(str, two))) == {"text": "two\n"}


def test_decode_special_tokens(tok):
    (end,) = tok.encode("<|im_end|>")
    assert out("decode", str(end)) == ""
    assert out("decode", "--no-skip-special-tokens", str(end)) == "<|im_end|>"


def test_escape_sequences_stay_in_a_pipe(tok):
    assert out("decode", stdin=" ".join(map(str, tok.encode("\x1b[31mred")))) == "\x1b[31mred"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_round_trip(text):
    ids = out("encode", "--no-parse-special", stdin=text.encode())
    assert run("decode", stdin=ids).stdout_bytes == text.encode()


def test_a_model_in_the_hubs_cache_is_given_by_its_name(tmp_path, monkeypatch):
    snapshot = tmp_path / "models--some--model" / "snapshots" / "main"
    shutil.copytree(EMBEDDED, snapshot)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert out("encode", "--tokenizer", "some/model", "Hello world") == out("encode", "Hello world")


def test_what_is_not_supported_says_so(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF\1" + bytes(19))
    result = run("encode", "--tokenizer", str(path), "x")
    assert (result.exit_code, result.stderr) == (
        1,
        f"tokenweir: error: not supported: {path}: a GGUF file of version 1\n",
    )


def test_flags_over_environment(data):
    gpt2 = str(data("tokenizers/gpt2/tokenizer.json"))
    env = {"TOKENWEIR_TOKENIZER": gpt2, "TOKENWEIR_JSON": "1"}
    assert json.loads(run("encode", "Hello", env=env).stdout)["ids"] == [15496]
    env["TOKENWEIR_TOKENIZER"] = "/nowhere"
    assert run("encode", "--tokenizer", gpt2, "Hello", env=env).exit_code == 0


SOON_WATCHABLE = """
from tokenweir.cli import encode, main
encode.WATCHABLE_BYTES = 60_000
main(prog_name="tokenweir")
"""


@pytest.mark.parametrize(
    ("size", "term", "shown"),
    [(60_000, "xterm", True), (1000, "xterm", False), (60_000, "dumb", False)],
)
def test_a_progress_bar_for_who_watches(tmp_path, size, term, shown):
    (tmp_path / "text").write_text("a line of text\n" * (size // 15 + 1))
    (tmp_path / "program.py").write_text(SOON_WATCHABLE)
    program = f"{sys.executable} -P {tmp_path}/program.py"
    command = f"{program} encode --lines -f {tmp_path}/text > {tmp_path}/ids; echo ready"
    with PseudoTerminal("sh", "-c", command, env=os.environ | {"TERM": term}) as screen:
        between = screen.expect("ready")
    assert ("encoding" in between and "100%" in between) is shown
    assert len((tmp_path / "ids").read_text().splitlines()) == size // 15 + 1


# -- where to encode ---------------------------------------------------------------------------------------------------


@pytest.fixture
def gpu_batches(monkeypatch):
    """The batches that went to what stands for a GPU's encoder."""
    batches = []

    class GpuEncoder:
        def __init__(self, tok):
            self.tok = tok

        def encode_batch(self, texts, **options):
            batches.append(list(texts))
            encoded = self.tok.encode_batch(texts, **options)
            return type("OnDevice", (), {"to_host": lambda _: encoded})()

    monkeypatch.setattr("tokenweir.gpu.GpuEncoder", GpuEncoder)
    return batches


def no_gpu(error):
    def make(tok):
        raise error

    return make


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines"
    path.write_text("one <think>\n\n日本 three\n" * 20)
    return path


@pytest.mark.parametrize("options", [(), ("--no-parse-special",), ("--no-add-special-tokens", "--json")])
def test_the_device_can_be_chosen(lines, gpu_batches, options):
    arguments = ("encode", "--lines", "-f", str(lines), *options)
    expected = out(*arguments, "--device", "cpu")
    assert gpu_batches == []
    assert out(*arguments, "--device", "gpu") == expected
    assert gpu_batches == [lines.read_text().split("\n")[:-1]]


def test_a_gpu_gets_batches_that_are_bounded(lines, gpu_batches, monkeypatch):
    monkeypatch.setattr("tokenweir.cli.encode.GPU_BATCH_CHARACTERS", 100)
    expected = out("encode", "--lines", "-f", str(lines), "--device", "cpu")
    assert out("encode", "--lines", "-f", str(lines), "--device", "gpu") == expected
    assert {100 <= sum(map(len, batch)) < 120 for batch in gpu_batches[:-1]} == {True}
    assert len(gpu_batches) > 3


def test_auto_takes_a_gpu_for_large_files(lines, gpu_batches, monkeypatch):
    out("encode", "-f", str(lines))
    assert gpu_batches == []
    monkeypatch.setattr("tokenweir.cli.encode.WORTH_A_GPU", lines.stat().st_size)
    out("encode", stdin=lines.read_text())  # of a pipe's length nothing is known
    out("encode", "text")
    assert gpu_batches == []
    out("encode", "-f", str(lines))
    assert len(gpu_batches) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DeviceError("there is no CUDA device"), "there is no CUDA device"),
        (UnsupportedTokenizerError("Unigram"), "not supported: Unigram"),
    ],
)
def test_without_a_gpu(lines, monkeypatch, error, message):
    monkeypatch.setattr("tokenweir.gpu.GpuEncoder", no_gpu(error))
    monkeypatch.setattr("tokenweir.cli.encode.WORTH_A_GPU", 1)
    expected = out("encode", "-f", str(lines), "--device", "cpu")
    assert out("encode", "-f", str(lines)) == expected
    result = run("encode", "-f", str(lines), "--device", "gpu")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"tokenweir: error: {message}\n"
