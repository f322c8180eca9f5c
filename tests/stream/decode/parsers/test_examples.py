"""Answers and what becomes of them: tables of examples in `examples/`, a file a subject.

An example has the answer (`text`), the styles (`reasoning`, `tool_style`, or `messages`: "harmony", "muse" or "inkling"), the request's
`tools` by their name in `tools.toml`, and how the prompt ends: `inside` a thought, with the `opener` of a block, or with the text
`before` of a harmony message (false: no message). Expected are `thinking`, `answer`, `calls` (name, arguments, and how the call ended:
complete, open or malformed) and `why`, the reasons of what is malformed; each is empty if it is left out. A new example is a line
of a table, under a sentence that it shows.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from splitting import cut, run, told

from tokenweir.stream.decode.parsers.detection import Styles, make_splitter
from tokenweir.stream.decode.parsers.harmony import Harmony
from tokenweir.stream.decode.parsers.inkling import Inkling
from tokenweir.stream.decode.parsers.muse import Muse
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.tools import tool_style_of

EXAMPLES = {
    path.stem: tomllib.loads(path.read_text("utf-8")) for path in (Path(__file__).parent / "examples").glob("*.toml")
}
TOOLS = {name: json.loads(text) for name, text in EXAMPLES.pop("tools").items()}
RESULT = {"thinking": "", "answer": "", "calls": [], "why": []}


def splitter_of(example):
    tools = TOOLS[example["tools"]] if "tools" in example else []
    match example.get("messages"):
        case "harmony":
            before = example.get("before", "assistant")
            return Harmony(None if before is False else before, tools=tools)
        case "muse":
            return Muse(tools=tools)
        case "inkling":
            return Inkling(tools=tools)
    if "opener" in example:
        return ToolParser(example["tool_style"], tools, opener=example["opener"])
    reasoning, calls = example.get("reasoning"), example.get("tool_style")
    styles = Styles(reasoning and style_of(reasoning), calls and tool_style_of(calls))
    return make_splitter(styles, tools, inside=example.get("inside", False))


@pytest.mark.parametrize(
    ("subject", "sentence"), [(subject, sentence) for subject, table in EXAMPLES.items() for sentence in table]
)
def test_examples(subject, sentence):
    for example in EXAMPLES[subject][sentence]:
        text = example["text"]
        whole = run(splitter_of(example), [text])
        assert run(splitter_of(example), list(text)) == whole
        assert run(splitter_of(example), cut(text, range(0, len(text), 2))) == whole
        expected = {key: example.get(key, empty) for key, empty in RESULT.items()}
        assert told(whole) | {"calls": [list(call) for call in told(whole)["calls"]]} == expected, text
        if "theirs" in example:
            made = [[name, json.loads(arguments)] for name, arguments, _ in expected["calls"]]
            thinking, answer, calls = example["theirs"]
            theirs = [thinking, answer, [[name, json.loads(arguments)] for name, arguments in calls]]
            assert theirs != [expected["thinking"].strip(), expected["answer"].strip(), made]
