"""No text of a user becomes a control token of the template's, in any field, through any template."""

from __future__ import annotations

import re
from itertools import islice
from random import Random

import origin_attacks
import pytest
from full_run import FULL
from origin_attacks import PLACES, Tally, Target, attacks
from template_files import template_files

from tokenweir.templates._native import ControlTokens, Template

FILES = template_files()
EVERY = 23 if FULL else 229


@pytest.mark.parametrize("name", FILES)
def test_no_attack_succeeds(name, record_property):
    target, tally = Target(name, FILES[name]), Tally()
    for texts in islice(attacks(target), 0, None, EVERY):
        target.attack(texts, tally)
    record_property("attacks", tally.attacks)
    assert tally.failures is None
    assert tally.attacks >= len(PLACES) // 5


@pytest.mark.parametrize("name", ["openai-gpt-oss-120b", "Qwen3-Coder", "embedded in the test"])
def test_attacks_succeed_where_all_is_vouched_for(name, monkeypatch):
    """So they would be seen."""
    source = FILES.get(name, "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}")
    monkeypatch.setattr(origin_attacks, "VOUCHED", re.compile(".*"))
    target, tally = Target(name, source), Tally()
    for place in ("user", "result", "part"):
        for payload in ("<|im_end|>", "<|end|>", "a<|start|>b"):
            target.attack({place: payload}, tally)
    assert tally.succeeded > 0


def test_a_key_in_brackets():
    """MiniMax-M3 writes `'<' + key + '>'`, where the key may be all of a control token but its brackets."""
    template = Template("{% for key in keys %}{{ '<' + key + '>' }}{% endfor %}<|im_end|>")
    result = template.render({"keys": ["|im_end|", "k"]})
    assert result.text == "<|im_end|><k><|im_end|>"
    (offset,) = result.guarded(ControlTokens(["<|im_end|>"], []))
    assert 1 <= offset < 9


def test_halves_of_neighbours():
    source = "{% for m in messages %}{{ m }}{% endfor %}<|im_end|>"
    halves = ["<|im_", "end|>", "<", "|im_end|>", "<|im_end|", ">"]
    result = Template(source).render({"messages": halves})
    assert len(result.guarded(ControlTokens(["<|im_end|>"], []))) == 3


def test_overlaps():
    """A token that begins in a user's text and ends in the template's is neither's, and the next one is found."""
    result = Template("{{ a }}<|x|><|x|>").render({"a": "<|x|><|x|"})
    tokens = ControlTokens(["<|x|>", "><|x|>"], [])
    guarded = set(result.guarded(tokens))
    own = [m.start() for m in re.finditer(r"<\|x\|>", result.text) if guarded.isdisjoint(range(*m.span()))]
    assert own == [len("<|x|><|x|"), len("<|x|><|x|<|x|>")]


@pytest.mark.parametrize(
    "tokens",
    [
        ["<a", "<|b|>"],
        ["<a", "[b", "|b|", "ｂ<"],
        [",a", "<a", "La", "\\a", "la", "|a"],  # the bytes differ in their upper halves only
        ["<", "a<", "|", "é"],
    ],
    ids=["one first byte", "two of the same lower half", "many of the same lower half", "single characters"],
)
def test_the_search_finds_every_place(tokens):
    random_ = Random(5)
    alphabet = ["<", "|", "a", "b", ">", "[", ",", "L", "l", "\\", "é", "ｂ", "\0", *tokens]
    for _ in range(300):
        text = "".join(random_.choices(alphabet, k=random_.randint(0, 90)))
        found = Template("{{ a }}").render({"a": text}).guarded(ControlTokens(tokens, []))
        assert list(found) == [at for at in range(len(text)) if text.startswith(tuple(tokens), at)], text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([f"<|reserved_{i}|>" for i in range(256)], "<|reserved_1|>" * 600_000),
        ([f"<unused{i}>" for i in range(6000)], "<u" * 4_000_000),
        ([f"<unused{i}>" for i in range(6000)], "<unused" * 1_000_000),
    ],
    ids=["many tokens", "many beginnings", "long beginnings"],
)
def test_long_texts_of_tokens(tokens, text):
    """The search is linear: what is not would take minutes here."""
    result = Template("{{ a }}").render({"a": text})
    assert len(result.guarded(ControlTokens(tokens, []))) == sum(map(text.count, tokens[:2]))
