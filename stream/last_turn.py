"""The last turn of a prompt: what an answer goes on after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tokenweir.encode import _core
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.chunk import id_list

MOST_IDS = 2048
"""As many ids of a prompt are looked at, at most, however long it is: the first token must not wait for that."""


class LastTurn(NamedTuple):
    """What a prompt ends with.

    Attributes:
        text: What comes after its last control token; or only its end, if that is not known.
        begins: Whether the text is the whole turn.

    """

    text: str
    begins: bool


def last_turn(tok: Tokenizer, prompt_ids: Sequence[int], ends: _core.IdSet, least: int) -> LastTurn:
    """Decode what comes after the last of some control tokens.

    Args:
        tok: The tokenizer whose ids these are.
        prompt_ids: The prompt; of a list, only its end is looked at.
        ends: Those control tokens.
        least: If none of them is among the last `MOST_IDS` ids, only the end of the text is given: so many characters
            or more, white space at its end not counted, unless there are fewer.

    Raises:
        TokenIdError: One of the ids is outside the vocabulary.

    """
    if type(prompt_ids) is not list:
        prompt_ids = id_list(prompt_ids)
    first = max(0, len(prompt_ids) - MOST_IDS)
    place = ends.last_in(prompt_ids, first)
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
