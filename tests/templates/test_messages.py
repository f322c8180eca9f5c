"""Messages that are read once: the same values, renders and errors as those of the objects they were read from."""

from __future__ import annotations

import copy
import json
import re
from collections import UserDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pydantic
import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from random_conversations import conversations

from tokenweir.encode.errors import TemplateError, TextError
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.messages import ROLES, GrowingMessages, Messages

CASES = cases(__file__)

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"città": [1, 2.5, {"b": null}]}'}}
CONVERSATION = [
    {"role": "system", "content": "Be brief.\n"},
    {"role": "user", "content": [{"type": "text", "text": "é😀"}, {"type": "text", "text": 'a"b'}], "name": None},
    {"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": [CALL]},
    {"role": "tool", "content": "x" * 200, "tool_call_id": "c", "n": [2**70, True, -1.5e300]},
]
WRITTEN = "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ m|tojson }};{% endfor %}"
CONTENTS = "{% for m in messages %}{{ m.content }}{% endfor %}"
PARTS = "{% for m in messages %}{% for p in m.content %}{{ p.text if p is mapping else p }}|{% endfor %}{% endfor %}"


def as_json(messages):
    return json.dumps(messages, ensure_ascii=False).encode()


def test_a_sequence_of_messages():
    messages = Messages(CONVERSATION)
    assert isinstance(messages, Sequence)
    assert len(messages) == 4
    assert list(messages) == CONVERSATION
    assert messages[-1] == CONVERSATION[-1]
    assert messages[1:3] == CONVERSATION[1:3]
    assert messages[0] is not messages[0]
    with pytest.raises(IndexError):
        messages[4]
    assert list(Messages.from_json(as_json(CONVERSATION))) == CONVERSATION
    assert list(Messages([])) == list(Messages.from_json(b" [ ] ")) == []


def test_text_size():
    assert Messages([{"role": "user", "content": "é", "x": ["ab", 1, {"key": "c"}]}]).text_size == 4 + 2 + 2 + 1


@pytest.mark.parametrize("source", [WRITTEN, PARTS, CONTENTS])
def test_renders_are_those_of_the_objects(source):
    template = ChatTemplate(source)
    prompt = template.render(CONVERSATION)
    for messages in Messages(CONVERSATION), Messages.from_json(as_json(CONVERSATION)):
        for _ in range(2):
            again = template.render(messages)
            assert (again, again.origins, again.left_out) == (prompt, prompt.origins, prompt.left_out)


@given(conversations())
def test_random_conversations_render_alike(variables):
    messages = variables["messages"]
    template = ChatTemplate(WRITTEN)

    def outcome(given):
        try:
            prompt = template.render(given, tools=variables.get("tools"))
        except (TemplateError, TextError) as error:
            return str(error)
        return prompt.text, prompt.origins

    wanted = outcome(messages)
    assert outcome(Messages(messages)) == wanted
    assert outcome(Messages.from_json(as_json(messages))) == wanted


def test_a_render_changes_no_messages():
    """Each template gets them in its own form."""
    messages = Messages(CONVERSATION)
    continued = [*CONVERSATION, {"role": "assistant", "content": "Yes", "tool_calls": [CALL]}]
    for _ in range(2):
        ChatTemplate(WRITTEN).render(messages, tidy=True)
        ChatTemplate(PARTS).render(messages)
        assert ChatTemplate(CONTENTS).render(Messages(continued), continue_final_message=True).text.endswith("Yes")
    assert list(messages) == CONVERSATION


def test_threads_share_messages():
    messages, template = Messages(CONVERSATION * 50), ChatTemplate(WRITTEN)
    alone = template.render(messages).text
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: template.render(messages).text, range(40))) == {alone}


def test_messages_outlive_what_they_were_read_from():
    data = as_json([{"role": "user", "content": "long " * 100}])
    objects = [{"role": "user", "content": "".join(["long "] * 100)}]
    read = Messages(objects), Messages.from_json(data)
    del data, objects
    assert {ChatTemplate("{{ messages[0].content }}").render(each).text for each in read} == {"long " * 100}


