"""What a vocabulary and a prompt say about thinking: which style, whether it is open, which ids spell tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.events import Channel
from tokenweir.stream.reasoning import ReasoningParser
from tokenweir.templates.reasoning_styles import STYLES, ReasoningStyle


class PromptReading(NamedTuple):
    """What a prompt says about the answer that follows.

    Attributes:
        style: How the model marks its thinking; None if nothing shows a style.
        inside: The prompt has opened the thinking, as where the template ended with `<think>`.

    """

    style: ReasoningStyle | None
    inside: bool


def read_prompt(tok: Tokenizer, prompt_ids: Sequence[int] = (), style: ReasoningStyle | None = None) -> PromptReading:
    """Find out how a model marks its thinking, and whether its prompt has opened it.

    A style that the prompt has opened comes first, then the first whose tags are tokens of the vocabulary. A model that
    spells its tags with ordinary tokens can only be told by a prompt that opens the thinking, or by name.

    What counts in the prompt is the text after its last control token that is no part of a tag, so neither an
    unfinished thought in an earlier turn nor what a user wrote opens the thinking. Ids before that are not looked at.
    Where there is no control token, nobody can tell turns apart, and only an opener that ends the prompt counts.

    Args:
        tok: The model's tokenizer.
        prompt_ids: The prompt.
        style: The style, if it is known.

    Raises:
        TokenIdError: One of those ids is outside the vocabulary.

    """
    candidates = tuple(STYLES.values()) if style is None else (style,)
    turn, begins = _last_turn(tok, prompt_ids, candidates)
    for candidate in candidates:
        if _opens(candidate, turn, begins):
            return PromptReading(candidate, True)
    if style is None:
        owned = (s for s in candidates if all(tok.token_to_id(token) is not None for token in s.tokens))
        style = next(owned, None)
    return PromptReading(style, False)


def shown_tokens(style: ReasoningStyle, tok: Tokenizer) -> dict[int, str]:
    """Give the text of those special tokens that a style's tags consist of, by id."""
    return {tok.special_tokens[token]: token for token in style.tokens if token in tok.special_tokens}


def _opens(style: ReasoningStyle, turn: str, begins: bool) -> bool:
    # An opener that ends the prompt opens the thinking wherever it stands on its line ("Assistant: <think>"); one with
    # text after it is the beginning of an answer that the model continues, and obeys the style's policy.
    if not any(opener in turn for opener in style.openers):
        return False
    if turn.rstrip().endswith(style.openers):
        return True
    if not begins:
        return False
    parser = ReasoningParser(style)
    parser.split(turn)
    return parser.channel is Channel.REASONING


def _last_turn(tok: Tokenizer, prompt_ids: Sequence[int], styles: Sequence[ReasoningStyle]) -> tuple[str, bool]:
    """Decode what comes after the last control token that is not one of the styles' tags; and whether there is one."""
    if not prompt_ids:
        return "", False
    tags = {token for style in styles for token in style.tokens}
    controls = {tok.token_to_id(text) for text in tok.control_texts if text not in tags}
    ends = tok.eos_ids | controls  # DeepSeek's and others' role tokens are not special ones
    start = len(prompt_ids)
    while start and ends.isdisjoint(prompt_ids[max(0, start - 64) : start]):
        start = max(0, start - 64)
    while start and prompt_ids[start - 1] not in ends:
        start -= 1
    return tok.decode(prompt_ids[start:], skip_special_tokens=False), start > 0
