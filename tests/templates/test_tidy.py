"""Histories as clients send them: `tidy=True` brings them into the form that a template takes, and loses nothing silently."""

import json

import pytest
from case_tables import cases
from histories import ASKED, TOOL, WRITES_ARGUMENTS, call, result, said, templates, tidied, with_calls
from hypothesis import given
from hypothesis import strategies as st

from tokenweir import ChatTemplate, TemplateError, Tokenizer
from tokenweir.templates.messages import Messages

CASES = cases(__file__)


def test_most_templates_take_calls():
    assert len(with_calls()) > 45


# --- arguments --------------------------------------------------------------------------------------------------------

BROKEN = ['{"city": "Be', "", None, "null", " \n", "[1]", "city=Bern", '{"city": "Bern"} now', '"x"', "5", [1], 5, "{"]
TEXT = "{{ 'a' + messages[-1].tool_calls[0].function.arguments }}"


def test_every_template_takes_broken_arguments():
    for name, template in with_calls().items():
        empty = tidied(template, ASKED, said("", call({})), result()).text
        for arguments in BROKEN:
            for content in ("", "I look."):
                text = tidied(template, ASKED, said(content, call(arguments)), result()).text
                assert "RES" in text, (name, arguments)
            if arguments in ("", None, "null", " \n"):
                assert tidied(template, ASKED, said("", call(arguments)), result()).text == empty, (name, arguments)
        bare = {"id": "callAAAAA", "type": "function", "function": {"name": "get_weather"}}
        assert tidied(template, ASKED, said("", bare), result()).text == empty, name


ENCODED_TWICE = [
    (json.dumps({"city": 'B "x"\n', "n": 1}), 'city="B \\"x\\"\\n";n=1;', False),
    ('{"city": "Bern", "day": "M', 'city="Bern";', True),
    (" null", "", False),
    ("Bern", "", True),
    (json.dumps(json.dumps({"a": 1})), "", True),  # three times
    (r'{"a": "\ud800"}', 'a="\ufffd";', True),
]
TWICE = [(json.dumps(json.dumps(arguments)), saved, is_lost) for arguments, saved, is_lost in ENCODED_TWICE]
CUT = [(json.dumps(arguments), "", True) for arguments in (r'"{\"a\": 1}', r'"\ud800"')]


@pytest.mark.parametrize(("arguments", "saved", "is_lost"), [*CASES["saved_members"], *TWICE, *CUT])
def test_the_members_that_are_complete_are_kept_and_a_loss_is_told(arguments, saved, is_lost):
    prompt = ChatTemplate(WRITES_ARGUMENTS).render([ASKED, said("", call(json.loads(arguments)))], tidy=True)
    path = "messages[1].tool_calls[0].function.arguments"
    assert prompt.text == saved
    assert (path in prompt.left_out) == is_lost
    assert prompt.rendering.mended == ((path,) if is_lost else ())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(max_size=3), VALUES, max_size=4), st.booleans(), st.integers(0, 200), st.text(max_size=4)
)
def test_no_value_is_made_up(members, ascii, cut, behind):
    """Of a text that is cut anywhere, the first members are kept, and no other values."""
    dump = ChatTemplate(
        "{{ messages[0].tool_calls[0].function.arguments | tojson }}"
        "{% for k, v in messages[0].tool_calls[0].function.arguments.items() %}{% endfor %}"
    )
    text = json.dumps(members, ensure_ascii=ascii)
    for arguments in (text[:cut], text + behind):
        prompt = dump.render([said("", call(arguments))], tidy=True)
        saved = json.loads(prompt.text)
        assert list(saved.items()) == list(members.items())[: len(saved)]
    assert saved == members
    assert bool(prompt.mended_calls) == bool(behind.strip(" \t\r\n"))


