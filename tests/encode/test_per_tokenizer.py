"""Facts about a tokenizer are found once, and dropped with it."""

from __future__ import annotations

import gc
import weakref

import pytest

from tokenweir.encode.per_tokenizer import per_tokenizer, weakly_cached
from tokenweir.stream.prompts.turns.token_tables import control_ids, id_lengths, prepare
from tokenweir.templates.guard import guard_of


def test_facts_are_found_once_for_each_argument(small):
    asked = []

    @per_tokenizer
    def size(tokenizer, times=1):
        """Return a size."""
        asked.append(times)
        return tokenizer.vocab_size * times

    one, other = small(), small(words=[])
    n, m = one.vocab_size, other.vocab_size
    assert [size(one), size(one), size(one, 2), size(other), size(one, 2)] == [n, n, 2 * n, m, 2 * n]
    assert asked == [1, 2, 1]
    assert size.__doc__ == "Return a size."


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="^tokenizer is a str, not a Tokenizer such as Tokenizer.from_file"):
        control_ids("qwen3")


@pytest.mark.parametrize("fact", [id_lengths, control_ids, guard_of, prepare])
def test_no_fact_keeps_its_tokenizer(small, fact):
    tokenizer = small()
    fact(tokenizer)
    gone = weakref.ref(tokenizer)
    del tokenizer
    gc.collect()
    assert gone() is None


def test_errors_are_not_cached():
    class Key:
        fails = True

    @weakly_cached
    def find(key):
        if key.fails:
            raise LookupError
        return 1

    key = Key()
    with pytest.raises(LookupError):
        find(key)
    key.fails = False
    assert find(key) == 1
