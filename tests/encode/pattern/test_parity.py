"""Compiled patterns against the engines that they reproduce: `tokenizers` (Oniguruma) and `tiktoken` (fancy-regex)."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
import regex
import tiktoken
from full_run import share
from tokenizers import Regex, pre_tokenizers
from unicode_scalars import SCALARS

from tokenweir.encode._core import PreTokenizer, Split
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.pattern import Automaton
from tokenweir.encode.pattern.compile import build
from tokenweir.encode.pattern.determinize import DEAD, MATCH
from tokenweir.encode.reference import find_pieces

FAMILIES = json.loads((Path(__file__).parent / "patterns.json").read_text())
AUTOMATA = {name: build(family["pattern"], family["dialect"]) for name, family in FAMILIES.items()}
ONIGURUMA = [name for name in FAMILIES if FAMILIES[name]["dialect"] == "oniguruma"]
FANCY = [name for name in FAMILIES if FAMILIES[name]["dialect"] == "fancy-regex"]

LETTERS = SCALARS[0x20:] + SCALARS[:0x20]
ALPHABET = [
    *" \t\n\r\x0b\x0c\x85\u00a0\u2003\u2028\u3000",
    *"''''\u2019sStTdDmMrReEvVlL\u017f\u212aabcXYZ0123456789\u0663\u00bd\u2167\u00b2",
    *'/.,!?-_(){}[]<>@#"\\~`$^|+=',
    *"\u00e9\u00df\u00c4\u01c5\u02b0\u00aa\u05d0\u4e2d\u56fd\u65e5\u306e\u30ab\ud55c\u1780\u3007",
    *"\u0301\u0300\u0e31\u093f\u200d\u200b\ufeff\x00\x01\x7f\ue000\U0001f600\U0001f1e6\U00010400\U0010ffff\u0378",
]
NARROW = [
    " \n",
    "  \t\nA'",
    " \n\r/",
    "a A\u0301\u4e2d",
    "'sltvremd L",
    "123 a",
    "!/\n ",
    "aA\u00e9a'sS",
    "\u017f's 1\n",
]


def random_texts(seed: int, count: int, alphabet: list[str] = ALPHABET) -> list[str]:
    """Mixtures, runs, and mixtures of few characters, up to 40 of them."""
    pick = random.Random(seed)
    texts = []
    for _ in range(count):
        letters = alphabet if pick.random() < 0.5 else [c for c in pick.choice(NARROW) if c in alphabet]
        longest = pick.choice([1, 1, 1, 2, 7])
        texts.append("".join(pick.choice(letters) * pick.randint(1, longest) for _ in range(pick.randint(1, 16))))
    return texts


def representatives(automaton: Automaton) -> list[str]:
    """One character of each class, the first from U+0020 on where there is one."""
    classes = automaton.classes(LETTERS)
    return [LETTERS[int(np.argmax(classes == symbol))] for symbol in range(automaton.n_classes)]


def access_strings(automaton: Automaton) -> list[str]:
    """A shortest text that leads to each state."""
    letters = representatives(automaton)
    found = {0: ""}
    for state in (queue := [0]):
        for symbol, target in enumerate((automaton.transitions[state, :-1] & DEAD).tolist()):
            if target != DEAD and target not in found:
                found[target] = found[state] + letters[symbol]
                queue.append(target)
    assert len(found) == automaton.n_states, "a state that no text reaches"
    return [found[state] for state in range(automaton.n_states)]


def systematic_texts(automaton: Automaton, most: int) -> list[str]:
    """All texts over the representatives by length, to `most` of them and four characters; then, from each state on,
    every next character and two more."""
    letters = representatives(automaton)
    short = itertools.chain.from_iterable(itertools.product(letters, repeat=length) for length in range(1, 5))
    texts = ["".join(text) for text in itertools.islice(short, most)]
    pick = random.Random(0)
    for prefix in pick.sample(access := access_strings(automaton), min(len(access), 30)):
        texts += [prefix + a + pick.choice(letters) + pick.choice(letters) for a in letters]
    return texts


class HuggingFaceSplitter:
    """The pieces of `Split(isolated)`, gaps among them."""

    def __init__(self, pattern: str) -> None:
        self._split = pre_tokenizers.Split(Regex(pattern), "isolated")

    def __call__(self, text: str) -> list[tuple[int, int]]:
        return [span for _, span in self._split.pre_tokenize_str(text)]


class TiktokenSplitter:
    """tiktoken's pieces, made visible by a vocabulary that has every short text as a token; gaps are dropped."""

    def __init__(self, pattern: str, letters: str, longest: int) -> None:
        texts = itertools.chain.from_iterable(itertools.product(letters, repeat=n) for n in range(1, longest + 1))
        ranks = {bytes([byte]): byte for byte in range(256)}
        for text in texts:
            ranks.setdefault("".join(text).encode(), len(ranks))
        self._pieces = {rank: piece for piece, rank in ranks.items()}
        self._encoding = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def __call__(self, text: str) -> list[str]:
        return [self._pieces[rank].decode() for rank in self._encoding.encode_ordinary(text)]