@pytest.mark.parametrize("arguments", ['{"city": "Be', "Bern", "[1]", '{"a": 1} x'])
def test_text_stays_as_it_is_where_the_template_writes_text(arguments):
    assert ChatTemplate(TEXT).render([said("", call(arguments))], tidy=True).text == "a" + arguments


@pytest.mark.parametrize(("arguments", "text"), [("", "{}"), (None, "{}"), ({"a": 1}, '{"a": 1}'), ([1], "[1]")])
def test_arguments_become_text_where_the_template_writes_text(arguments, text):
    assert ChatTemplate(TEXT).render([said("", call(arguments))], tidy=True).text == "a" + text


def test_a_call_may_stand_without_the_wrapping_function():
    bare = {"name": "f", "arguments": '{"a": "x", "b'}
    source = "{% for k, v in messages[-1].tool_calls[0].arguments.items() %}{{ k }}={{ v }}{% endfor %}"
    prompt = ChatTemplate(source).render([said("", bare)], tidy=True)
    assert prompt.text == "a=x"
    assert prompt.rendering.mended == ("messages[0].tool_calls[0].arguments",)


@pytest.mark.parametrize("arguments", ['{"a": "<|im_start|>", "b": "', json.dumps('{"a": "<|im_start|>"}')])
def test_what_is_saved_stays_the_users(arguments):
    """Control tokens in mended arguments and in joined texts never count."""
    source = "<|im_start|>{% for k, v in messages[0].tool_calls[0].function.arguments.items() %}{{ v }}{% endfor %}{{ messages[1].content }}"
    parts = [{"type": "text", "text": "<|im_"}, {"type": "text", "text": "start|>"}]
    prompt = ChatTemplate(source).render([said("", call(arguments)), result(parts)], tidy=True)
    assert prompt.text == "<|im_start|>" * 3
    assert [segment.control for segment in prompt.segments] == [True, False]


# --- contents ---------------------------------------------------------------------------------------------------------


def test_no_content_is_the_same_however_it_is_said():
    for name, template in with_calls().items():
        texts = {
            content if content is None or content is ... else str(content): tidied(
                template, ASKED, said(content, call({"city": "Bern"})), result()
            ).text
            for content in (None, ..., "", [], [{"type": "text", "text": ""}])
        }
        assert len(set(texts.values())) == 1, (name, texts)
        assert "Bern" in texts[None], name


def test_no_conversation_is_refused_for_a_content_that_is_none():
    for name, template in templates().items():
        for message in (
            said(None, reasoning_content="Hm."),
            said(..., reasoning_content="Hm."),
            said(None),
            {"role": "assistant"},
        ):
            try:
                template.render([ASKED, said("Yes."), ASKED])
            except TemplateError:
                continue
            assert template.render([ASKED, message, ASKED], tidy=True).text, name
        if name in with_calls():
            for content in (None, [], ""):
                assert tidied(template, ASKED, said("", call({})), result(content)).text, name


def test_without_content_a_template_gets_what_transformers_gives_it_where_it_takes_that():
    for name, template in with_calls().items():
        messages = [ASKED, said(..., call({"city": "Bern"})), result()]
        try:
            plain = template.render(messages, tools=[TOOL]).text
        except TemplateError:
            continue
        if "Bern" in plain:
            assert tidied(template, *messages).text == plain, name


def test_an_empty_turn_is_not_written_beside_calls():
    """R1's distillation of Qwen 32B writes the calls, and then the content if it is not None."""
    source = (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% for c in m.tool_calls or [] %}({{ c.function.name }}){% endfor %}"
        "{% if m['content'] is not none %}[{{ '' + m['content'] }}]{% endif %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    for content in ("", None, ..., []):
        assert ChatTemplate(source).render([ASKED, said(content, call({}))], tidy=True).text == "Weather?(get_weather)"
    assert ChatTemplate(source).render([said("Yes.", call({}))], tidy=True).text == "(get_weather)[Yes.]"


