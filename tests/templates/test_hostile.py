"""Hostile templates end with an error that names the limit; `bench/hostile_templates.py` measures them, and more."""

from __future__ import annotations

import re
import threading

import hostile_cases as hostile
import pytest

from tokenweir.encode.errors import TemplateError
from tokenweir.templates import limits
from tokenweir.templates.chat_template import ChatTemplate

LIMIT = re.compile(
    r"is over the limit of \d+|more than 1048576 steps of work|more than [\d.]+ seconds of CPU time|more than 16384 words"
    r"|a product over \d+|RecursionError|numbers only|is longer than \d+ characters"
)


def render(source):
    return ChatTemplate(source, guard=False).render([{"role": "user", "content": "x"}]).text


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_kinds(kind):
    with pytest.raises(TemplateError, match=LIMIT):
        render(hostile.KINDS[kind])


@pytest.mark.parametrize("kind", hostile.LANGUAGE)
def test_language(kind, monkeypatch):
    if kind in ("blank", "macros in number"):  # which are only long
        assert render(hostile.LANGUAGE[kind]).strip() in ("", "1")
        return
    monkeypatch.setattr(limits, "MAX_SECONDS", 0.05)  # of what no other limit stops at once
    with pytest.raises(TemplateError) as error:
        render(hostile.LANGUAGE[kind])
    assert LIMIT.search(str(error.value)) or re.search("undefined|Missing end of comment|unexpected", str(error.value))


@pytest.mark.parametrize("value", ["nested", "keyed"])
@pytest.mark.parametrize("use", ["tojson", "string", "join", "sort", "unique", "upper", "pprint"])
def test_filters_of_lists_that_hold_each_other(value, use):
    with pytest.raises(TemplateError, match="is over the limit of 262144"):
        render(hostile.VALUES[value] + "{{ (ns.s | " + use + ") is none }}")


@pytest.mark.parametrize("use", ["length", "first"])
def test_filters_that_do_not_look_into_lists(use):
    assert render(hostile.VALUES["nested"] + "{{ (ns.s | " + use + ") is none }}") == "False"


def test_a_render_in_another_thread_has_its_own_clock(monkeypatch):
    monkeypatch.setattr(limits, "MAX_SECONDS", 0.2)
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
    assert all(LIMIT.search(error) for error in errors)
