from __future__ import annotations

import pytest

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenIdError
from tokenweir.stream.last_turn import MOST_IDS, last_turn


def ids_of(tok, *tokens):
    return _core.IdSet([tok.token_to_id(token) for token in tokens])


def test_the_text_after_the_last_control_token(mistral_tok):
    ids = mistral_tok.encode("one<skip>two<eos>three[THINK]")
    assert last_turn(mistral_tok, ids, ids_of(mistral_tok, "<skip>", "<eos>"), 8) == ("three[THINK]", True)
    assert last_turn(mistral_tok, ids, ids_of(mistral_tok, "[THINK]"), 8) == ("", True)


def test_without_one_the_end_of_the_prompt(mistral_tok):
    ends = ids_of(mistral_tok, "<skip>")
    ids = mistral_tok.encode("a" * 3000 + " \n" * 300)
    turn = last_turn(mistral_tok, ids, ends, 8)
    assert not turn.begins
    assert len(turn.text.rstrip()) >= 8
    assert ("a" * 3000 + " \n" * 300).endswith(turn.text)
    assert last_turn(mistral_tok, mistral_tok.encode("ab"), ends, 8) == ("ab", False)
    assert last_turn(mistral_tok, [], ends, 8) == ("", False)


@pytest.mark.parametrize(("length", "begins"), [(MOST_IDS - 1, True), (MOST_IDS, False), (100_000, False)])
def test_so_many_ids_are_looked_at(tok, length, begins):
    ids = [tok.token_to_id("<skip>"), *[97] * length]
    turn = last_turn(tok, ids, ids_of(tok, "<skip>"), 8)
    assert turn.begins is begins
    assert len(turn.text) == length if begins else len(turn.text) < 100


def test_an_id_outside_the_vocabulary_is_refused(tok):
    for bad in (-1, 10**6, 2**70):
        with pytest.raises(TokenIdError, match="outside the vocabulary"):
            last_turn(tok, [97, bad], ids_of(tok, "<skip>"), 8)
