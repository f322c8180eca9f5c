from __future__ import annotations

import numpy as np
import pytest

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenIdError
from tokenweir.stream.decode.parsers.last_turn import PART, LastTurn


def ids_of(tok, *tokens):
    return _core.IdSet([tok.token_to_id(token) for token in tokens])


def read(turn):
    return "".join(turn.texts()), turn.begins


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_the_text_after_the_last_control_token(mistral_tok, kind):
    ids = kind(mistral_tok.encode("one<skip>two<eos>three[THINK]"))
    assert read(LastTurn(mistral_tok, ids, ids_of(mistral_tok, "<skip>", "<eos>"))) == ("three[THINK]", True)
    assert read(LastTurn(mistral_tok, ids, ids_of(mistral_tok, "[THINK]"))) == ("", True)


@pytest.mark.parametrize("kind", [list, np.array])
@pytest.mark.parametrize("length", [PART - 1, PART, PART + 1, 3 * PART + 5])
def test_a_turn_of_any_length_is_found_and_comes_in_parts(tok, length, kind):
    text = "aé" * (length // 3) + "é"[: length % 3]  # parts end inside characters
    ids = [tok.token_to_id("<skip>"), *text.encode()]
    turn = LastTurn(tok, kind(ids), ids_of(tok, "<skip>"))
    parts = list(turn.texts())
    assert ("".join(parts), turn.begins) == (text, True)
    assert all(len(part) <= PART for part in parts)


def test_the_end_of_a_turn_has_no_white_space_and_is_long_enough(mistral_tok):
    ends = ids_of(mistral_tok, "<skip>")
    text = "b" * 3000 + " \n" * 300
    for before in ("", "<skip>", "a<skip>"):
        ending = LastTurn(mistral_tok, mistral_tok.encode(before + text), ends).ending(8)
        assert 8 <= len(ending) <= 3008
        assert ending.endswith("b" * 8)
        assert not ending.strip("b")
    assert LastTurn(mistral_tok, mistral_tok.encode("b" * 9 + "<skip>ab \n"), ends).ending(8) == "ab"
    assert LastTurn(mistral_tok, [], ends).ending(8) == ""


def test_an_id_outside_the_vocabulary_is_refused(tok):
    for bad in (-1, 10**6, 2**70):
        for ids in ([97, bad], [97, bad, *[98] * PART]):
            with pytest.raises(TokenIdError, match="outside the vocabulary"):
                list(LastTurn(tok, ids, ids_of(tok, "<skip>")).texts())
