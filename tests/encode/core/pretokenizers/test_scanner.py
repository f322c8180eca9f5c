"""The scanner has the automaton's pieces, whatever the instructions, and takes over from known automata only."""

from __future__ import annotations

import itertools
import platform
import random
from functools import cache

import numpy as np
import pytest
from full_run import share
from unicode_scalars import SWEPT

from tokenweir.encode import _core
from tokenweir.encode.components.pre_tokenize import GPT2_PATTERN
from tokenweir.encode.formats.gguf.pre import PRE
from tokenweir.encode.formats.known_rank_files import PATTERNS
from tokenweir.encode.pattern import compile_pattern
from tokenweir.encode.pattern.families import recognized

LLAMA3, QWEN35, TEKKEN = (PRE[name].stages[0].pattern.Regex for name in ("llama-bpe", "qwen35", "tekken"))
PATTERNS = {
    "gpt2": (GPT2_PATTERN, "oniguruma"),
    "cl100k": (PATTERNS["cl100k"], "fancy-regex"),
    "Llama-3": (LLAMA3, "oniguruma"),
    "Qwen2": (PATTERNS["qwen"], "oniguruma"),
    "Qwen3.5": (QWEN35, "oniguruma"),
    "o200k": (PATTERNS["o200k"], "fancy-regex"),
    "tekken": (TEKKEN, "fancy-regex"),
}
LETTERS = "aAsStLvrReEdm 1\t\n\r!'/-" + "éÉ漢あー\u0301ſ\xa0\u3000\u2028٣€🙂ǅª"
"""One character at least of each class that any of them tells apart."""


INSTRUCTIONS = ["portable", "neon"] if platform.machine() in ("aarch64", "arm64") else ["portable", "avx2", "avx512"]
"""Those of this kind of machine, the best one last."""


@pytest.fixture(params=INSTRUCTIONS)
def instructions(request, monkeypatch):
    monkeypatch.setenv("TOKENWEIR_SCANNER", request.param)
    return request.param


def scanned_and_walked(name):
    automaton = compile_pattern(*PATTERNS[name])
    core = automaton.in_core()
    scanned = _core.Split(core, family=recognized(automaton))
    assert scanned.instructions is not None
    return _core.PreTokenizer([scanned]), _core.PreTokenizer([_core.Split(core)]), scanned.instructions


def check(scanned, walked, text):
    found, expected = scanned.split(text), walked.split(text)
    if found.shape != expected.shape or (found != expected).any():
        same = next(i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if (a != b).any())
        at = expected[same][0]
        pytest.fail(f"{text[max(0, at - 20) : at + 60]!r}: {found[same]} is not {expected[same]}")


@cache
def short_strings():
    strings = ["".join(some) for some in itertools.product(LETTERS, repeat=3)]
    around = (("", "xx"), ("b ", ""), ("!", "\n"), ("X", " "), ("漢", "'t"), ("\n", "Ab"))
    return ["".join(f"{before}{string}{after}" for string in strings) for before, after in around]


@pytest.mark.parametrize("name", PATTERNS)
def test_all_short_strings(name, instructions):
    """Every string of three characters, between each two of some neighbours; together they are long enough to scan."""
    scanned, walked, _ = scanned_and_walked(name)
    for text in short_strings():
        check(scanned, walked, text)


def some_letters(rng):
    return rng.sample(LETTERS, rng.choice((2, 3, 6, 12, len(LETTERS))))


def chinese(rng):
    """Letters that are found many at once, and characters at and beyond the ends of their range."""
    inside = [chr(rng.randrange(0x4E00, 0xA000)) for _ in range(30)] + list("一\u9fff\ua000")
    edges = (
        "\u33ff㐀\u4dbf\u4dc0\u4dff\u4e00\u4fff\u9fff\ua000\ua3ff\ua48c\ua48d\ua4cf\uabff가힣\ud7ff\ue000\uffff𠮷。あ"
    )
    return inside + rng.choices(edges + LETTERS, k=rng.randrange(1, 12))


def kana(rng):
    """Characters of the page that is looked up many at once."""
    page = [chr(rng.randrange(0x3000, 0x3100)) for _ in range(rng.randrange(1, 40))]
    return page + rng.choices("あア、漢" + LETTERS, k=rng.randrange(1, 12))


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("letters", [some_letters, chinese, kana])
def test_random_strings(name, letters, instructions):
    """At any place of 64 bytes."""
    scanned, walked, _ = scanned_and_walked(name)
    rng = random.Random(name)
    for _ in range(share(1000)):
        length = rng.choice((6, 17, 20, 21, 22, 23, 40, 64, 65, 70, 130, 200, 700))
        check(scanned, walked, "".join(rng.choices(letters(rng), k=length)))


@pytest.mark.parametrize("name", PATTERNS)
def test_every_character(name):
    """A character of every class of Unicode, in the company of letters, spaces and itself."""
    scanned, walked, _ = scanned_and_walked(name)
    for start in range(0, len(SWEPT), 50_000):
        some = SWEPT[start : start + 50_000]
        check(scanned, walked, "".join(f"ab{c}a {c}{c} A'{c}\n" for c in some))


@pytest.mark.parametrize("name", PATTERNS)
def test_every_end(name):
    """A text may end anywhere: nothing past its end is read, and what is there is right."""
    scanned, walked, _ = scanned_and_walked(name)
    text = "It's 12345 WORDS, they'll \n\n  end: 漢字 héLLo!\n/ " * 4
    for n in range(140):
        check(scanned, walked, text[:n])


def test_instructions_can_be_chosen(instructions):
    *_, used = scanned_and_walked("cl100k")
    assert INSTRUCTIONS.index(used) <= INSTRUCTIONS.index(instructions)  # the best that the machine has and may use
    assert used == instructions or instructions.startswith("avx")  # every arm64 has NEON


@pytest.mark.parametrize(
    "pattern",
    [
        LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}{1,4}"),
        LLAMA3.replace("'ll", "'nt"),
        LLAMA3.replace(r"\p{L}", r"[a-zA-Z]"),
        GPT2_PATTERN.replace(r"\s+(?!\S)|", ""),
        r"\s+|\S+",
    ],
)
def test_another_automaton_is_walked(pattern):
    assert recognized(compile_pattern(pattern, "oniguruma")) is None


def test_another_text_of_the_same_pattern_is_scanned():
    again = LLAMA3.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"'(?i:[std]|ll|[rv]e|m)")
    family = recognized(compile_pattern(again, "oniguruma"))
    assert again != LLAMA3
    assert family is not None
    assert family.name == "cl100k"


def test_classes_without_a_kind_are_refused():
    core = compile_pattern(*PATTERNS["cl100k"]).in_core()
    with pytest.raises(Exception, match="a scanner without a kind for class 1"):
        _core.Split(core, family=("cl100k", [0]))
    with pytest.raises(Exception, match="there is no scanner for nobody"):
        _core.Split(core, family=("nobody", [0] * 20))


def test_a_long_piece_and_a_long_text():
    for name in PATTERNS:
        scanned, walked, _ = scanned_and_walked(name)
        check(scanned, walked, "a" * 1000 + " " * 500 + "1" * 300 + "!" * 400 + "\n" * 300 + "漢" * 200)
        rng = np.random.default_rng(3)
        check(scanned, walked, "".join(rng.choice(list(LETTERS), 100_000)))
