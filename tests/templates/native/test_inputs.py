"""Values that a render takes, and those that it refuses by name; templates that threads share."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType

import pydantic
import pytest
from chat_conversations import CONVERSATIONS
from jinja_oracle import expected
from native_rendering import as_json, check_origins, outcome, rendered
from template_files import template_files

from tokenweir.encode.errors import TemplateError, TextError
from tokenweir.templates._native import Template

SHOWN = "{{ a }}|{{ a|tojson }}|{{ a is string }}{{ a is mapping }}{{ a is sequence }}{{ a is number }}|{{ [a] }}"
FILES = template_files()


class Text(str):
    pass


class Role(enum.StrEnum):
    USER = "user"


class Level(enum.IntEnum):
    LOW = 1


class Lazy(Mapping):
    """A mapping that makes its values when they are asked for."""

    def __init__(self, length):
        self.length = length

    def __getitem__(self, key):
        return f"value of {key}"

    def __iter__(self):
        return (f"k{n}" for n in range(self.length))

    def __len__(self):
        return self.length


class Message(pydantic.BaseModel):
    role: str
    content: str | None = None
    tool_calls: list[dict] | None = None


@pytest.mark.parametrize(
    "value",
    [
        "",
        "é😀\0\x7f",
        0,
        -1,
        2**63,
        -(2**200),
        True,
        None,
        0.0,
        -0.0,
        1e300,
        5e-324,
        float("inf"),
        float("-inf"),
        float("nan"),
        [],
        {},
        (),
        (1, "a", (None,)),
        [[["x"]], {"k": [1.5]}],
        {"": "", "é": 1, 'a"b': {}},
    ],
    ids=repr,
)
def test_values_of_json(value):
    reference = expected(SHOWN, {"a": value})
    assert outcome(SHOWN, {"a": value}).text == reference.text, reference.error


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Text("a"), "a"),
        (Role.USER, "user"),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (MappingProxyType({"k": ["v"]}), {"k": ["v"]}),
        (Lazy(3), {f"k{n}": f"value of k{n}" for n in range(3)}),
        (Message(role="user", content="x"), {"role": "user", "content": "x", "tool_calls": None}),
        ([Message(role="tool")], [{"role": "tool", "content": None, "tool_calls": None}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kinds_that_are_read_as_those_of_json(value, plain):
    assert outcome(SHOWN, {"a": value}).text == outcome(SHOWN, {"a": plain}).text is not None


@pytest.mark.parametrize(
    "value",
    [print, datetime(2026, 1, 1), b"x", {1, 2}, object(), Decimal(1), 1j, iter([]), len, Message],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_json_is_refused_by_place_and_type(value):
    name = type(value).__name__
    with pytest.raises(TemplateError, match=rf"messages\[1\]\.content\.x.*{name}"):
        Template("").render({"messages": [{}, {"content": {"x": value}}]})


@pytest.mark.parametrize("key", [1, None, b"x", (1,)])
def test_keys_are_text(key):
    with pytest.raises(TemplateError, match="messages.*key"):
        Template("").render({"messages": {key: "x"}})
    with pytest.raises(TemplateError):
        Template("").render({key: "x"})


@pytest.mark.parametrize("variables", [None, 5, "{}", [], [("a", 1)], object()])
def test_variables_are_a_mapping_or_bytes(variables):
    with pytest.raises((TemplateError, TypeError)):
        Template("").render(variables)


@pytest.mark.parametrize(
    "variables", [{"a": "x\ud800"}, {"a": {"\udfff": 1}}, {"\ud800": 1}, b'{"a": "\\ud800"}', b'{"\\udc00": 1}']
)
def test_lone_surrogates_are_refused(variables):
    with pytest.raises(TextError):
        Template("{{ a }}").render(variables)


def test_surrogate_pairs_of_json():
    assert Template("{{ a }}").render(b'{"a": "\\ud83d\\ude00\\uD83D\\uDE00"}').text == "😀😀"


def test_names_that_the_environment_has():
    """A variable of the caller's hides a function; one that is None too."""
    for variables in (
        {"range": 5, "dict": "d", "namespace": None, "raise_exception": "x"},
        {"loop": 1, "caller": 2, "varargs": 3},
    ):
        source = "".join(f"{{{{ {name} }}}}" for name in variables)
        assert outcome(source, variables).text == expected(source, variables).text
        assert outcome(source, as_json(variables)).text == expected(source, variables).text


def test_errors_of_the_caller_pass():
    class Broken(Lazy):
        def __getitem__(self, key):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Template("{{ a }}").render({"a": Broken(1)})


def test_threads_share_a_template():
    for name in list(FILES)[::9]:
        template = Template(FILES[name])
        cases = [given | {"add_generation_prompt": True} for given in CONVERSATIONS.values()]
        alone = [outcome(template, variables) for variables in cases]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda variables: outcome(template, variables), cases * 3)) == alone * 3  # noqa: B023


def test_input_that_is_dropped_while_threads_render():
    template = Template("{% for m in messages %}{{ m.content|upper }}{{ m.content }}{% endfor %}")

    def run(number):
        text = f"é{number}" * 1000
        variables = {"messages": [{"content": text + str(n)} for n in range(50)]}
        result = rendered(template, variables)
        check_origins(result, variables)
        del variables
        return result.text == "".join(f"{text + str(n)}".upper() + text + str(n) for n in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(40)))


@pytest.mark.parametrize("body", [b"[]", b'[{"role": "x"}]', b'[[{"messages": [{"role": "x"}]}]]', b'"x"', b"1"])
def test_the_json_of_variables_is_an_object(body):
    with pytest.raises(TemplateError, match="the JSON of variables must be an object, not a "):
        Template("{{ messages }}").render(body)


@pytest.mark.parametrize("ascii_only", [False, True])
def test_json_escapes_at_every_place(ascii_only):
    template = Template("{{ a|tojson(ensure_ascii=ascii_only) }}")
    for escaped in ['"', "\\", "\n", "\x00", "\x1f", "\x7f", "é", "\u2028", "🙂", " "]:
        for size in range(40):
            for text in (
                "x" * size + escaped,
                escaped + "x" * size,
                escaped * size,
                ("x" * size + escaped + '"') * 9,
                f"{'é' * size}{escaped}{'x' * size}",
            ):
                result = template.render({"a": text, "ascii_only": ascii_only})
                assert result.text == json.dumps(text, ensure_ascii=ascii_only), text


@pytest.mark.parametrize("text", ["¡", "\x1f¡", "\n¡" + "a" * 20])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_both_forms_of_an_input_cost_the_same_steps(text, ascii_only):
    """Also where text that is not ASCII follows a string that is."""
    template = Template("{{ a|string|length }}", "test")
    for value in ({"type": "text", "text": text}, ["a", "b\n", text], {"a\\": "b", "c": text}):
        sent = json.dumps({"a": value}, ensure_ascii=ascii_only).encode()
        assert template.render(sent).steps == template.render({"a": value}).steps