def test_the_content_of_a_result_may_be_a_list_of_texts():
    lists = (["RE", "S"], [{"type": "text", "text": "RE"}, {"type": "text", "text": "S"}], [{"text": "RES"}])
    for name, template in with_calls().items():
        expected = tidied(template, ASKED, said("", call({})), result()).text
        for content in lists:
            assert tidied(template, ASKED, said("", call({})), result(content)).text == expected, (name, content)


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_texts_are_joined_for_every_role(role):
    for name, template in templates().items():
        for before in ([], [ASKED]):
            texts = []
            parts = [[{"type": kind, "text": "Hello you"}] for kind in ("text", "input_text", "output_text")]
            for content in ("Hello you", ["Hello", " you"], *parts):
                try:
                    texts.append(template.render([*before, {"role": role, "content": content}], tidy=True).text)
                except TemplateError:
                    texts.append(None)
            assert len(set(texts)) == 1, name


PARTS = "{% for m in messages %}{% for part in m.content %}{{ part.image and 'I' or '(' + part.text + ')' }}{% endfor %};{% endfor %}"


def test_a_template_of_parts_gets_a_part_for_a_text_and_keeps_media():
    image = {"type": "image", "image": "x"}
    template = ChatTemplate(PARTS)
    assert template.render([ASKED], tidy=True).text == "(Weather?);"
    content = ["a", {"type": "text", "text": "b"}, image, "", {"type": "output_text", "text": "c"}]
    prompt = template.render([{"role": "user", "content": content}], tidy=True)
    assert prompt.text == "(ab)I(c);"
    assert [(place.message, place.part) for place in prompt.places] == [(0, 2)]


def test_media_where_a_template_takes_text_only_are_refused_by_place():
    source = "{% for m in messages %}{% if m.role == 'user' %}{% for part in m.content %}{{ part.text or 'I' }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
    image = {"type": "image", "image": "x"}
    assert ChatTemplate(source).render([{"role": "user", "content": [image]}], tidy=True).text == "I"
    with pytest.raises(TemplateError, match=r"^messages\[1\].content\[1\] is of type 'image', but this template takes"):
        ChatTemplate(source).render([said("", call({})), result(["a", image])], tidy=True)


def test_llamas_own_role_of_a_tool_is_taken_where_the_template_compares_it():
    llama = next(template for template in templates().values() if '"ipython"' in template.source)
    messages = [ASKED, said("", call({"city": "Bern"})), {"role": "ipython", "content": "RES"}]
    assert "RES" in llama.render(messages).text
    assert "RES" in llama.render([*messages[:2], {"role": "ipython", "content": ["RE", "S"]}], tidy=True).text
    with pytest.raises(TemplateError, match="role 'ipython' is not one of"):
        ChatTemplate("{{ messages[-1].content }}").render(messages)


def test_the_message_that_is_continued_is_joined_and_stays_one():
    template = ChatTemplate("{% for m in messages %}[{{ m.content }}{{ '!' if m.tool_calls }}{% endfor %}")
    for content in ("Yes, I", ["Yes,", " I"], [{"type": "text", "text": "Yes, I"}]):
        prompt = template.render([ASKED, said(content)], tidy=True, continue_final_message=True)
        assert prompt.text == "[Weather?[Yes, I"
    with pytest.raises(TemplateError, match="the last message has no 'content'"):
        template.render([ASKED, said(None)], tidy=True, continue_final_message=True)


# --- results ----------------------------------------------------------------------------------------------------------

BOTH = said("", call({"city": "Bern"}, "callAAAAA"), call({"city": "Oslo"}, "callBBBBB"))


def test_results_stand_in_the_order_of_their_calls_where_ids_are_not_written():
    found = 0
    for name, template in with_calls().items():
        later = [result("OSLO-RES", "callBBBBB"), result("BERN-RES", "callAAAAA")]
        try:
            ordered = tidied(template, ASKED, BOTH, *reversed(later)).text
        except TemplateError:
            continue  # one call a turn
        text = tidied(template, ASKED, BOTH, *later).text
        if "callBBBBB" in text:
            continue
        found += 1
        assert text == ordered, name
        assert text.index("BERN-RES") < text.index("OSLO-RES"), name
    assert found > 35


