"""The tables of exact mode: what a token, a pair and two characters are found to be there."""

from __future__ import annotations

import random
import unicodedata
from itertools import product

import numpy as np
import pytest

from tokenweir.encode import _core
from tokenweir.encode.pattern import compile_pattern
from tokenweir.encode.pattern.minimize import boundary_pairs
from tokenweir.encode.reference import find_pieces
from tokenweir.encode.tokenizer import Tokenizer, core_of
from tokenweir.gpu.modes.tables import ExactTables, _few_rows

NONE = 0xFFFFFFFF
EMPTY = 2**64 - 1


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.fixture(scope="module")
def tables(tok):
    return _core.DeviceTables(core_of(tok).model, [(t.id, t.content.encode()) for t in tok.added_tokens])


def test_every_piece_that_is_a_token_has_its_slot(tok, tables):
    found = {}
    for first, second, id_and_length, rest in tables.pieces.tolist():
        token_id, length = id_and_length & NONE, id_and_length >> 32
        if token_id == NONE:
            continue
        head = (first.to_bytes(8, "little") + second.to_bytes(8, "little"))[:length]
        rest &= NONE
        found[head + bytes(tables.rest[rest : rest + max(0, length - 16)])] = token_id
    whole = {tok.token_bytes(i): i for i in range(tok.vocab_size) if tok.encode(tok.id_to_token(i) or "") == [i]}
    assert len(found) > 7500
    assert all(tok.token_bytes(token_id) == token for token, token_id in found.items())
    control = {t.id for t in tok.added_tokens}
    by_merging = {i for i in found.values() if i not in control}
    assert by_merging == set(found.values())
    assert {i for token, i in whole.items() if i not in control and token.isascii()} <= by_merging
    assert len(tables.pieces) >= 2 * len(found)


def test_every_pair_is_in_its_bucket_or_behind_a_full_one(tok, tables):
    pairs = {
        (slot >> 44, slot >> 24 & 0xFFFFF): slot & 0xFFFFFF
        for slot in core_of(tok).model.pairs.tolist()
        if slot != EMPTY
    }
    found = {}
    shift = 65 - len(tables.pairs).bit_length()
    for number, bucket in enumerate(tables.pairs.tolist()):
        taken = [slot for slot in bucket if slot != EMPTY]
        assert bucket[: len(taken)] == taken
        for slot in taken:
            key = slot >> 24
            at = (key * 0x9E3779B97F4A7C15 & EMPTY) >> shift
            while at != number:
                assert EMPTY not in tables.pairs[at].tolist()
                at = (at + 1) % len(tables.pairs)
            found[key >> 20, key & 0xFFFFF] = slot & 0xFFFFFF
    assert found == pairs
    assert tables.pairs.size >= 2 * len(pairs)


def test_pairs_become_what_the_model_makes_of_them(tok, tables):
    merged = core_of(tok).model.merged
    here = tables.merged_ids if tables.merged_ids.size else np.arange(len(merged)) + tables.merged_shift
    assert here.tolist() == merged.tolist()
    assert tables.byte_ids.tolist() == [tok.encode(chr(b))[0] if b < 128 else tables.byte_ids[b] for b in range(256)]
    assert tables.lengths.tolist() == [
        len(tok.token_bytes(i)) if i < len(tables.lengths) else 0 for i in range(len(tables.lengths))
    ]


@pytest.mark.parametrize("pattern", [r"\p{N}{1,3}", r"[ab]+c|\s+(?!\S)|\s", r" ?\p{L}+|\s+|'s", r"\d\d|x"])
def test_walks_end_between_the_characters_of_a_boundary_pair(pattern):
    automaton = compile_pattern(pattern, "oniguruma")
    pairs = boundary_pairs(automaton.transitions)
    assert (pairs | ~automaton.sync).all()
    pick = random.Random(pattern)
    for _ in range(400):
        text = "".join(pick.choices("aabc xé  1 2\n's", k=pick.randint(2, 15)))
        classes = automaton.classes(text)
        begins = {start for start, _, _ in find_pieces(automaton, text)}
        inside_gaps = {i for start, end, gap in find_pieces(automaton, text) if gap for i in range(start, end)}
        for i in range(1, len(text)):
            if automaton.sync[classes[i - 1], classes[i]]:
                assert i in begins
            if pairs[classes[i - 1], classes[i]]:
                assert i in begins or i in inside_gaps


