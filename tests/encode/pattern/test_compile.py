"""The compiler as a whole: its cache, its file form, its limits, and that its tables are minimal."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from case_tables import cases
from in_threads import in_threads

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.pattern import Automaton, compile_pattern
from tokenweir.encode.pattern import compile as compiler
from tokenweir.encode.pattern.compile import build
from tokenweir.encode.pattern.determinize import MAX_CELLS, MAX_STEPS
from tokenweir.encode.reference import find_pieces

CASES = cases(__file__)

PATTERN = r"\p{L}+|\p{N}{1,3}|\s+(?!\S)|[^\s\p{L}\p{N}]"
FAMILIES = json.loads((Path(__file__).parent / "patterns.json").read_text())


@pytest.fixture
def builds(monkeypatch):
    """The patterns that were compiled, not read from the cache."""
    seen = []

    def counted(pattern, dialect):
        seen.append(pattern)
        return build(pattern, dialect)

    monkeypatch.setattr(compiler, "build", counted)
    return seen


def same(a: Automaton, b: Automaton) -> bool:
    def arrays(automaton: Automaton) -> list[np.ndarray]:
        tables = [automaton.transitions, automaton.class_index, automaton.class_pages, automaton.sync]
        context = automaton.context
        return tables if context is None else [*tables, context.behind, context.transitions, context.symbols]

    return (a.pattern, a.dialect) == (b.pattern, b.dialect) and all(
        x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(arrays(a), arrays(b), strict=True)
    )


def test_a_pattern_is_compiled_once(cache, builds):
    first, second = compile_pattern(PATTERN, "oniguruma"), compile_pattern(PATTERN, "oniguruma")
    assert builds == [PATTERN]
    assert same(first, second)
    assert [path.suffix for path in cache.iterdir()] == [".automaton"]


def test_dialects_and_compiler_versions_have_their_own_entries(cache, builds, monkeypatch):
    compile_pattern(PATTERN, "oniguruma")
    compile_pattern(PATTERN, "fancy-regex")
    monkeypatch.setattr(compiler, "COMPILER_VERSION", compiler.COMPILER_VERSION + 1)
    compile_pattern(PATTERN, "oniguruma")
    assert len(builds) == len(list(cache.iterdir())) == 3


def test_the_cache_follows_xdg(tmp_path, monkeypatch):
    monkeypatch.delenv("TOKENWEIR_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compile_pattern(PATTERN, "oniguruma")
    assert len(list((tmp_path / "tokenweir").iterdir())) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    compile_pattern(PATTERN, "oniguruma")
    assert len(list((tmp_path / "home/.cache/tokenweir").iterdir())) == 1


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "foreign", "other pattern", "a folder"])
def test_a_damaged_or_foreign_entry_is_compiled_again(cache, builds, damage):
    right = compile_pattern(PATTERN, "oniguruma")
    (path,) = cache.iterdir()
    data = path.read_bytes()
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(
            {
                "empty": b"",
                "cut": data[: len(data) // 2],
                "flipped": data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
                "foreign": b"\x89PNG\r\n\x1a\n" + bytes(1000),
                "other pattern": build("a", "oniguruma").to_bytes(),
            }[damage]
        )
    assert same(compile_pattern(PATTERN, "oniguruma"), right)
    assert len(builds) == 2
    if damage != "a folder":
        assert path.read_bytes() == data
    assert [entry.name for entry in cache.iterdir()] == [path.name]


def test_a_cache_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch, builds):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TOKENWEIR_CACHE", str(tmp_path / "file" / "cache"))
    assert same(compile_pattern(PATTERN, "oniguruma"), build(PATTERN, "oniguruma"))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("TOKENWEIR_CACHE", str(tmp_path / "full"))
    monkeypatch.setattr(os, "replace", full)
    compile_pattern(PATTERN, "oniguruma")
    assert list((tmp_path / "full").iterdir()) == []
    assert len(builds) == 2


def test_many_threads_may_fill_one_cache(cache):
    right = build(PATTERN, "oniguruma")
    found = []
    in_threads(lambda _: found.append(compile_pattern(PATTERN, "oniguruma")), range(8))
    assert len(found) == 8
    assert all(same(automaton, right) for automaton in found)
    assert [path.suffix for path in cache.iterdir()] == [".automaton"]


@pytest.mark.parametrize("name", [*FAMILIES, "Tiny Aya"])
def test_bytes_hold_all_of_an_automaton(name):
    automaton = build(r"\d{1,3}(?=(?:\d{3})*\b)", "oniguruma") if name == "Tiny Aya" else build(**FAMILIES[name])
    again = Automaton.from_bytes(automaton.to_bytes())
    assert same(automaton, again)
    assert not again.transitions.flags.writeable


@pytest.mark.parametrize(("pattern", "equal"), CASES["equal"])
def test_patterns_with_the_same_matches_have_the_same_tables(pattern, equal):
    ours, theirs = build(pattern, "fancy-regex"), build(equal, "fancy-regex")
    assert np.array_equal(ours.transitions, theirs.transitions)
    assert np.array_equal(ours.sync, theirs.sync)
    assert np.array_equal(ours.classes("abcdxy 1\n"), theirs.classes("abcdxy 1\n"))


@pytest.mark.parametrize(("name", "states", "classes"), CASES["sizes"])
def test_real_patterns_have_small_tables(name, states, classes):
    automaton = build(**FAMILIES[name])
    assert (automaton.n_states, automaton.n_classes) == (states, classes)


def test_priority_decides_not_length():
    assert find_pieces(build("a|ab", "oniguruma"), "ab") == [(0, 1, False), (1, 2, True)]
    assert find_pieces(build("ab|a", "oniguruma"), "ab") == [(0, 2, False)]
    assert find_pieces(build("a+?b?", "oniguruma"), "aab") == [(0, 1, False), (1, 3, False)]


def test_tables_have_their_documented_form():
    automaton = build(PATTERN, "oniguruma")
    assert automaton.transitions.shape == (automaton.n_states, automaton.n_classes + 1)
    assert automaton.class_index.shape == (4352,)
    assert automaton.class_pages.shape[1] == 256
    assert automaton.sync.shape == (automaton.n_classes, automaton.n_classes)
    dtypes = [a.dtype for a in (automaton.transitions, automaton.class_index, automaton.class_pages, automaton.sync)]
    assert dtypes == [np.uint16, np.uint16, np.uint8, np.bool_]
    assert ((automaton.transitions[:, -1] & 0x3FFF) == 0x3FFF).all()
    assert find_pieces(automaton, "") == []


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("((a{1,1000}){1,1000}){1,1000}", "it needs 2,003,003,002 instructions, repeats written out, more than 8,192"),
        ("(?:" * 1000 + "a" + ")*" * 1000, "more than 50 groups inside one another"),
        ("[" * 1000 + "a" + "]" * 1000, "more than 50 brackets inside one another"),
        ("a" * 20_000, "a pattern of more than 10,000 characters"),
        ("(?:[ab]*a[ab]{20})c", "16,383 states of 4 classes"),
        ("(?:(?:a{1,40}){1,40}b){1,2}", f"{MAX_STEPS:,} steps)"),
        ("|".join(chr(c) + "x" for c in range(0x100, 0x300)), f"{MAX_CELLS:,} cells"),
        ("|".join(chr(c) + c % 7 * "x" for c in range(0x4E00, 0x4F10)), "classes"),
    ],
)
def test_a_hostile_pattern_is_refused_for_the_work_it_would_be(pattern, message):
    with pytest.raises(UnsupportedTokenizerError) as error:
        build(pattern, "oniguruma")
    assert message in str(error.value)


def test_at_most_255_classes():
    def letters(count):
        # Two letters a class: each pair is told apart by what may follow it.
        return "|".join(f"{chr(0x4E00 + i)}{chr(0x4E00 + i)}" for i in range(count))

    assert build(letters(254), "oniguruma").n_classes == 255
    with pytest.raises(UnsupportedTokenizerError, match="it distinguishes 256 classes of characters, more than 255"):
        build(letters(255), "oniguruma")


def test_no_more_than_so_many_patterns_are_kept(cache, builds, monkeypatch):
    monkeypatch.setattr(compiler, "MAX_KEPT", 5)
    for number in range(8):
        compile_pattern(f"a{{1,{number + 1}}}|b", "oniguruma")
        newest = max(cache.glob("*.automaton"), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (number, number))
        assert len([*cache.glob("*.automaton")]) == min(number + 1, 5)
    assert len(builds) == 8
    compile_pattern("a{1,8}|b", "oniguruma")
    assert len(builds) == 8
    compile_pattern("a{1,1}|b", "oniguruma")
    assert len(builds) == 9
