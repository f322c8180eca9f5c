"""Templates that would fill the memory or never end are stopped, by limits and not by a clock."""

from __future__ import annotations

import re

import pytest

from tokenweir.encode.errors import TemplateError
from tokenweir.templates import limits
from tokenweir.templates.chat_template import ChatTemplate

LENGTH = "characters or items is over the limit of 16777216"
ITEMS = "characters or items is over the limit of 262144"
WIDTH = "is over the limit of 1000"
WORK = "the template does more than 3000 steps of work"
LONG = "{% set s = 'a' * 1000000 %}"


def render(source):
    return ChatTemplate(source, guard=False).render([{"role": "user", "content": "x"}]).text


def doubling(step, start="'x'"):
    return f"{{% set ns = namespace(s={start}) %}}{{% for i in range(60) %}}{step}{{% endfor %}}{{{{ ns.s | length }}}}"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ 'a' * 10**10 }}", "a value of 10000000000 " + LENGTH),
        ("{{ 10**10 * 'a' }}", "a value of 10000000000 " + LENGTH),
        ("{{ [1] * 10**10 }}", "a value of 10000000000 " + ITEMS),
        ("{{ 10 ** (10 ** 8) }}", "4 bits to the power of 100000000 is over the limit of 16384"),
        (doubling("{% set ns.s = ns.s * ns.s %}", "2"), "a number of 16385 bits is over the limit of 16384"),
        (doubling("{% set ns.s = ns.s + ns.s %}"), LENGTH),
        (doubling("{% set ns.s = ns.s ~ ns.s %}"), LENGTH),
        (doubling("{% set t %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = t %}"), LENGTH),
        (doubling("{% set ns.s = [ns.s, ns.s] | join %}"), LENGTH),
        (doubling("{% set ns.s = ''.join([ns.s, ns.s]) %}"), LENGTH),
        (doubling("{% set ns.s = '%s%s' % (ns.s, ns.s) %}"), LENGTH),
        (doubling("{% set ns.s = '{0}{0}'.format(ns.s) %}"), LENGTH),
        (doubling("{% set ns.s = ns.s + ns.s %}", "[1]"), ITEMS),
        (LONG + "{% for i in range(20) %}{{ s }}{% endfor %}", LENGTH),
        (LONG + "{{ s.replace('a', s) | length }}", LENGTH),
        (LONG + "{{ s | replace('a', s) | length }}", LENGTH),
        (LONG + "{{ s.join(s) | length }}", ITEMS),
        (LONG + "{{ s | join(s) | length }}", "the template does more than 1048576 steps of work"),
        (LONG + "{{ s.join([1, 2] * 10) | length }}", LENGTH),
        (
            LONG + "{{ s | wordwrap(1, wrapstring='xxxxxxxxxxxxxxxxxxx') }}",
            "the template does more than 1048576 steps of work",
        ),
        ("{% set s = '\\n' * 1000000 %}{{ s | indent('x' * 100) | length }}", LENGTH),
        ("{% set s = '\\t' * 1000000 %}{{ s.expandtabs(100) | length }}", LENGTH),
        ("{{ 'a' | center(10000000000) }}", "center with a width of 10000000000 " + WIDTH),
        ("{{ 'a' | center(width=10**10) }}", "center with a width of 10000000000 " + WIDTH),
        ("{{ 'a'.ljust(10**10) }}", "ljust with a width of 10000000000 " + WIDTH),
        ("{{ 'a'.zfill(10**10) }}", "zfill with a width of 10000000000 " + WIDTH),
        ("{{ [1] | batch(10**10, 'x') | list }}", "batch with a width of 10000000000 " + WIDTH),
        ("{{ [1] | tojson(indent=10**10) }}", "tojson with a width of 10000000000 " + WIDTH),
        ("{{ '%10000000000d' % 1 }}", "the width in the format '%10000000000' " + WIDTH),
        ("{{ '%.10000000000f' % 1 }}", "the width in the format '%.10000000000' " + WIDTH),
        ("{{ '%*d' % (10**10, 1) }}", "the width in the format '%*' " + WIDTH),
        ("{{ '%(x)10000d' | format(x=1) }}", "the width in the format '%(x)10000' " + WIDTH),
        ("{{ '%(a(b))10000d' | format(**{'a(b)': 1}) }}", "the width in the format '%(a(' " + WIDTH),
        ("{{ '{:10000000000d}'.format(1) }}", "the width in the format ':10000000000' " + WIDTH),
        ("{{ '{:{}d}'.format(1, 10**10) }}", "the width in the format ':{' " + WIDTH),
        ("{{ '{x:10000d}'.format_map({'x': 1}) }}", "the width in the format ':10000' " + WIDTH),
        ("{{ 'a'.translate({97: 'b'}) }}", "str.translate is not available to templates"),
        ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
        ("{{ lipsum(n=10**9) }}", "'lipsum' is undefined"),
    ],
)
def test_size(source, message):
    with pytest.raises(TemplateError) as error:
        render(source)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% set r = range(99) %}{% for i in r %}{% for j in r %}{% for k in r %}{% endfor %}{% endfor %}{% endfor %}",
        "{% for i in range(60) recursive %}{{ loop(range(60)) if loop.depth < 9 }}{% endfor %}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
        "{{ range(99999) | map('string') | list | length }}",
        "{% for i in range(99999) if i < 0 %}{% endfor %}",
        "{% for i in range(60) %}{{ range(9999) | max }}{% endfor %}",
        "{% for i in range(60) %}{{ range(9999) | map('abs') | sum }}{% endfor %}",
        "{% for i in range(60) %}{{ range(9999) | select('odd') | list | length }}{% endfor %}",
        "{% for i in range(99) %}{% set s = 'a' * 100000 %}{% endfor %}",
    ],
)
def test_work(source, monkeypatch):
    monkeypatch.setattr(limits, "MAX_WORK", 3000)
    with pytest.raises(TemplateError, match=WORK):
        render(source)