def test_ranks_say_what_form_c_leaves_alone():
    ranks = _core.nfc_ranks()
    assert ranks.shape == (0x110000,)
    by_class = {}
    for code in range(0x110000):
        c = chr(code)
        if 0xD800 <= code < 0xE000 or unicodedata.category(c) == "Cn":
            continue
        if unicodedata.normalize("NFC", c) != c:
            assert ranks[code] == 255, hex(code)
        elif ranks[code] == 253:
            assert unicodedata.normalize("NFD", c) != c and not unicodedata.combining(c)
        elif ranks[code] < 253:
            by_class.setdefault(unicodedata.combining(c), set()).add(int(ranks[code]))
    assert by_class.pop(0) == {0}
    for found in by_class.values():
        found.discard(0)  # the library's Unicode is older than Python's, and does not know all marks
    assert all(len(found) <= 1 for found in by_class.values())
    in_order = [found.pop() for _, found in sorted(by_class.items()) if found]
    assert len(in_order) > 50 and in_order == sorted(set(in_order))


def test_pairs_are_those_that_form_c_makes_one_of():
    """Of each that it knows, and of some others none."""
    pairs = [(pair >> 32, pair & 0xFFFFFFFF) for pair in _core.nfc_pairs().tolist()]
    assert pairs == sorted(set(pairs)) and len(pairs) > 900
    known = [(a, b) for a, b in pairs if unicodedata.category(chr(a)) != "Cn" and unicodedata.category(chr(b)) != "Cn"]
    joined = [unicodedata.normalize("NFC", chr(a) + chr(b)) for a, b in known]
    assert sum(len(text) == 1 for text in joined) > 900  # Python's Unicode is older than the library's
    ranks, there = _core.nfc_ranks(), {*pairs}
    firsts, seconds = sorted({a for a, _ in pairs}), sorted({b for _, b in pairs})
    assert all(ranks[b] == 254 for b in seconds)
    for a, b in product(firsts, seconds):
        if ranks[a] == 0 and len(unicodedata.normalize("NFC", chr(a) + chr(b))) == 1:
            assert (a, b) in there


@pytest.mark.parametrize("name", ["gpt2/tokenizer.json", "llama-3.1/tokenizer.json", "openai/o200k_base.tiktoken"])
def test_sizes_of_real_vocabularies(device, data, name):
    tok = Tokenizer.from_file(data(f"tokenizers/{name}"))
    tables = _core.DeviceTables(core_of(tok).model, [(t.id, t.content.encode()) for t in tok.added_tokens])
    n_pairs = int((core_of(tok).model.pairs != EMPTY).sum())
    assert (tables.pairs != EMPTY).sum() == n_pairs
    assert n_pairs / tables.pairs.size <= 0.5
    assert (tables.merged_ids.size == 0) == (name != "llama-3.1/tokenizer.json")
    assert len(ExactTables(tok, device).cuts) == 1


def test_rows_beyond_the_most_share_a_number():
    matrix = np.eye(6, dtype=np.bool_)[:, [3, 1, 4, 0, 5, 2, 3]]
    rows, numbers = _few_rows(matrix, 6)
    assert np.array_equal(rows[numbers], matrix)
    rows, numbers = _few_rows(matrix, 4)
    assert len(rows) == 4
    assert (rows[numbers] >= matrix).all()
    assert np.array_equal(rows[numbers[numbers < 3]], matrix[numbers < 3])