def spans(automaton: Automaton, text: str) -> list[tuple[int, int]]:
    return [(start, end) for start, end, _ in find_pieces(automaton, text)]


def matched(automaton: Automaton, text: str) -> list[str]:
    return [text[start:end] for start, end, is_gap in find_pieces(automaton, text) if not is_gap]


@pytest.mark.parametrize("name", ONIGURUMA)
def test_oniguruma_patterns_split_as_huggingface_does(name):
    automaton, huggingface = AUTOMATA[name], HuggingFaceSplitter(FAMILIES[name]["pattern"])
    count = share(1500 if automaton.n_states < 100 else 200)
    for text in systematic_texts(automaton, count) + random_texts(1, count):
        assert spans(automaton, text) == huggingface(text), repr(text)


@pytest.mark.parametrize("name", FANCY)
def test_fancy_regex_patterns_split_as_tiktoken_does(name):
    automaton, pattern = AUTOMATA[name], FAMILIES[name]["pattern"]
    letters = representatives(automaton)
    longest = 4 if len(letters) <= 12 else 3
    tiktoken_split = TiktokenSplitter(pattern, "".join(letters), longest)
    for text in systematic_texts(automaton, share(18_000)):
        if len(text) <= longest:
            assert matched(automaton, text) == tiktoken_split(text), repr(text)


@pytest.mark.parametrize("name", FANCY)
def test_fancy_regex_patterns_split_long_texts_as_the_regex_package_does(name):
    # Its Unicode is newer, so only characters take part that have been in their classes for long.
    automaton, pattern = AUTOMATA[name], FAMILIES[name]["pattern"].replace("$", r"\Z")
    reference = regex.compile(pattern, regex.V1)
    old = [
        c for c in ALPHABET if c.isascii() or c in "\u00a0\u3000\u017f\u00e9\u00df\u00c4\u05d0\u4e2d\u306e\u0301\u2019"
    ]
    for text in systematic_texts(automaton, 0) + random_texts(2, share(9000), old):
        if set(text) <= set(old):
            assert matched(automaton, text) == reference.findall(text), repr(text)


def test_deepseek_splits_in_sequence_keep_gaps_as_pieces():
    stages = ["DeepSeek-V3, first", "DeepSeek-V3, second", "DeepSeek-V3, third"]
    reference = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(FAMILIES[s]["pattern"]), "isolated") for s in stages]
    )
    for text in random_texts(3, share(9000)):
        pieces = [(0, len(text))]
        for stage in stages:
            pieces = [
                (start + a, start + b) for start, end in pieces for a, b in spans(AUTOMATA[stage], text[start:end])
            ]
        assert pieces == [span for _, span in reference.pre_tokenize_str(text)], repr(text)
    assert find_pieces(AUTOMATA[stages[2]], "a\u200b\u200d\x01!") == [(0, 1, False), (1, 4, True), (4, 5, False)]


def test_the_dialects_differ_where_the_engines_do():
    pattern = FAMILIES["cl100k_base"]["pattern"]
    tiktoken_reading, huggingface_reading = build(pattern, "fancy-regex"), build(pattern, "oniguruma")
    assert matched(tiktoken_reading, "1111") == TiktokenSplitter(pattern, "1", 4)("1111") == ["111", "1"]
    assert (
        matched(huggingface_reading, "1111")
        == ["1111"]
        == ["1111"[a:b] for a, b in HuggingFaceSplitter(pattern)("1111")]
    )
    for text in (" \n b", "a \n\n", " \n\n"):  # before a line feed, $ holds in Oniguruma's Ruby syntax only
        assert spans(build(r"\s+$", "oniguruma"), text) == HuggingFaceSplitter(r"\s+$")(text)
        assert matched(build(r"\s+$", "fancy-regex"), text) == TiktokenSplitter(r"\s+$", " \nab", 4)(text)


@pytest.mark.parametrize(
    "name", ["GPT-2", "cl100k_base", "o200k_base", "Kimi-K2", "DeepSeek-V3, first", "BLOOM", "CLIP"]
)
def test_a_pattern_that_leaves_text_over_says_so(name):
    assert AUTOMATA[name].has_gaps == (name in ("DeepSeek-V3, first", "BLOOM", "CLIP"))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_sync_pair_is_a_boundary_whatever_came_before(name):
    automaton = AUTOMATA[name]
    seen = 0
    for text in random_texts(4, share(2400 if automaton.n_states < 100 else 300)):
        symbols = automaton.classes(text).tolist()
        starts = {start for start, _ in spans(automaton, text)}
        for at, pair in enumerate(itertools.pairwise(symbols), 1):
            if automaton.sync[pair]:
                seen += 1
                assert at in starts, (text, at)
                # So the text may be cut there and its parts split on their own.
                if at == len(text) // 2:
                    rest = [(start + at, end + at, gap) for start, end, gap in find_pieces(automaton, text[at:])]
                    assert find_pieces(automaton, text)[-len(rest) :] == rest
    assert seen or not automaton.sync.any()


