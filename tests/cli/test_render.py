"""`render`: the prompt of a conversation."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tokenweir.cli import main
from tokenweir.encode.tokenizer import Tokenizer

MESSAGES = [{"role": "user", "content": "Say <|im_end|>"}]
TURN = "<|im_start|>user\nSay <|im_end|><|im_end|>\n"


def run(*args, stdin=None):
    return CliRunner().invoke(main, ["render", *args], input=stdin if stdin is None else json.dumps(stdin))


def test_text():
    assert run(stdin=MESSAGES).stdout == f"{TURN}<|im_start|>assistant\n"
    assert run("--no-generation-prompt", stdin={"messages": MESSAGES}).stdout == TURN


def test_json_tells_control_tokens_from_user_text(tmp_path):
    (tmp_path / "messages.json").write_text(json.dumps(MESSAGES))
    prompt = json.loads(run("--json", str(tmp_path / "messages.json")).stdout)
    assert "".join(segment["text"] for segment in prompt["segments"]) == prompt["text"]
    controls = [segment["text"] for segment in prompt["segments"] if segment["control"]]
    assert controls == ["<|im_start|>", "<|im_end|>", "<|im_start|>"]
    tok = Tokenizer.default()
    assert prompt["ids"].count(tok.token_to_id("<|im_end|>")) == 1
    assert tok.decode(prompt["ids"], skip_special_tokens=False) == prompt["text"]


def test_variables_and_tools():
    assert "<think>\n\n</think>" in run("--template-kwarg", "enable_thinking=false", stdin=MESSAGES).stdout
    tools = [{"type": "function", "function": {"name": "clock", "parameters": {}}}]
    assert '"clock"' in run(stdin={"messages": MESSAGES, "tools": tools}).stdout


def test_a_template_of_ones_own(tmp_path):
    path = tmp_path / "plain.jinja"
    path.write_text("{% for m in messages %}{{ m.role }}: {{ m.content }} ({{ word }})\n{% endfor %}")
    assert (
        run("--template", str(path), "--template-kwarg", "word=yes", stdin=MESSAGES).stdout
        == "user: Say <|im_end|> (yes)\n"
    )


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("nothing", "<stdin>: neither a list of messages nor an object with a list as messages"),
        ({"messages": 3}, "<stdin>: neither a list of messages nor an object with a list as messages"),
        ([{"role": "wizard", "content": ""}], "wizard"),
    ],
)
def test_errors(stdin, message):
    result = run(stdin=stdin)
    assert result.exit_code == 1
    assert result.stderr.startswith("tokenweir: error: ")
    assert message in result.stderr


def test_broken_json_and_misuse():
    result = CliRunner().invoke(main, ["render"], input="[{")
    assert (result.exit_code, "<stdin>: not JSON: " in result.stderr) == (1, True)
    assert run("--template-kwarg", "word", stdin=MESSAGES).exit_code == 2
    result = CliRunner().invoke(main, ["render"], input="[" * 100_000)
    assert (result.exit_code, "<stdin>: not JSON: maximum recursion" in result.stderr) == (1, True)


def test_json_in_place_of_a_files_name():
    result = run(json.dumps(MESSAGES))
    assert result.exit_code == 2
    assert "MESSAGES is the name of a file, and JSON itself is read from stdin" in " ".join(result.stderr.split())
    assert "stdin" not in run("messages.json").stderr


@pytest.mark.parametrize("name", ["messages", "tools", "documents", "add_generation_prompt", "continue_final_message"])
def test_what_is_not_the_templates_own_variable(name):
    result = run("--template-kwarg", f"{name}=1", stdin=MESSAGES)
    assert (result.exit_code, f"{name} is not a variable of the template's own" in result.stderr) == (2, True)