def test_results_are_ordered_where_ids_are_written_of_earlier_calls_alone():
    """Apriel writes the ids of calls unless they come last, and none of results."""
    template = ChatTemplate(
        "{% for m in messages %}{% set last = loop.last %}{% for c in m.tool_calls %}({{ c.function.name }}"
        "{% if not last %} {{ c.id }}{% endif %}){% endfor %}{{ m.content }};{% endfor %}"
    )
    later = [result("OSLO-RES", "callBBBBB"), result("BERN-RES", "callAAAAA")]
    assert tidied(template, ASKED, BOTH, *later).text == tidied(template, ASKED, BOTH, *reversed(later)).text


WRITTEN = (
    "{% for m in messages %}{% for c in m.tool_calls %}({{ c.function.name }}){% endfor %}{{ m.content }};{% endfor %}"
)


@pytest.mark.parametrize(("ids", "order"), CASES["only_results_of_one_message_are_ordered_and_equal_ones_stay"])
def test_only_results_of_one_message_are_ordered_and_equal_ones_stay(ids, order):
    calls = said("", *[call({}, each) for each in "abc"])
    given = [{"role": "user", "content": "."} if each == "." else result(each, each) for each in ids]
    text = ChatTemplate(WRITTEN).render([calls, *given], tidy=True).text
    assert text == "(get_weather)" * 3 + ";" + "".join(f"{each};" for each in order)


def test_nothing_is_ordered_where_the_template_writes_ids():
    source = "{% for m in messages %}{% for c in m.tool_calls %}({{ c.id }}){% endfor %}{{ m.tool_call_id }}{{ m.content }};{% endfor %}"
    text = ChatTemplate(source).render([BOTH, result("O", "callBBBBB"), result("B", "callAAAAA")], tidy=True).text
    assert text == "(callAAAAA)(callBBBBB);callBBBBBO;callAAAAAB;"


def test_results_without_calls_and_calls_without_results_stay():
    messages = [result("OLD", "gone"), ASKED, BOTH, ASKED]
    assert ChatTemplate(WRITTEN).render(messages, tidy=True).text == "OLD;Weather?;(get_weather)(get_weather);Weather?;"


def test_a_result_without_its_call_is_written_or_refused_by_its_place():
    """Gemma 4 would leave it out, and gpt-oss fails without a place."""
    refused = 0
    for name, template in with_calls().items():
        for place, messages in (
            (3, [ASKED, said("Yes."), ASKED, result("OLD", "gone"), said("No."), ASKED]),
            (0, [result("OLD", "gone"), ASKED]),
        ):
            try:
                assert "OLD" in tidied(template, *messages).text, name
            except TemplateError as error:
                told = f"messages[{place}].tool_call_id: no call before it has the id 'gone', and this template"
                assert str(error).startswith(told), name
                refused += 1
    assert 4 < refused < 20


def test_a_result_without_an_id_belongs_to_the_calls_before_it():
    for name, template in with_calls().items():
        nameless = result("RES")
        del nameless["tool_call_id"]
        messages = [ASKED, said("", call({"city": "BERN"})), nameless]
        try:
            text = template.render(messages, tools=[TOOL]).text
        except TemplateError:
            continue
        if "BERN" in text:
            assert tidied(template, *messages).text == text, name


