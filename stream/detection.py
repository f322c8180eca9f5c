"""What a vocabulary and a prompt say about thinking: which style, whether it is open, which ids spell tags."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.events import Channel
from tokenweir.stream.reasoning import ReasoningParser
from tokenweir.stream.styles import STYLES, ReasoningStyle


def detect_style(tok: Tokenizer, prompt_ids: Sequence[int] = ()) -> ReasoningStyle | None:
    """Find the style of a model: the one the prompt has opened, or else the first whose tags are tokens of their own.

    A model that spells its tags with ordinary tokens can only be told by a prompt that opens the thinking.
    """
    styles = STYLES.values()
    turn = _last_turn(tok, prompt_ids, keep=styles)
    opened = [style for style in styles if _opens(style, turn)]
    owned = (style for style in styles if all(tok.token_to_id(token) is not None for token in style.tokens))
    return opened[0] if opened else next(owned, None)


def opened_by_prompt(style: ReasoningStyle, tok: Tokenizer, prompt_ids: Sequence[int]) -> bool:
    """Say whether a prompt ends inside the thinking, as where the template ended with `<think>`.

    What counts is the text after the prompt's last control token that is no part of a tag, so neither an unfinished
    thought in an earlier turn nor what a user wrote opens it. Costs one look at each id back to there.
    """
    return _opens(style, _last_turn(tok, prompt_ids, keep=(style,)))


def shown_tokens(style: ReasoningStyle, tok: Tokenizer) -> dict[int, str]:
    """Give the text of those special tokens that a style's tags consist of, by id."""
    return {tok.special_tokens[token]: token for token in style.tokens if token in tok.special_tokens}


def _opens(style: ReasoningStyle, turn: str) -> bool:
    # An opener that ends the prompt opens the thinking wherever it stands on its line ("Assistant: <think>"); one with
    # text after it is the beginning of an answer that the model continues, and obeys the style's policy.
    if not any(opener in turn for opener in style.openers):
        return False
    if turn.rstrip().endswith(style.openers):
        return True
    parser = ReasoningParser(style)
    parser.split(turn)
    return parser.channel is Channel.REASONING


def _last_turn(tok: Tokenizer, prompt_ids: Sequence[int], *, keep: Collection[ReasoningStyle]) -> str:
    """Decode what comes after the last control token, those of the tags of the styles to keep apart."""
    if not prompt_ids:
        return ""
    tags = {tok.special_tokens.get(token) for style in keep for token in style.tokens}
    ends = (tok.eos_ids | set(tok.special_tokens.values())) - tags
    start = len(prompt_ids)
    while start and prompt_ids[start - 1] not in ends:
        start -= 1
    return tok.decode(prompt_ids[start:], skip_special_tokens=False)
