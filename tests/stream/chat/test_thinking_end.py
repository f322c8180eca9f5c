"""Ids that end the thinking: behind prompts of real templates, with every style."""

from __future__ import annotations

import pytest
from case_tables import cases

from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chat.thinking_end import ids_to_answer, ids_to_end_thinking
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import ReasoningDelta, TextDelta
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.styles.reasoning import STYLES

CASES = cases(__file__)

ASKED = [{"role": "user", "content": "q"}]
PLAIN = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")


def opening(tok, template, prompt, style=None):
    ids = ids_to_answer(tok, template, tok.encode(prompt))
    return tok.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize(("name", "expected"), CASES["prompts_of_real_templates"])
def test_prompts_of_real_templates(data, name, expected):
    template = ChatTemplate.from_file(data(f"{name}.jinja"))
    marks = dict.fromkeys(mark for name in ("harmony", "muse", "think") for mark in STYLES[name].tokens)
    tok = Tokenizer.default().with_added_tokens([mark for mark in marks if mark not in ("<think>", "</think>")])
    tok = tok if template.reasoning in ("harmony", "muse") else Tokenizer.default()
    prompt = template.render(ASKED).encode(tok)
    ids = ids_to_answer(tok, template, prompt)
    assert tok.decode(ids, skip_special_tokens=False) == expected
    deltas = ChatDecoder(tok, prompt_ids=[*prompt, *ids], reasoning=template.reasoning).feed(tok.encode('{"a": 1}'))
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == '{"a": 1}'


@pytest.mark.parametrize("name", STYLES)
def test_every_style_ends_its_thinking(make_tok, name):
    style = STYLES[name]
    tok = make_tok(*(AddedToken(mark, special=True) for mark in style.tokens))
    start = {"harmony": "<|start|>assistant", "muse": "<|start|>assistant", "inkling": "<|message_model|>"}.get(
        name, ""
    )
    prompt = tok.encode(start + style.openers[0])
    thought = [*prompt, *b"hm"]
    decoder = ChatDecoder(tok, prompt_ids=prompt, reasoning=style)
    deltas = decoder.feed([*b"hm", *ids_to_end_thinking(tok, PLAIN, style, thought), *b"answer"]) + decoder.finish()
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "hm"
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "answer"


def test_white_space_is_not_repeated(make_tok):
    tok = make_tok(AddedToken("<think>"), AddedToken("</think>"))
    template = ChatTemplate("{% for m in messages %}<think>\n{{ m.thinking }}\n</think>\n\n{{ m.content }}{% endfor %}")
    for before, expected in (("<think>\n", "</think>\n\n"), ("<think>\nhm", "\n</think>\n\n")):
        ids = ids_to_end_thinking(tok, template, STYLES["think"], tok.encode(before))
        assert tok.decode(ids) == expected
    assert ids_to_answer(tok, template, tok.encode("<think>\nhm\n</think>\n\n")) == []


@pytest.mark.parametrize(("prompt", "expected"), CASES["a_message_is_begun_where_a_header_is_open"])
def test_a_message_is_begun_where_a_header_is_open(make_tok, prompt, expected):
    tok = make_tok(*(AddedToken(mark, special=True) for mark in STYLES["harmony"].tokens), AddedToken("<|end|>"))
    template = ChatTemplate("{{ messages }}<|channel|>analysis<|message|><|end|><|start|>assistant")
    assert opening(tok, template, prompt) == expected


def test_inkling_begins_a_message_of_text(make_tok):
    tok = make_tok(*(AddedToken(mark, special=True) for mark in STYLES["inkling"].tokens))
    template = ChatTemplate("{{ messages }}<|message_model|><|content_thinking|><|content_text|>")
    assert opening(tok, template, "<|message_model|>") == "<|content_text|>"