def test_what_is_ordered_keeps_its_message():
    """Origins, ends, masks and places name the messages as they were given."""
    image = {"type": "image", "image": "x"}
    source = (
        "{% for m in messages %}{{ m.role }}:{% for c in m.tool_calls %}({{ c.function.name }}){% endfor %}"
        "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text or '<image>' }}{% endfor %}{% endif %};{% endfor %}"
    )
    messages = [BOTH, result([image], "callBBBBB"), result("B", "callAAAAA"), said("Done.")]
    prompt = ChatTemplate(source).render(messages, tidy=True)
    assert prompt.text == "assistant:(get_weather)(get_weather);tool:B;tool:<image>;assistant:Done.;"
    assert prompt.message_end(0) < prompt.message_end(2) < prompt.message_end(3)
    assert [place.message for place in prompt.places] == [1]
    assert prompt.roles == ("assistant", "tool", "tool", "assistant")


def test_masks_of_ordered_results_are_those_of_results_in_order():
    tokenizer = Tokenizer.default()
    template = ChatTemplate.from_tokenizer(tokenizer)
    results = [result("OSLO <|im_end|> x", "callBBBBB"), result(["BE", "RN"], "callAAAAA")]
    masks = []
    for messages in ([ASKED, BOTH, *results, said("Done.")], [ASKED, BOTH, *reversed(results), said("Done.")]):
        prompt = template.render(messages, tidy=True, add_generation_prompt=False)
        masks.append([prompt.loss_mask(tokenizer, roles) for roles in (("assistant",), ("tool",), ("user", "tool"))])
        masks[-1].append(prompt.encode(tokenizer))
    assert masks[0] == masks[1]


# --- ids --------------------------------------------------------------------------------------------------------------

LETTERS = (
    "{% for m in messages %}{% for c in m.tool_calls %}{% if c.id | length != 9 %}{{ raise_exception('nine letters') }}{% endif %}"
    "({{ c.id }}){% endfor %}{% if m.role == 'tool' %}{% if m.tool_call_id | length != 9 %}{{ raise_exception('nine letters') }}"
    "{% endif %}{{ m.tool_call_id }}{% endif %};{% endfor %}"
)
FOREIGN = [
    "call_x9Kf2LmQ7bTzR4vWc1NyH8aJ",
    "toolu_01A09q90qw90lq917835lq9",
    "functions.get_weather:0",
    "a",
    "wörld",
    "",
]


def ids(template, *messages):
    text = template.render(list(messages), tidy=True).text
    return [each for each in text.replace("(", "").replace(")", ";").split(";") if each]


def test_ids_become_nine_letters_where_the_template_wants_them():
    template = ChatTemplate(LETTERS)
    calls = said("", *[call({}, each) for each in (*FOREIGN, "goodgood1")])
    results = [result("x", each) for each in (*FOREIGN, "goodgood1", "of no call")]
    found = ids(template, calls, *results)
    called, answered = found[: len(calls["tool_calls"])], found[len(calls["tool_calls"]) :]
    assert called == answered[: len(called)]
    assert len(set(answered)) == len(answered)
    assert called[-1] == "goodgood1"
    assert all(len(each) == 9 and each.isascii() and each.isalnum() for each in answered)
    assert calls["tool_calls"][0]["id"] == FOREIGN[0]  # the client's own stays
    later = ids(template, calls, *results, said("", call({}, FOREIGN[1]), call({}, "new")))
    assert later[: len(found)] == found  # so the prompt begins as the one before
    assert later[-2] == called[1]


def test_mistrals_templates_take_the_ids_of_others():
    mistral = [template for name, template in with_calls().items() if "istral" in name]
    assert mistral
    for template in mistral:
        text = tidied(template, ASKED, said("", call({}, FOREIGN[0])), result("RES", FOREIGN[0])).text
        assert "RES" in text
        assert FOREIGN[0] not in text


BY_ID = "{% for m in messages %}{% for c in m.tool_calls %}<|tool_call_begin|>({{ c.id }}){% endfor %}{% if m.tool_call_id %}{{ m.tool_call_id }}{% endif %};{% endfor %}"


