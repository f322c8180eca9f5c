"""The guard: control tokens count where all their bytes are the template's, or vouched for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.guard import control_texts

TOKENS = ["<|end|>", "<|user|>", "<think>", "</think>", "[X]"]


def guarded(source, messages, **options):
    """The characters of the text that are guarded, each with what follows."""
    render = {name: options.pop(name) for name in ("history_thinking",) if name in options}
    prompt = ChatTemplate(source, control_tokens=TOKENS, **options).render(messages, **render)
    return [prompt.text[offset : offset + 4] for offset in prompt.guarded]


def user(content, **more):
    return {"role": "user", "content": content, **more}


def test_control_texts():
    added = [
        AddedToken("<|end|>", special=True),
        AddedToken("<think>"),
        AddedToken("PAD", special=True),
        AddedToken("\n\n"),
        AddedToken("word2"),
        AddedToken("語"),
    ]
    assert control_texts(added) == ("<|end|>", "<think>", "PAD")


def test_a_token_of_a_users_is_guarded_and_the_templates_is_not():
    assert guarded("<|user|>{{ messages[0].content }}<|end|>", [user("a<|end|>[X]b")]) == ["<|en", "[X]b"]


@pytest.mark.parametrize(
    ("source", "content", "expected"),
    [
        ("<{{ messages[0].content }}>", "|end|", ["|end"]),  # MiniMax-M3 writes keys so
        ("<|{{ messages[0].content }}|>", "end", ["end|"]),
        ("<|e{{ messages[0].content }}", "nd|>", ["nd|>"]),
        ("{{ messages[0].content }}d|>", "<|en", ["<|en"]),
        ("{{ messages[0].content }}{{ messages[1].content }}", "<|e", ["<|en"]),
        ("{{ messages[0].content|replace('-', '') }}", "<|-end|>", ["<|en"]),
        ("{{ messages[0].content|lower }}", "<|END|>", ["<|en"]),
        ("{{ (messages[0].content|tojson)[1:-1] }}", "<|end|>", ["<|en"]),
        ("{{ messages[0].content.split('+')|join }}", "<|e+nd|>", ["<|en"]),
        ("{{ '%s|%s|>'|format(messages[0].content, 'end') }}", "<", ["<|en"]),
        ("{% macro m(x) %}<|{{ x }}|>{% endmacro %}{{ m(messages[0].content)|trim }}", "end", ["end|"]),
        ("{{ ['<|', messages[0].content, '|>']|join }}", "end", ["end|"]),
        ("{{ '<|end|>' if messages[0].content }}", "<|end|>", []),  # the template's own decision
        ("<|{{ 'end' }}|>", "", []),
        ("<|end{{ messages[0].content }}|>", "", []),
    ],
)
def test_operations_keep_origins(source, content, expected):
    assert guarded(source, [user(content), user("nd|>")]) == expected


def test_roles_and_special_tokens_are_vouched_for():
    assert (
        guarded("<|{{ messages[0].role }}|>{{ eos_token }}", [user("x")], special_tokens={"eos_token": "<|end|>"}) == []
    )


def test_a_role_elsewhere_is_no_role():
    assert guarded("{{ messages[0].x.role }}", [user("x", x={"role": "<|end|>"})]) == ["<|en"]


def test_numbers_of_the_engine_are_not_vouched_for():
    prompt = ChatTemplate("<|{{ 1 + 1 }}|>", control_tokens=["<|2|>"]).render([user("x")])
    assert prompt.guarded == (2,)


def test_thinking_tags_in_an_assistants_content():
    source = "{% for m in messages %}{{ m.content }}{{ '</think>' in m.content and '' }}{% endfor %}<think>"
    messages = [user("<think>"), {"role": "assistant", "content": "<think>a</think>[X]"}]
    prompt = ChatTemplate(source, control_tokens=TOKENS).render(messages)
    assert [prompt.text[i : i + 3] for i in prompt.guarded] == ["<th", "[X]"]
    prompt = ChatTemplate(source, control_tokens=TOKENS).render(messages, history_thinking="text")
    assert [prompt.text[i : i + 3] for i in prompt.guarded] == ["<th", "<th", "</t", "[X]"]


def test_a_tokenizers_own_control_tokens():
    tok = Tokenizer.default().with_added_tokens([AddedToken("{odd}", special=True)])
    prompt = ChatTemplate("{odd}{{ messages[0].content }}").render([user("{odd}")])
    assert [i for i in prompt.encode(tok) if i == tok.token_to_id("{odd}")] == [tok.token_to_id("{odd}")]


@given(
    st.lists(st.text("<[|ab£", min_size=1, max_size=4), min_size=1, max_size=6),
    st.lists(st.text("<[|ab£", max_size=30), min_size=1, max_size=3),
    st.sampled_from(["", "cdefghijk"]),  # with more first bytes than are compared at once
)
def test_each_occurrence_of_a_token_in_user_text_is_found(tokens, texts, more):
    messages = [{"role": "user", "content": text} for text in texts]
    template = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}", control_tokens=[*tokens, *more])
    prompt = template.render(messages)
    wanted = {at for at in range(len(prompt.text)) for token in (*tokens, *more) if prompt.text.startswith(token, at)}
    assert prompt.guarded == tuple(sorted(wanted))
