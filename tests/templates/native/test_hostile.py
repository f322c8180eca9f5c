"""Hostile templates end with an error that names the bound and the line, after the same steps each time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import hostile_cases as hostile
import pytest
from case_tables import cases
from full_run import FULL

from tokenweir.encode.errors import TemplateError
from tokenweir.templates._native import Template

CASES = cases(__file__)

VARIABLES = {"messages": [{"role": "user", "content": "x"}]}
BOUND = re.compile(
    r"template, line \d+: .*("
    r"takes more than the limit of \d+ steps for this input|needs more than the limit of \d+ MiB of memory"
    r"|makes a text of more than the limit of \d+ bytes|is nested more than \d+ deep|are nested more than \d+ deep"
    r"|are nested too deeply|more than the limit of \d+ tokens|too many \w+ in a row|a width or precision .* limit of \d+"
    r"|of more than \d+ bits|is longer than the limit of \d+ bytes)"
)
ENDS = CASES["ends"]


def memory(field):
    """Return a figure of this process, in bytes."""
    return int(re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10


@pytest.fixture(autouse=True)
def little_memory():
    try:
        Path("/proc/self/clear_refs").write_text("5")  # begins the count of the most memory anew
    except OSError:  # not Linux, or a sandbox
        yield
        return
    before = memory("VmRSS")
    yield
    assert memory("VmHWM") - before < 512 << 20


def end(source):
    """Return the error, or the text without white space around it and the steps."""
    try:
        result = Template(source).render(VARIABLES)
    except TemplateError as error:
        return str(error), None
    return result.text.strip(), result.steps


@pytest.mark.parametrize("group", ["KINDS", "LANGUAGE", "STRUCTURES"])
def test_a_bound_is_named(group):
    wrong = {}
    for name, source in getattr(hostile, group).items():
        message, steps = end(source)
        if group != "STRUCTURES" and name in ENDS:
            if ENDS[name] not in message:
                wrong[name] = message[:200]
        elif steps is not None or not BOUND.match(message):
            wrong[name] = message[:200]
        if (message, steps) != end(source):
            wrong[name] = "another end the second time"
    assert wrong == {}


def test_combinations():
    """Filters, methods and comparisons of large values end: what does not exceed a bound is of its own kind."""
    cases = list(hostile.sweep().items())
    for name, source in cases if FULL else cases[::13]:
        assert end(source) == end(source), name


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1000000,
        b'{"a":' * 1000000,
        b'{"a":' + b"[" * 1000000,
        b'{"a":' + b"9" * 5000000 + b"}",
        b'{"a":[' + b"{}," * 3000000 + b"{}]}",
        b"",
        b"[]",
        b"{} x",
        b'{"a":"\xff"}',
        b'{"a":NaN}',
        b"\xef\xbb\xbf{}",
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":01}',
        b'{"a":"\n"}',
        b'{"a":"\\x"}',
    ],
)
def test_hostile_bodies(body):
    with pytest.raises(TemplateError):
        Template("{{ a }}").render(body)


def test_values_that_hold_themselves():
    nested = []
    nested.append(nested)
    with pytest.raises(TemplateError, match="nested more than"):
        Template("{{ a }}").render({"a": nested})


def test_the_bound_of_steps_grows_with_the_messages():
    """A template that looks at each message from each other one, as real ones do, renders long conversations."""
    source = (
        "{% for m in messages %}{% for n in messages %}{% if n.role == m.role %}{% endif %}{% endfor %}{% endfor %}ok"
    )
    for count in (10, 100, 1000, 2000):
        variables = {"messages": [{"role": "user", "content": "x"}] * count}
        assert Template(source).render(variables).text == "ok"
    assert Template(source).render(json.dumps(variables).encode()).text == "ok"
