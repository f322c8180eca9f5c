"""The last turn of a prompt: what an answer goes on after."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tokenweir.encode import _core
from tokenweir.encode.tokenizer import Tokenizer

MOST_IDS = 2048
"""As many ids of a prompt are looked at, at most, however long it is: the first token must not wait for that."""

_controls: WeakKeyDictionary[Tokenizer, dict[frozenset[str], _core.IdSet]] = WeakKeyDictionary()


class LastTurn(NamedTuple):
    """What a prompt ends with.

    Attributes:
        text: What comes after its last control token; or only its end, if that is not known.
        begins: Whether the text is the whole turn.

    """

    text: str
    begins: bool


def last_turn(tok: Tokenizer, prompt_ids: list[int], tags: Collection[str], least: int) -> LastTurn:
    """Decode what comes after the last control token that is none of `tags`.

    Args:
        tok: The tokenizer whose ids these are.
        prompt_ids: The prompt.
        tags: Control tokens that do not separate turns.
        least: If that token is not among the last `MOST_IDS` ids, only the end of the text is given: so many
            characters or more, white space at its end not counted, unless the turn is shorter.

    Raises:
        TokenIdError: One of the ids is outside the vocabulary.

    """
    first = max(0, len(prompt_ids) - MOST_IDS)
    place = _control_ids(tok, frozenset(tags)).last_in(prompt_ids, first)
    if place is not None:
        return LastTurn(tok.decode(prompt_ids[place + 1 :], skip_special_tokens=False), True)
    # The first characters may be other ones than in the whole text: half of one, a space that a decoder strips.
    count = 16
    while True:
        start = max(first, len(prompt_ids) - count)
        text = tok.decode(prompt_ids[start:], skip_special_tokens=False)
        if start == first or len(text.rstrip()) >= least + 4:
            return LastTurn(text, False)
        count *= 4


def _control_ids(tok: Tokenizer, tags: frozenset[str]) -> _core.IdSet:
    found = _controls.setdefault(tok, {})
    if tags not in found:
        ids = {tok.token_to_id(text) for text in tok.control_texts if text not in tags}
        # End tokens too: DeepSeek's and others' role tokens are not special ones.
        found[tags] = _core.IdSet([token_id for token_id in tok.eos_ids | ids if token_id is not None])
    return found[tags]