class Model(pydantic.BaseModel):
    role: str
    content: str | None = None
    tool_calls: list[dict] | None = None


def test_models_and_mappings():
    template = ChatTemplate(WRITTEN)
    assert (
        template.render([Model(role="user", content="Hi")]).text
        == template.render([UserDict(role="user", content="Hi")]).text
    )
    assert list(Messages([Model(role="user")])) == [{"role": "user", "content": None, "tool_calls": None}]


def test_tuples_are_kept():
    """As in transformers, where they print otherwise than lists."""
    assert ChatTemplate("{{ x }}").render([{"role": "user", "content": "Hi"}], x=(1, "a")).text == "(1, 'a')"


# -- messages that grow ------------------------------------------------------------------------------------------------


def containers(value):
    """All lists and dicts in a value, itself included."""
    if isinstance(value, dict | list):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)


def facts(messages):
    return list(messages), messages.digests, messages.text_digests, messages.text_chain(3)


def edit(messages, pick):
    """Change a list of messages, or something in it, as a user may."""
    kind = pick(st.sampled_from(["add", "add", "cut", "swap", "inside"]))
    if kind == "add":
        messages.append({"role": "user", "content": pick(st.text(max_size=80))})
    elif kind == "cut":
        del messages[pick(st.integers(0, len(messages))) :]
    elif kind == "swap" and messages:
        at = pick(st.integers(0, len(messages) - 1))
        messages[at] = copy.deepcopy(messages[at])
    elif inner := [each for message in messages for each in containers(message)]:
        found = pick(st.sampled_from(inner))
        if isinstance(found, list):
            found.append(1)
        elif key := pick(st.sampled_from(["new", *found])):
            found[key] = found.pop(key, None) if pick(st.booleans()) else "other"


@given(conversations(), st.data())
def test_grown_messages_are_those_that_are_read_at_once(variables, data):
    messages = [message for message in variables["messages"] if isinstance(message, dict)]
    grown = GrowingMessages()
    for _ in range(6):
        try:
            wanted = facts(Messages(messages))
        except (TemplateError, TextError) as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                grown.read(messages)
            wanted = facts(Messages([]))
        else:
            grown.read(messages)
        assert facts(grown) == wanted
        edit(messages, data.draw)


def test_a_render_of_grown_messages_has_their_origins():
    grown, template = GrowingMessages(), ChatTemplate(WRITTEN)
    for size in range(1, len(CONVERSATION) + 1):
        grown.read(CONVERSATION[:size])
        prompt = template.render(CONVERSATION[:size])
        again = template.render(grown)
        assert (again, again.origins, again.left_out) == (prompt, prompt.origins, prompt.left_out)


def test_equal_nesting_is_not_the_same_nesting():
    """The objects come in the same order in both."""
    inner, end = ["a"], "b"
    messages = [{"role": "user", "content": [inner, end]}]
    grown = GrowingMessages()
    grown.read(messages)
    messages[0]["content"].remove(end)
    inner.append(end)
    grown.read(messages)
    assert list(grown) == [{"role": "user", "content": [["a", "b"]]}]


def test_models_are_read_each_time():
    model = Model(role="user", content="a")
    grown = GrowingMessages()
    for content in "ab":
        model.content = content
        grown.read([model])
        assert grown[0]["content"] == content


def test_a_failed_read_leaves_no_messages():
    grown = GrowingMessages()
    grown.read(CONVERSATION)
    with pytest.raises(TemplateError, match=r"messages\[4\]"):
        grown.read([*CONVERSATION, 1])
    assert len(grown) == 0
    grown.read(tuple(CONVERSATION))
    assert list(grown) == CONVERSATION
    with pytest.raises(TemplateError, match="messages"):
        grown.read("text")