@pytest.mark.parametrize("name", [n for n in FAMILIES if AUTOMATA[n].n_states < 100])
def test_every_other_pair_can_be_inside_a_piece(name):
    automaton = AUTOMATA[name]
    letters, access = representatives(automaton), access_strings(automaton)
    table = automaton.transitions.tolist()
    for a, b in zip(*(~automaton.sync).nonzero(), strict=True):
        joined = False
        for prefix, row in zip(access, table, strict=True):
            after_a = row[a] & DEAD
            after_b = table[after_a][b] & DEAD if after_a != DEAD else DEAD
            if after_b != DEAD:
                text = prefix + letters[a] + letters[b] + _rest_of_a_match(table, after_b, letters)
                pieces = spans(automaton, text)
                joined = joined or len(prefix) + 1 not in {start for start, _ in pieces}
        firsts = [find_pieces(automaton, letters[a] + letters[b] + following)[0] for following in ["", *letters]]
        assert joined or any(is_gap and end >= 2 for _, end, is_gap in firsts), (letters[a], letters[b])


def _rest_of_a_match(table: list[list[int]], state: int, letters: list[str]) -> str:
    """Find the symbols that lead from a state to the next flagged match."""
    queue, texts = [state], {state: ""}
    for at in queue:
        for symbol, cell in enumerate(table[at]):
            if cell & MATCH:
                return texts[at] + (letters[symbol] if symbol < len(letters) else "")
            if cell & DEAD not in texts and cell != DEAD:
                texts[cell & DEAD] = texts[at] + letters[symbol]
                queue.append(cell & DEAD)
    raise AssertionError("a state from which no match follows")


SETS = [
    *("a", "b", " ", r"\n", "1", "B", "A", ".", "[ab]", "[^a]", "[a-b1]", r"[\s1]", r"[^\s\p{L}]", "(?i:a)", "(?i:B)"),
    *(r"\s", r"\S", r"\d", r"\w", r"\W", r"\p{L}", r"\P{L}", r"\p{N}", "[a&&[ab]]", "[^a[1b]]", r"[\p{L}&&[^a]]"),
]
QUANTIFIERS = [
    *["", "", "", "", "?", "*", "+", "??", "*?", "+?", "?+", "*+", "++"],
    *["{2}", "{1,2}", "{2,3}", "{1,}", "{1,2}?", "{1,2}+", "{2}+", "{1,}+"],
]
LOOKS = ["(?!a)", "(?=b)", r"(?!\S)", r"(?=\s)", "(?=a|$)", "(?!(?!a)b)", "(?!$)", r"(?=\s|\z)", "$", r"\z"]
PLACES = [r"\b", r"\B", "^", r"\A", "(?<=a)", "(?<!a)", r"(?<=[\s1])", r"(?<!\w)", "(?<=a|b)", "(?<![^b])"]


def random_pattern(pick: random.Random, depth: int) -> str:
    def part() -> str:
        kind = pick.random()
        if depth == 0 or kind < 0.5:
            return pick.choice(SETS) + pick.choice(QUANTIFIERS)
        if kind < 0.7:
            group = pick.choice(["(?:", "(?:", "(", "(?i:"]) + random_pattern(pick, depth - 1) + ")"
            return group + pick.choice(QUANTIFIERS)
        if kind < 0.8:
            return pick.choice(["(?=", "(?!"]) + random_pattern(pick, depth - 1) + ")"
        return pick.choice(LOOKS + PLACES)

    branches = ["".join(part() for _ in range(pick.choice([1, 1, 2, 3]))) for _ in range(pick.choice([1, 1, 2, 3]))]
    return "|".join(branches)


@pytest.mark.parametrize("dialect", ["oniguruma", "fancy-regex"])
def test_random_patterns_are_refused_or_right(dialect):
    pick = random.Random(7)
    letters = "abB \n1"
    texts = ["".join(pick.choice(letters) for _ in range(pick.choice([1, 2, 3, 4]))) for _ in range(120)]
    compiled = with_context = 0
    while compiled < share(720):
        pattern = random_pattern(pick, 2)
        try:
            automaton = build(pattern, dialect)
        except (UnsupportedTokenizerError, TokenizerFileError):
            continue
        compiled += 1
        with_context += automaton.context is not None
        if dialect == "oniguruma":
            huggingface, core = HuggingFaceSplitter(pattern), PreTokenizer([Split(automaton.in_core())])
            for text in texts:
                assert spans(automaton, text) == huggingface(text), (pattern, text)
                assert list(map(tuple, core.split(text).tolist())) == huggingface(text), (pattern, text)
        else:
            tiktoken_split = TiktokenSplitter(pattern, letters, 4)
            for text in texts:
                assert matched(automaton, text) == tiktoken_split(text), (pattern, text)
    assert with_context > share(150)
