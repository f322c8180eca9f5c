"""Hostile templates end with an error that names the bound."""

from __future__ import annotations

import re
import threading

import hostile_cases as hostile
import pytest
from case_tables import cases

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.chat_template import ChatTemplate

CASES = cases(__file__)

BOUND = re.compile(
    r"more than the limit of [0-9]+ (steps|MiB of memory|bytes|tokens)|nested more than [0-9]+ deep|nested too deeply|RecursionError"
    r"|too many .* in a row|of more than 64 bits|Range too big|too long|over the limit of|is longer than"
)


def render(source):
    return ChatTemplate(source, guard=False).render([{"role": "user", "content": "x"}]).text


def doubling(step, start="'x'"):
    return f"{{% set ns = namespace(s={start}) %}}{{% for i in range(60) %}}{step}{{% endfor %}}{{{{ ns.s | length }}}}"


LONG = "{% set s = 'a' * 1000000 %}"


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10**10 }}",
        "{{ [1] * 10**9 }}",
        "{{ 10 ** (10 ** 8) }}",
        doubling("{% set ns.s = ns.s * ns.s %}", "2"),
        doubling("{% set ns.s = ns.s + ns.s %}"),
        doubling("{% set ns.s = ns.s ~ ns.s %}"),
        doubling("{% set t %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = t %}"),
        doubling("{% set ns.s = [ns.s, ns.s] | join %}"),
        doubling("{% set ns.s = ''.join([ns.s, ns.s]) %}"),
        doubling("{% set ns.s = '%s%s' % (ns.s, ns.s) %}"),
        doubling("{% set ns.s = '{0}{0}'.format(ns.s) %}"),
        doubling("{% set ns.s = ns.s + ns.s %}", "[1]"),
        LONG + "{% for i in range(200) %}{{ s }}{% endfor %}",
        LONG + "{{ s.replace('a', s) | length }}",
        LONG + "{{ s.join(s) | length }}",
        "{% set s = '\\n' * 1000000 %}{{ s | indent('x' * 100) | length }}",
        "{% set s = '\\t' * 1000000 %}{{ s.expandtabs(100) | length }}",
        "{{ 'a' | center(10000000000) }}",
        "{{ 'a'.zfill(10**10) }}",
        "{{ [1] | batch(10**10, 'x') | list }}",
        "{{ [1] | tojson(indent=10**10) }}",
        "{{ '%10000000000d' % 1 }}",
        "{{ '%*d' % (10**10, 1) }}",
        "{{ '{:10000000000d}'.format(1) }}",
        "{{ '{:{}d}'.format(1, 10**10) }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(60) recursive %}{{ loop(range(60)) if loop.depth < 9 }}{% endfor %}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
        "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        " " * (1 << 20) + "x",
    ],
)
def test_bounds(source):
    with pytest.raises(TemplateError) as error:
        render(source)
    assert BOUND.search(str(error.value)), str(error.value)


@pytest.mark.parametrize(("source", "message"), CASES["sandbox"])
def test_sandbox(source, message):
    with pytest.raises(TemplateError, match=re.escape(message)):
        render(source)


def test_threads_render_at_the_same_time():
    errors = []

    def run():
        try:
            render(hostile.LANGUAGE["nested loops"])
        except TemplateError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert render("{{ messages[0].content }}") == "x"
    for thread in threads:
        thread.join()
    assert len(errors) == 3
    assert all(BOUND.search(error) for error in errors)