def test_grown_messages_outlive_what_they_were_read_from():
    grown = GrowingMessages()
    for size in range(20):
        grown.read([{"role": "user", "content": "".join(["long "] * (100 + size))}])
    assert grown[0]["content"] == "long " * 119


# -- digests -----------------------------------------------------------------------------------------------------------


def digest(message):
    (one,) = Messages([message]).digests
    return one


def test_digests_tell_messages_apart():
    values = list(map(json.loads, CASES["told_apart"]))
    values += [["a", "b"], ["ab"], [["a"], "b"], {"a": {"b": 1}}, {"a": 1, "b": 1}, {"b": 1, "a": 1}]
    digests = [digest({"role": "user", "content": value}) for value in values]
    assert len(set(digests)) == len(values)
    assert {len(one) for one in digests} == {16}


def test_equal_messages_have_one_digest():
    assert Messages(CONVERSATION).digests == Messages.from_json(as_json(CONVERSATION)).digests
    assert Messages(CONVERSATION * 2).digests == Messages(CONVERSATION).digests * 2


def text_digest(content, **fields):
    (one,) = Messages([{"role": "user", "content": content, **fields}]).text_digests
    return one


def test_text_digests_have_the_texts_of_messages_but_of_no_calls():
    assert Messages(CONVERSATION).text_digests == Messages.from_json(as_json(CONVERSATION)).text_digests
    parts = [[{"type": "text", "text": text}] for text in ("a", "b")]
    assert len({text_digest(each) for each in ("", "a", "b", "ab", "é", "a" * 5000, None, *parts)}) == 9
    assert text_digest(None) == text_digest(1), "neither is a text"
    assert text_digest("a", reasoning="b") != text_digest("a", reasoning="c")
    assert text_digest("a", tool_calls=[{"x": "b"}]) == text_digest("a", tool_calls=[{"x": "c"}])


@pytest.mark.parametrize(("place", "is_seen"), [(0, True), (63, True), (1000, False), (2563, True), (4999, True)])
def test_a_text_digest_has_samples_of_a_long_text(place, is_seen):
    text = "a" * 5000
    changed = text[:place] + "b" + text[place + 1 :]
    assert (text_digest(text) != text_digest(changed)) == is_seen
    assert text_digest(text) != text_digest(text + "a")


