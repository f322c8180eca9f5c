"""`render`: the prompt of a conversation."""

from __future__ import annotations

import json
import sys

import commands
from chat_program import environment
from pseudo_terminal import PseudoTerminal

from tokenweir.encode.tokenizer import Tokenizer

MESSAGES = [{"role": "user", "content": "Say <|im_end|>"}]
TURN = "<|im_start|>user\nSay <|im_end|><|im_end|>\n"


def run(*args, stdin=None):
    return commands.run("render", *args, stdin=stdin if stdin is None else json.dumps(stdin))


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


ODD = "a\x1b[2J\nb"
ODD_MESSAGES = [{"role": "user", "content": ODD}, {"role": "user", "content": "\u202ec", "\x1b[1m": "key"}]


def test_history_thinking(tmp_path):
    messages = [*MESSAGES, {"role": "assistant", "content": "<think>hm</think>Hi"}, *MESSAGES]
    path = tmp_path / "t.jinja"
    path.write_text("{% for m in messages %}{{ m.content }}{% endfor %}<think>")

    def shown(*flags):
        prompt = json.loads(run("--json", "--template", str(path), *flags, stdin=messages).stdout)
        return [part["text"] for part in prompt["segments"]]

    segments = [shown(), shown("--history-thinking", "control"), shown("--history-thinking", "text")]
    assert segments[0] == segments[1]
    assert "<think>" in segments[0][:-1]
    assert "<think>" not in segments[2][:-1]


def test_origins_in_lines():
    lines = [line.split("\t") for line in run("--origins", stdin=ODD_MESSAGES).stdout.splitlines()]
    assert lines[1] == ["17", "24", "messages[0].content", "a␛[2J↵b"]
    assert lines[0][2] == "template" and lines[3] == ["52", "54", "messages[1].content", "\\u202ec"]
    assert [line[0] for line in lines[1:]] == [line[1] for line in lines[:-1]]


def test_origins_as_json():
    prompt = json.loads(run("--origins", "--json", stdin=ODD_MESSAGES).stdout)
    written = {span["origin"]: prompt["text"][span["start"] : span["end"]] for span in prompt["origins"]}
    assert written["messages[0].content"] == ODD
    assert "origins" not in json.loads(run("--json", stdin=ODD_MESSAGES).stdout)


def test_origins_in_colours(tmp_path):
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(ODD_MESSAGES))
    command = (sys.executable, "-m", "tokenweir", "render", "--origins", str(path))
    with PseudoTerminal(*command, env=environment(COLORTERM="truecolor", COLUMNS="200")) as screen:
        screen.expect("\x1b[2mtemplate\x1b[0m \x1b[30;48;2;207;232;255mmessages[0].content\x1b[0m")
        assert screen.end() == 0
    assert "\x1b[30;48;2;207;232;255ma␛[2J↵" in screen.shown
    assert "\x1b[2J" not in screen.shown and "\u202e" not in screen.shown
    with PseudoTerminal(*command, env=environment(NO_COLOR="1")) as screen:
        screen.expect("a␛")
        assert screen.end() == 0
    assert "\x1b" not in screen.shown and "17\t24\tmessages[0].content" in screen.shown


def test_what_the_template_left_out_is_told(tmp_path):
    path = tmp_path / "last.jinja"
    path.write_text("{{ messages[-1].content }}")
    system = {"role": "system", "content": "Be brief.", "x\x1b[2J": "key"}
    result = run("--template", str(path), stdin=[system, *MESSAGES])
    assert result.stdout == "Say <|im_end|>"
    assert result.stderr == 'tokenweir: the template left out messages[0].content, messages[0]["x␛[2J"]\n'
    many = run("--template", str(path), stdin=[system] * 6 + MESSAGES).stderr
    assert many.endswith('messages[4]["x␛[2J"] and 2 more\n')
    thinking = {"role": "assistant", "content": "x", "reasoning": "hm"}
    told = run("--template", str(path), stdin=[thinking, *MESSAGES]).stderr
    assert told == "tokenweir: the template left out messages[0].content, messages[0].reasoning\n"
    assert run(stdin=MESSAGES).stderr == ""


def test_a_history_is_tidied_as_by_the_server_if_that_is_asked_for(tmp_path):
    path = tmp_path / "calls.jinja"
    path.write_text(
        "{% for k, v in messages[-1].tool_calls[0].function.arguments.items() %}{{ k }}={{ v }}{% endfor %}"
    )
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"city": "Bern", "day": "Mo'}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    assert run("--template", str(path), stdin=messages).exit_code == 1
    tidied = run("--template", str(path), "--tidy", stdin=messages)
    assert tidied.stdout == "city=Bern"
    assert tidied.stderr == "tokenweir: the template left out messages[0].tool_calls[0].function.arguments\n"
