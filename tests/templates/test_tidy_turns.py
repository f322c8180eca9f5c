"""Turns of a tidied history: the system's messages anywhere, developers, thinking beside calls, empty lists of calls."""

import pytest
from histories import ASKED, WRITES_ARGUMENTS, call, result, said, templates, tidied

from tokenweir import ChatTemplate, TemplateError

SYSTEM = {"role": "system", "content": "FIRST"}
LATER = {"role": "system", "content": "LATER"}
TURNS = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
ONE_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('System first') }}{% endif %}"
    "{{ m.role }}:{{ m.content }};{% endfor %}"
)


def with_system():
    """The templates that write a system's message, by name."""
    for name, template in templates().items():
        try:
            if "FIRST" in tidied(template, SYSTEM, ASKED).text:
                yield name, template
        except TemplateError:
            continue


def test_no_system_message_is_lost_or_refused_wherever_it_stands():
    histories = [
        [SYSTEM, LATER, ASKED],
        [SYSTEM, ASKED, LATER],
        [SYSTEM, ASKED, said("Ok."), LATER, ASKED],
        [SYSTEM, ASKED, LATER, said("Ok."), ASKED],
        [SYSTEM, {"role": "developer", "content": "LATER"}, ASKED],
        [{"role": "developer", "content": "LATER"}, ASKED],
    ]
    found = list(with_system())
    assert len(found) > 45
    for name, template in found:
        for history in histories:
            assert "LATER" in tidied(template, *history).text, (name, history)


@pytest.mark.parametrize(
    ("messages", "written"),
    [
        ([SYSTEM, LATER, ASKED], "system:FIRST\n\nLATER;user:Weather?;"),
        ([SYSTEM, ASKED, LATER], "system:FIRST;user:Weather?\n\nLATER;"),
        ([ASKED, said("Ok."), LATER, ASKED], "user:Weather?;assistant:Ok.;user:LATER\n\nWeather?;"),
        ([ASKED, said("Ok."), LATER, SYSTEM], "user:Weather?;assistant:Ok.;user:LATER\n\nFIRST;"),
        ([ASKED, said("Ok."), LATER, said("So.")], "user:Weather?;assistant:Ok.;user:LATER;assistant:So.;"),
        ([ASKED, {"role": "system", "content": ""}, ASKED], "user:Weather?;user:Weather?;"),
    ],
)
def test_texts_of_later_system_messages_join_the_turns_beside_them(messages, written):
    assert ChatTemplate(ONE_SYSTEM).render(messages, tidy=True).text == written


def test_system_messages_join_in_parts_where_the_template_takes_parts():
    refuses = "{% if m.role == 'system' and not loop.first %}{{ raise_exception('System first') }}{% endif %}"
    write = "{% for part in m.content %}({{ part.text or part.type }}){% endfor %}"
    template = ChatTemplate("{% for m in messages %}" + refuses + write + ";{% endfor %}")
    media = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "?"}]}
    said_in_parts = {"role": "assistant", "content": [{"type": "text", "text": "Ok."}]}
    written = template.render([SYSTEM, LATER, ASKED, said_in_parts, LATER, media], tidy=True).text
    blank = "(\n\n)"
    assert written == f"(FIRST){blank}(LATER);(Weather?);(Ok.);(LATER){blank}(image)(?);"


def test_system_messages_stay_where_the_template_writes_them():
    messages = [SYSTEM, LATER, ASKED, said("Ok."), LATER, ASKED]
    template = ChatTemplate(TURNS)
    assert template.render(messages, tidy=True) == template.render(messages)


def test_what_the_system_says_keeps_its_origin():
    prompt = ChatTemplate(ONE_SYSTEM).render([SYSTEM, ASKED, LATER], tidy=True)
    assert [span.origin for span in prompt.origins if "content" in span.origin] == [
        *("messages[0].content", "messages[1].content", "messages[2].content")
    ]


def test_every_template_takes_thinking_and_a_content_beside_a_call():
    for name, template in templates().items():
        thinking = {"reasoning_content": "THOUGHT"}
        try:
            tidied(template, ASKED, said("", call({"city": "Bern"}), **thinking), result())
        except TemplateError:
            continue
        tidied(template, ASKED, said("SAID", call({"city": "Bern"}), **thinking), result()), name


def test_a_content_joins_the_thinking_where_both_are_refused_beside_calls():
    source = (
        "{% for m in messages %}{% if m.tool_calls and m.content and m.thinking %}{{ raise_exception('both') }}{% endif %}"
        "({{ m.thinking }}|{{ m.content }}{{ m.tool_calls and m.tool_calls[0].function.name or '' }}){% endfor %}"
    )
    messages = [ASKED, said("SAID", call({}), reasoning_content="THOUGHT"), result()]
    prompt = ChatTemplate(source).render(messages, tidy=True)
    assert prompt.text == "(|Weather?)(THOUGHT\n\nSAID|get_weather)(|RES)"


def test_an_empty_list_of_calls_is_none():
    for name, template in templates().items():
        try:
            expected = template.render([ASKED, said("Ok."), ASKED], tidy=True)
        except TemplateError:
            continue
        assert template.render([ASKED, said("Ok.", tool_calls=[]), ASKED], tidy=True) == expected, name


@pytest.mark.parametrize("depth", [70, 400, 5000])
def test_arguments_that_are_too_deep_are_left_out(depth):
    arguments = '{"a": ' + "[" * depth + "]" * depth + "}"
    prompt = ChatTemplate(WRITES_ARGUMENTS).render([ASKED, said("", call(arguments))], tidy=True)
    assert prompt.text == ""
    assert "messages[1].tool_calls[0].function.arguments" in prompt.left_out


def test_earlier_calls_get_their_own_message_also_where_the_last_one_is_continued():
    source = (
        "{% for m in messages %}{% if m.tool_calls and m.content is none %}[{{ m.tool_calls[0].function.name }}]"
        "{% else %}{{ m.content }}{% endif %};{% endfor %}"
    )
    messages = [ASKED, said("SAID", call({})), result(), said("So")]
    template = ChatTemplate(source)
    assert template.render(messages, tidy=True).text == "Weather?;SAID;[get_weather];RES;So;"
    continued = template.render(messages, tidy=True, continue_final_message=True).text
    assert continued == "Weather?;SAID;[get_weather];RES;So"
