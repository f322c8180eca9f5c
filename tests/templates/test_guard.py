"""The guard: control tokens count where all their bytes are the template's, or vouched for."""

from __future__ import annotations

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.guard import control_texts

CASES = cases(__file__)

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


@pytest.mark.parametrize(("source", "content", "expected"), CASES["operations"])
def test_operations_keep_origins(source, content, expected):
    assert guarded(source, [user(content), user("nd|>")]) == expected


def test_roles_and_special_tokens_are_vouched_for():
    assert (
        guarded("<|{{ messages[0].role }}|>{{ eos_token }}", [user("x")], special_tokens={"eos_token": "<|end|>"}) == []
    )


def test_text_in_another_form_than_it_came_in_stays_the_users():
    parts = [{"type": "text", "text": text} for text in ("a<|end|>", "[X]b")]
    assert guarded("<|user|>{{ messages[0].content }}", [user(parts)]) == ["<|en", "[X]b"]
    assert guarded("{{ messages[0].reasoning_content }}", [user("", thinking="<|end|>")]) == ["<|en"]


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


# -- what an earlier prompt has in common ------------------------------------------------------------------------------

DEFAULT = Tokenizer.default()
PLAIN = ChatTemplate(
    "{% for m in messages %}{{ m.role }}{{ m.content }}<|im_end|>{% endfor %}", extra_roles=["<|im_end|>", "<think>"]
)
LONG = "é word " * 10  # longer than each control token
PIECES = st.sampled_from(["<|im_", "end|>", "<|im_end|>", "<think>", "</think", "<", ">", LONG])
ROLES = st.sampled_from(["user", "assistant", "<|im_end|>", "<think>"])


def guarded_after(template, messages, earlier, **options):
    """The guarded characters of a prompt that is searched with the help of an earlier one, and the two texts."""
    before = template.render_for(DEFAULT, earlier, **options)
    prompt = template.render_for(DEFAULT, messages, before, **options)
    return prompt.guarded_for(DEFAULT), prompt.text, before.text


@given(st.lists(st.tuples(ROLES, st.lists(PIECES, max_size=6)), min_size=1, max_size=5), st.data())
def test_a_search_resumed_finds_what_a_whole_one_finds(turns, data):
    def messages():
        return [{"role": role, "content": "".join(pieces)} for role, pieces in turns]

    earlier = messages()
    at = data.draw(st.integers(0, len(turns) - 1))
    role, pieces = turns[at]
    place = data.draw(st.integers(0, len(pieces)))
    turns[at] = (data.draw(st.just(role) | ROLES), [*pieces[:place], data.draw(PIECES), *pieces[place:]])
    for now, then in (messages(), earlier), (earlier, messages()), (earlier, earlier):
        wanted = PLAIN.render_for(DEFAULT, now).guarded_for(DEFAULT)
        assert guarded_after(PLAIN, now, then)[0] == wanted


def test_a_token_that_the_template_begins_is_found_at_each_distance_from_a_difference():
    template = ChatTemplate("{{ messages[0].role }}<|im_{{ messages[0].content }}")
    for distance in range(60):
        here, there = (user("end|>" + "é" * distance + letter) for letter in "ab")
        assert guarded_after(template, [here], [there])[0] == (9,)


def test_equal_text_of_another_writer_is_searched_again():
    by_user, by_role = [user("<|im_end|>" + LONG)], [user(""), {"role": "<|im_end|>", "content": LONG}]
    roles = ChatTemplate("{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}", extra_roles=["<|im_end|>"])
    asked, answered = [user("<think>" + LONG)], [{"role": "assistant", "content": "<think>" + LONG}]
    tags = ChatTemplate("{{ messages[0].content }}{{ messages[0].content.split('<think>')[2:] }}")
    for template, guarded, free, place in (roles, by_user, by_role, 4), (tags, asked, answered, 0):
        found, text, before = guarded_after(template, guarded, free)
        assert (found, text) == ((place,), before)
        found, text, before = guarded_after(template, free, guarded)
        assert (found, text) == ((), before)


def test_a_prompt_for_another_search_is_of_no_use():
    template = ChatTemplate("{{ messages[0].content }}{{ messages[0].content.split('<think>')[2:] }}")
    messages = [{"role": "assistant", "content": "<think>" + LONG}]
    for earlier in template.render_for(DEFAULT, messages, history_thinking="text"), template.render(messages):
        assert template.render_for(DEFAULT, messages, earlier).guarded_for(DEFAULT) == ()
