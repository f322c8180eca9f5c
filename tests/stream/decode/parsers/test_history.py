"""Calls that a model's own template writes as history come back as they were, however the text is cut."""

from __future__ import annotations

import json
from functools import cache

import pytest
from case_tables import cases
from common_prefix import common_length
from full_run import EXAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st
from splitting import cut, run, told

from tokenweir import ChatTemplate, Tokenizer
from tokenweir.encode.errors import TemplateError
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.parsers.detection import find_splitter
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.tools import tool_style_of

CASES = cases(__file__)

TEMPLATES = CASES["templates"]
"""Those of the data that write calls in the form that their models write."""

TEXT = st.text(st.sampled_from("ab \"'\\{}[]:,=é🙂"), min_size=1).map(lambda text: f"x{text}x")  # templates trim
VALUES = {
    "string": TEXT,
    "integer": st.integers(-(10**12), 10**12),
    "number": st.floats(-1e6, 1e6, allow_nan=False).filter(lambda number: not number or abs(number) > 1e-3),
    "boolean": st.booleans(),
    "array": st.lists(TEXT | st.integers(0, 99), min_size=1, max_size=3),
    "object": st.dictionaries(st.text("kl", min_size=1, max_size=3), TEXT | st.booleans(), min_size=1, max_size=3),
}
KINDS = st.dictionaries(st.sampled_from(["at", "of", "wet", "plan"]), st.sampled_from(list(VALUES)), min_size=1)
QUESTION = {"role": "user", "content": "Hi"}


@cache
def read(path):
    """A template, and the embedded vocabulary with its control tokens."""
    template = ChatTemplate.from_file(path, special_tokens={"bos_token": "<s>", "eos_token": "</s>"})
    tok = Tokenizer.default()
    new = [token for token in template.control_tokens if tok.token_to_id(token) is None]
    return template, tok.with_added_tokens([AddedToken(token, special=True) for token in new]) if new else tok


def history(template, arguments, tools):
    """A prompt that ends where an answer begins, and the answer with a call, as the template writes it."""
    texts = []
    for given_as in (arguments, json.dumps(arguments)):
        for content in ("", None):
            call = {"id": "abcdefghi", "type": "function", "function": {"name": "look", "arguments": given_as}}
            turn = {"role": "assistant", "content": content, "tool_calls": [call]}
            try:
                before = template.render([QUESTION], tools=tools).text
                texts.append((before, template.render([QUESTION, turn], tools=tools, add_generation_prompt=False).text))
            except TemplateError:
                continue
    # Templates that take text as arguments write an object as Python does, or not at all.
    before, text = next((pair for pair in texts if "look" in pair[1][common_length(pair) - 12 :]), texts[0])
    place = common_length((before, text))
    tag = text.rfind("<", max(0, place - 12), place)
    place = tag if tag >= 0 and ">" not in text[tag:place] else place
    return text[:place], text[place:]


@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=-(-EXAMPLES // 10))  # of each template
@given(drawn=st.data())
def test_calls_of_the_history_come_back(drawn, name, data):
    template, tok = read(data(f"{name}.jinja"))
    kinds = drawn.draw(KINDS)
    arguments = {key: drawn.draw(VALUES[kind]) for key, kind in kinds.items()}
    properties = {key: {"type": kind, "description": "d"} for key, kind in kinds.items()}
    parameters = {"type": "object", "properties": properties, "required": []}
    tools = [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": parameters}}]
    prompt, text = history(template, arguments, tools)

    def split(parts):
        splitter, _ = find_splitter(
            tok,
            tok.encode(prompt, add_special_tokens=False),
            style_of(template.reasoning) if template.reasoning else None,
            tool_style_of(template.tool_style),
            tools,
        )
        return run(splitter, parts)

    whole = split([text])
    ((called, written, end),) = told(whole)["calls"]
    assert (called, json.loads(written), end) == ("look", arguments, "complete")
    assert split(cut(text, drawn.draw(st.lists(st.integers(0, 9999), max_size=6)))) == whole
    for called, written, end in told(split([text[: drawn.draw(st.integers(0, len(text)))]]))["calls"]:
        assert called == "look"
        assert end != "complete" or json.loads(written) == arguments