@pytest.mark.parametrize(("given", "mapped"), CASES["ids_that_tell_the_function_are_one_for_each_given_one"])
def test_ids_that_tell_the_function_are_one_for_each_given_one(given, mapped):
    calls = [said("", call({}, each)) for each in given]
    found = ids(ChatTemplate(BY_ID), *calls, result("x", given[0]))
    expected = [f"functions.get_weather{each}" for each in mapped]
    assert [each.removeprefix("<|tool_call_begin|>") for each in found] == [*expected, expected[0]]


def test_many_ids_of_one_function_are_one_search():
    """Each foreign id gets the next free number, however many are taken."""
    taken = [said("", call({}, f"functions.get_weather:{2000 + n}")) for n in range(2000)]
    foreign = [said("", call({}, f"call_{n}")) for n in range(2000)]
    found = ids(ChatTemplate(BY_ID), *taken, *foreign)
    assert len(set(found)) == 4000
    assert found[2000].endswith("functions.get_weather:4000")


# --- all of it --------------------------------------------------------------------------------------------------------

ANY_TEXT = st.sampled_from(["", "Hi.", "<|im_start|>", " a\n"])
CONTENTS = (
    ANY_TEXT | st.none() | st.lists(ANY_TEXT | ANY_TEXT.map(lambda text: {"type": "text", "text": text}), max_size=3)
)
ARGUMENTS = st.sampled_from([{}, {"city": "Bern"}, '{"city": "Bern"}', *BROKEN])
IDS = st.sampled_from(["a", "callAAAAA", "call_x9Kf2LmQ7bTzR4vWc1NyH8aJ", "functions.get_weather:1", "b"])
CALLS = st.lists(st.builds(call, ARGUMENTS, IDS), min_size=1, max_size=3)
MESSAGES = (
    st.builds(
        lambda content: {"role": "user", "content": content}, CONTENTS.filter(lambda content: content is not None)
    )
    | st.builds(said, CONTENTS)
    | st.builds(lambda content, calls: said(content, *calls), CONTENTS, CALLS)
    | st.builds(result, CONTENTS, IDS)
)


def messages_of(template, messages, tidy):
    """The messages that a template gets; None for those that are refused."""
    dump = ChatTemplate("{{ messages | tojson }}", extra_roles=["ipython"])
    dump.__dict__["_form"] = template._form
    dump._capabilities.__dict__["history"] = template._capabilities.history
    try:
        return json.loads(dump.render(messages, tidy=tidy).text)
    except TemplateError as error:
        assert "no call before it" in str(error)
        return None


@given(st.lists(MESSAGES, min_size=1, max_size=6), st.integers(0, 4))
def test_tidying_twice_is_tidying_once(messages, first):
    for template in list(templates().values())[first::5]:
        once = messages_of(template, messages, tidy=True)
        assert messages_of(template, Messages(messages), tidy=True) == once
        assert once is None or messages_of(template, once, tidy=True) == once


def outcome(template, messages, tidy):
    try:
        return template.render(messages, tidy=tidy)
    except TemplateError as error:
        return str(error)


@given(st.lists(MESSAGES, min_size=1, max_size=6), st.integers(0, 4))
def test_a_tidy_history_renders_as_without(messages, first):
    for template in list(templates().values())[first::5]:
        once = messages_of(template, messages, tidy=True)
        if once is None or any(each.get("content", "") is None or each == {"role": "assistant"} for each in once):
            continue  # without tidying None is dropped, as in transformers, and an empty message refused
        assert outcome(template, once, tidy=True) == outcome(template, once, tidy=False)


def test_an_honest_history_renders_as_without():
    for name, template in templates().items():
        for content in ("", "I look."):
            messages = [ASKED, said(content, call('{"city": "Bern"}')), result(), said("Fine."), ASKED]
            try:
                plain = template.render(messages, tools=[TOOL])
            except TemplateError:
                continue
            if "Bern" in plain.text:
                assert tidied(template, *messages) == plain, name
