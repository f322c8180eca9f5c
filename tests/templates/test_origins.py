"""Origins of a prompt and their uses: the messages of ids, masks, and input that a template left out."""

from __future__ import annotations

import pickle

import pytest

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.prompt import Prompt

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}{% for c in m.tool_calls %}<call>{{ c.function|tojson }}</call>{% endfor %}<|im_end|>\n"
    "{% endfor %}"
)
CALL = {"type": "function", "function": {"name": "f", "arguments": {"città": 'a"b', "n": 1}}}
MESSAGES = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Yes", "reasoning": "hm", "tool_calls": [CALL]},
    {"role": "tool", "content": "1"},
    {"role": "assistant", "content": "Done"},
]


@pytest.fixture(scope="module")
def prompt():
    return ChatTemplate(CHATML).render(MESSAGES)


def written_by(prompt):
    return [(prompt.text[span.start : span.end], span.origin) for span in prompt.origins if span.origin != "template"]


def test_origins(prompt):
    assert written_by(prompt)[:8] == [
        ("user", "messages[0].role"),
        ("Hi", "messages[0].content"),
        ("assistant", "messages[1].role"),
        ("hm", "messages[1].reasoning"),
        ("Yes", "messages[1].content"),
        ('{"', "engine"),
        ("name", "messages[1].tool_calls[0].function.name (key)"),
        ('": "', "engine"),
    ]
    call = "messages[1].tool_calls[0].function.arguments"
    assert ('a\\"b', f"{call}.città") in written_by(prompt)
    assert ("1", f"{call}.n") in written_by(prompt)
    assert "".join(prompt.text[span.start : span.end] for span in prompt.origins) == prompt.text
    assert pickle.loads(pickle.dumps(prompt)).origins == prompt.origins


def test_the_ids_of_each_origin_have_its_text(prompt):
    tok = Tokenizer.default()
    ids, placed = prompt.encode(tok), prompt.origin_ids(tok)
    assert tuple(span for span, _, _ in placed) == prompt.origins
    assert {place for _, start, end in placed for place in range(start, end)} == set(range(len(ids)))
    for span, start, end in placed:
        assert prompt.text[span.start : span.end] in tok.decode(ids[start:end], skip_special_tokens=False)
        for shorter in (ids[start + 1 : end], ids[start : end - 1]):
            assert prompt.text[span.start : span.end] not in tok.decode(shorter, skip_special_tokens=False)


def test_an_id_of_two_origins_belongs_to_both():
    prompt = ChatTemplate("{% for m in messages %}a th{{ m.content }}{% endfor %}").render(
        [{"role": "user", "content": "e end"}]
    )
    placed = [(span.origin, start, end) for span, start, end in prompt.origin_ids(Tokenizer.default())]
    assert placed == [("template", 0, 2), ("messages[0].content", 1, 3)]
    assert prompt.roles == ("user",)
    assert Prompt("hello").origin_ids(Tokenizer.default()) == []


def test_left_out():
    source = "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}"
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi", "name": "Ann"}]
    assert ChatTemplate(source).render(messages).left_out == ("messages[0].content",)
    assert ChatTemplate(source).render(messages[1:]).left_out == ()


def test_message_indices(prompt):
    tok = Tokenizer.default()
    indices = prompt.message_indices(tok)
    ids = prompt.encode(tok)
    for number, message in enumerate(MESSAGES):
        assert message["content"] in tok.decode([i for i, at in zip(ids, indices, strict=True) if at == number])


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({}, ['hm</think>Yes<call>{"name": "f", "arguments": {"città": "a\\"b", "n": 1}}</call>', "Done"]),
        ({"thinking": False}, ['Yes<call>{"name": "f", "arguments": {"città": "a\\"b", "n": 1}}</call>', "Done"]),
        ({"thinking": False, "tool_calls": False}, ["Yes", "Done"]),
        ({"roles": ("tool",)}, ["1"]),
        ({"roles": ("tool",), "end_tokens": True}, ["1<|im_end|>"]),
    ],
)
def test_loss_mask(prompt, options, texts):
    tok = Tokenizer.default()
    ids = prompt.encode(tok)
    found, run = [], []
    for token_id, one in [*zip(ids, prompt.loss_mask(tok, **options), strict=True), (0, 0)]:
        if one:
            run.append(token_id)
        elif run:
            found.append(tok.decode(run, skip_special_tokens=False))
            run = []
    assert found == texts