@pytest.mark.timeout(20)  # the square of the length would take minutes
def test_looking_for_a_width_takes_linear_time():
    assert render("{{ (':' * 400000).format() | length }}") == "400000"
    assert render("{{ ('%(' ~ 'a' * 400000 ~ ')s') | format(**{'a' * 400000: 1}) }}") == "1"
    with pytest.raises(TemplateError, match=re.escape("the width in the format '%(%(' is over the limit of 1000")):
        render("{{ ('%(' * 400000) | format(x=1) }}")


def test_taking_the_length_of_a_list_costs_one_step(monkeypatch):
    monkeypatch.setattr(limits, "MAX_WORK", 60000)  # half of which the list takes
    source = (
        "{% set s = [1] * 99999 %}{% for i in range(500) %}{% if s | length and s | last %}{% endif %}{% endfor %}ok"
    )
    assert render(source) == "ok"


def test_each_render_has_the_whole_budget(monkeypatch):
    template = ChatTemplate("{% for i in range(2000) %}{% endfor %}ok", guard=False)
    monkeypatch.setattr(limits, "MAX_WORK", 3000)
    assert [template.render([]).text for _ in range(3)] == ["ok"] * 3


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}", "RecursionError"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "RecursionError"),
        ("{% for a in [1] %}" * 60 + "x" + "{% endfor %}" * 60, "SyntaxError: too many statically nested blocks"),
        (" " * (1 << 18) + "x", "chat template 'default' is longer than 262144 characters"),
        ("{{ ''.__class__.__mro__ }}", "access to attribute '__class__' of 'str' object is unsafe"),
        ("{{ messages.append(1) }}", "access to attribute 'append' of 'list' object is unsafe"),
        ("{{ namespace(a=1).__class__.__mro__ }}", "access to attribute '__class__' of 'Namespace' object is unsafe"),
        ("{% include 'x' %}", "no loader for this environment"),
    ],
)
def test_sandbox(source, message):
    with pytest.raises(TemplateError, match=message):
        render(source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ 'a' ~ 1 ~ none ~ true }}", "a1NoneTrue"),
        ("{% autoescape true %}{{ '<' ~ ('<b>' | safe) }}{% endautoescape %}", "&lt;<b>"),
        ("{% for a in [[1, 2], [3]] recursive %}{{ loop(a) if a is iterable else a }}{% endfor %}", "123"),
        (
            "{% for x in 'ab' %}{{ loop.index }}/{{ loop.length }}{{ loop.nextitem }}{{ loop.last }} {% endfor %}",
            "1/2bFalse 2/2True ",
        ),
        ("{% for x in missing %}x{% else %}none{% endfor %}", "none"),
        ("{% for k, v in {'a': 1}.items() if v %}{{ k }}{{ v }}{% break %}{% endfor %}", "a1"),
        ("{{ ', '.join(['a', 'b'] | map('upper')) }} {{ [1, 2] | join('-') }} {{ missing | join }}", "A, B 1-2 "),
        ("{{ 'a-b'.replace('-', '+') }}{{ 'x' | replace('x', 'y') }}{{ 'ab' | center(6) }}|", "a+by  ab  |"),
        ("{{ '%5.2f|%s' % (1.5, 'x') }}{{ '{:>4}{a}'.format(1, a=2) }}{{ '%03d' | format(7) }}", " 1.50|x   12007"),
        ("{% set s = 'abcd ' * 100000 %}{{ s | wordwrap(79) | length }} {{ s | indent(4) | length }}", "499999 500000"),
        ("{{ 2 ** 10 }} {{ 7 * 6 }} {{ [0] * 3 }} {{ 'ab' * 2 }} {{ 7 % 4 }}", "1024 42 [0, 0, 0] abab 3"),
        ("{{ {'b': '<é>', 'a': 1} | tojson }} {{ [1] | tojson(indent=2) }}", '{"b": "<é>", "a": 1} [\n  1\n]'),
        (
            "{{ {'b': 'é', 'a': 1} | tojson(sort_keys=true, ensure_ascii=true, separators=(',', ':')) }}",
            '{"a":1,"b":"\\u00e9"}',
        ),
        (
            "{% set n = namespace(a=1, items=2) %}{% set n.b = 'x' %}{{ n.a }}{{ n.items }}{{ n.b }}{{ n.c is defined }}",
            "12xFalse",
        ),
        ("{{ namespace({'d': 3}).d }}{{ namespace(([('e', 4)])).e }}", "34"),
        (
            "{{ {'B': 1, 'a': {'y': [2]}} | dictsort }}{{ {'a': 2, 'b': 1} | dictsort(by='value') }}",
            "[('a', {'y': [2]}), ('B', 1)][('b', 1), ('a', 2)]",
        ),
        ("{% for i in range(3000) %}ab{% endfor %}", "ab" * 3000),
        ("a{% generation %}{% set x = 1 %}b{% endgeneration %}c{{ x }}", "abc"),
    ],
)
def test_ordinary_jinja_is_unchanged(source, text):
    assert render(source) == text
