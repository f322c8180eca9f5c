"""A hostile answer costs time in proportion to its length, however it comes."""

from __future__ import annotations

import pytest
from case_tables import cases
from splitting import cut, run

from tokenweir.stream.decode.parsers.detection import Styles, make_splitter
from tokenweir.stream.decode.parsers.text_search import MAX_AT_ONCE, MAX_HEADER
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.templates.styles.reasoning import STYLES
from tokenweir.templates.styles.tools import TOOL_STYLES

CASES = cases(__file__)

GEMMA, GLM = "<|tool_call>call:f{", "<tool_call>f\n<arg_key>a</arg_key><arg_value>"


@pytest.mark.parametrize(("style", "begins", "goes_on"), CASES["what_is_looked_at_again_with_each_text_is_short"])
def test_what_is_looked_at_again_with_each_text_is_short(style, begins, goes_on):
    parser = ToolParser(style)
    parser.feed(begins)
    for _ in range(4 * MAX_HEADER):
        parser.feed(goes_on)
        looked_at_again = getattr(parser._block, "_unprocessed", "") + parser._unprocessed
        assert len(looked_at_again) <= MAX_HEADER


@pytest.mark.parametrize("thinking", [None, "think"])
@pytest.mark.parametrize(
    "unit", [">", "<tool_call>x", "<tool_call>{", 'So. <tool_call>{"name": "f", "arguments": {"a": "é>"}}</tool_call>']
)
def test_a_long_text_is_split_as_in_parts(thinking, unit):
    styles = Styles(thinking and STYLES[thinking], TOOL_STYLES["hermes"])
    text = unit * (3 * MAX_AT_ONCE // len(unit))
    whole = run(make_splitter(styles), [text])
    assert run(make_splitter(styles), cut(text, range(0, len(text), 1000))) == whole


@pytest.mark.parametrize(
    "unit", ["<tool_call>{", "\n<tool_call>\n{\n", '<tool_call>["<tool_call>[1', "<tool_call>f\n<"]
)
@pytest.mark.parametrize("style", ["hermes", "glm", "qwen3-coder"])
def test_mentions_in_the_thinking_are_read_a_few_times_only(unit, style, monkeypatch):
    read = []
    feed = ToolParser.feed_block
    monkeypatch.setattr(
        ToolParser, "feed_block", lambda self, text, out: read.append(len(text)) or feed(self, text, out)
    )
    text = unit * (3 * MAX_AT_ONCE // len(unit))
    splitter = make_splitter(Styles(STYLES["think"], TOOL_STYLES[style]), inside=True)
    splitter.feed(text)
    splitter.finish()
    assert sum(read) < 10 * len(text)