def test_a_chain_has_a_digest_of_each_beginning():
    messages = Messages(CONVERSATION)
    whole = messages.text_chain(-5)
    assert len(set(whole)) == len(CONVERSATION) + 1
    for size in range(len(CONVERSATION) + 1):
        assert Messages(CONVERSATION[:size]).text_chain(-5) == whole[: size + 1]
    assert set(messages.text_chain(5)).isdisjoint(whole), "what comes before the messages counts"
    assert messages.text_chain(-5) == whole, "a second one has the same digests of messages"
    assert Messages(CONVERSATION[:2]).text_chain(0)[-1] != Messages(CONVERSATION[1::-1]).text_chain(0)[-1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
def test_digests_are_equal_where_json_is(one, other):
    same = json.dumps(one) == json.dumps(other)
    assert (digest({"x": one}) == digest({"x": other})) == same


# -- strings of JSON ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("escape", ["\\n", '\\"', "\\\\", "\\u0041", "\\u00e9", "\\ud83d\\ude00"])
def test_an_escape_at_each_distance_from_the_ends_of_a_string(escape):
    sizes = [*range(36), 62, 63, 64, 65]
    texts = [f"{plain * before}{escape}{plain * after}" for plain in ("a", "é") for before in sizes for after in sizes]
    data = ('[{"content": ["' + '", "'.join(texts) + '"]}]').encode()
    assert list(Messages.from_json(data)) == json.loads(data)


def test_a_string_that_is_larger_than_a_block_of_memory():
    lines = "".join(f'\t{"é" if i % 3 else "e"}{i}: "a\\b" {"x" * (i % 90)}\n' for i in range(60_000))
    conversation = [{"role": "user", "content": text} for text in ("a\n", lines, '"b"' * 20_000, lines[:70_000], "\n")]
    data = json.dumps(conversation, ensure_ascii=False).encode()
    read = Messages.from_json(data)
    assert list(read) == conversation
    assert ChatTemplate(CONTENTS).render(read).text == "".join(message["content"] for message in conversation)


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON at byte 0: the text ends too early"),
        (b"{}", "messages must be a list, not dict: write [{"),
        (b"[5]", "messages[0] must be a mapping, not int: write {"),
        (b'[{"a": NaN}]', "not JSON at byte 7"),
        (b'[{"a": "\xff"}]', "not JSON at byte 8: the text is not UTF-8"),
        (b'[{"a": "' + b"a" * 40 + b"\xff" + b"a" * 40 + b'"}]', "the text is not UTF-8"),
        (b'[{"a": "\\n' + b"a" * 40 + b"\xff" + b"a" * 40 + b'"}]', "the text is not UTF-8"),
        (b'[{"a": "\\n' + b"a" * 40 + b"\x1f" + b"a" * 40 + b'"}]', "a control character in a string"),
        (b'[{"a": "\\n' + b"a" * 40, "a string is not closed"),
        (b'[{"a": "\\n' + b"a" * 40 + b"\\", "a string is not closed"),
        (b'[{"a": "\\n' + b"a" * 40 + b"\\u12", "an escape needs four hexadecimal digits"),
        (b'[{"a": "\\n' + b"a" * 40 + b'\\x"}]', "an unknown escape"),
        (b"[{}] []", "more than one value"),
        (b'[{"a": ' + b"[" * 64 + b"]" * 64 + b"}]", "is nested more than 64 levels deep"),
        (b'[{"a": ' + b"[" * 100_000, "nested"),
    ],
)
def test_json_that_is_refused(data, message):
    with pytest.raises(TemplateError) as raised:
        Messages.from_json(data)
    assert message in str(raised.value)


@pytest.mark.parametrize("data", [None, 5, "[]", bytearray(b"[]")])
def test_json_is_bytes(data):
    with pytest.raises(TypeError, match=f"^json must be bytes, not {type(data).__name__}$"):
        Messages.from_json(data)


def test_none_is_no_list():
    for read in Messages, ChatTemplate(WRITTEN).render:
        with pytest.raises(TemplateError, match=r"^messages must be a list, not NoneType: write \[{"):
            read(None)


def test_the_most_levels_are_read_from_both():
    nested: object = "x"
    for _ in range(63):
        nested = [nested]
    deep = [{"role": "user", "content": "", "x": nested}]
    assert list(Messages(deep)) == list(Messages.from_json(as_json(deep))) == deep
    for read in Messages, lambda messages: Messages.from_json(as_json(messages)):
        with pytest.raises(TemplateError, match=r"^messages\[0\]\.x\[0\].*is nested more than 64 levels deep$"):
            read([{"x": [nested]}])


def test_lone_surrogates_of_json():
    with pytest.raises(TextError, match=r"^messages\[0\]\.é has the lone surrogate U\+D83D at character 2$"):
        Messages.from_json('[{"é": "éa\\ud83dx"}]'.encode())
    with pytest.raises(TextError, match=r"^a key of messages\[0\] has the lone surrogate U\+DC00 at character 0$"):
        Messages.from_json(b'[{"\\udc00": 1}]')


def test_check():
    Messages(CONVERSATION).check(ROLES)
    with pytest.raises(TemplateError, match=r"^messages\[0\]: role 'system' is not one of user$"):
        Messages(CONVERSATION).check({"user"})


def test_zeros_in_an_error():
    with pytest.raises(TemplateError) as raised:
        ChatTemplate("{{ raise_exception('a\\0b') }}").render([{"role": "user", "content": "Hi"}])
    assert str(raised.value).endswith("a\0b")
    with pytest.raises(TemplateError, match="role 'a\\\\x00b' is not one of"):
        ChatTemplate("").render([{"role": "a\0b", "content": "Hi"}])
