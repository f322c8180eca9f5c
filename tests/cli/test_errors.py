"""Refusals of commands: errors of one line, and misuse."""

from __future__ import annotations

import json
import shlex

import pytest
from commands import run

ERRORS = [
    ("decode 1 2x 3", None, "value 2, '2x', is not a token id"),
    ("decode 1 ٣", None, "value 2, '٣', is not a token id"),
    ("decode", '[1, 2, "3"]', "value 3, '3', is not a token id"),
    ("decode", "[1, true]", "value 2, True, is not a token id"),
    ("decode", "[1, 2", "the ids look like JSON but are not: Expecting ',' delimiter: line 1 column 6 (char 5)"),
    ("decode", "[" * 100_000, "the ids look like JSON but are not: maximum recursion"),
    ("decode", "9" * 1000, f"value 1, '{'9' * 59}, is not a token id"),
    ("decode", '{"tokens": [1]}', 'the JSON is neither a list nor an object with a list "ids"'),
    ("decode", b"1 \xff", "<stdin>: byte 0xff at offset 2 is not UTF-8 (invalid start byte)"),
    ("decode", "0 8192", "8192"),
    ("decode", "0 -1", "-1"),
    ("decode", f"0 {'9' * 19}", "9" * 19),
    ("encode", b"caf\xe9 au lait", "<stdin>: byte 0xe9 at offset 3 is not UTF-8 (invalid continuation byte)"),
    ("encode --lines", b"one\ntwo \xc3\n", "<stdin>: byte 0xc3 at offset 8 is not UTF-8"),
    ("encode 'lone \udc80'", None, "surrogate"),
    ("count", b"\xf0\x9f", "<stdin>: byte 0xf0 at offset 0 is not UTF-8 (unexpected end of data)"),
    ("count --tokenizer /nowhere/tokenizer.json x", None, "/nowhere/tokenizer.json: No such file"),
    ("count --tokenizer no/model x", None, "no/model: no such file or folder, and no/model is not in the hub's"),
    ("tokens --tokenizer /nowhere a", None, "/nowhere"),
    ("tokens --svg /nowhere/x.svg a", None, "No such file"),
    ("render", '"nothing"', "<stdin>: neither a list of messages nor an object with a list as messages"),
    ("render", '{"messages": 3}', "<stdin>: neither a list of messages nor an object with a list as messages"),
    ("render", '[{"role": "wizard", "content": ""}]', "wizard"),
    ("render", "[{", "<stdin>: not JSON: "),
    ("render", "[" * 100_000, "<stdin>: not JSON: maximum recursion"),
    ("chat --engine=ctranslate2:/nowhere", None, "/nowhere/vocabulary.json: not a CTranslate2 vocabulary: No such"),
    ("chat --engine=replay:/nowhere.json", None, "error: /nowhere.json: not a recording: No such file"),
    ("serve --workers=2 --engine=ngram --host=256.0.0.1", None, "256.0.0.1"),
]


@pytest.mark.parametrize(("line", "stdin", "message"), ERRORS)
def test_errors_are_one_line(line, stdin, message):
    result = run(*shlex.split(line), stdin=stdin)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("tokenweir: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


USER = json.dumps([{"role": "user", "content": "hi"}])
MISUSE = [
    ("encode -f - text", None, "give arguments or --file, not both"),
    ("decode -f - 1", None, "give arguments or --file, not both"),
    ("encode -f /nowhere", None, "No such file"),
    ("count --tokenizer /dev/zero hi", None, "/dev/zero is a device"),
    ("unheard-of", None, "No such command"),
    ("tokens --svg x.svg a b", None, "--svg draws one input, not 2"),
    ("render --template-kwarg word", USER, "--template-kwarg word: give NAME=JSON"),
    ("render --history-thinking no", USER, "'no' is not one of 'control', 'text'"),
    (f"render '{USER}'", None, "MESSAGES is the name of a file, and JSON itself is read from stdin"),
    *(
        (f"render --template-kwarg {name}=1", USER, f"{name} is not a variable of the template's own")
        for name in (
            *("messages", "tools", "documents", "add_generation_prompt", "continue_final_message"),
            *("history_thinking", "tidy"),
        )
    ),
    ("chat --engine=replay:nobody", None, "no recording is named 'nobody'"),
    ("chat --engine=oracle", None, "unknown engine 'oracle'"),
    ("chat --stop=", None, "the empty text would end every answer"),
    ("chat --tokenizer=x", None, "--tokenizer needs the --engine that speaks its ids"),
    ("chat --tokenizer=x --engine=ngram", None, "ngram speaks the embedded vocabulary only"),
    ("chat --tokenizer=x --engine=local", None, "local brings its own tokenizer"),
    ("chat --engine=ngram --once ' '", None, "--once has no message"),
    ("chat --engine=ngram --once -", "\n", "--once has no message"),
    ("serve --api-key ''", None, "--api-key must be ASCII and not empty"),
    ("serve --api-key clé", None, "--api-key must be ASCII and not empty"),
    ("serve --limit max_cost=3", None, "no limit 'max_cost'; there are max_output_tokens, "),
    ("serve --limit heartbeat=soon", None, "'soon' is not a valid number"),
    ("serve --limit max_items=1.5", None, "'1.5' is not a valid integer"),
    ("serve --limit max_connections=0", None, "max_connections=0 must be above 0"),
    (
        "serve --history=exact --no-prompt-cache",
        None,
        "--history exact needs the cache of prompts, which --no-prompt-c",
    ),
]


@pytest.mark.parametrize(("line", "stdin", "message"), MISUSE)
def test_misuse_is_exit_code_2(line, stdin, message):
    result = run(*shlex.split(line), stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())
