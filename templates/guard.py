"""The guard that keeps user text from becoming control tokens, whatever a template does with it.

The engine tells who wrote each byte of a prompt. A control token counts only where all its bytes are the template's, or
vouched for: roles, and tokens that a template gets as variables. Thinking tags in an assistant's content count too, since
templates look for them there, unless the template is told otherwise.

Most tokenizers match control tokens in the text as it is, so it is searched for them. Some match in normalized text, or
have a model that makes control tokens of it; the prompt is encoded then, and the offsets of the control ids show where
their characters stand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache

from tokenweir.encode.components.added_tokens import is_control, is_plain
from tokenweir.encode.per_tokenizer import per_tokenizer
from tokenweir.encode.spec import NFC, AddedToken, NormalizerSequence, Prepend, Replace
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates._native import ControlTokens, Rendering

_ROUNDS = 8  # of encoding again, after which all user text is guarded


def control_texts(added_tokens: Iterable[AddedToken]) -> tuple[str, ...]:
    """Return the texts of the added tokens that control the model: special tokens, and tokens with punctuation."""
    return tuple(token.content for token in added_tokens if is_control(token))


@lru_cache(maxsize=64)
def search_for(tokens: tuple[str, ...], exempt: tuple[str, ...]) -> ControlTokens:
    """Return a matcher for control tokens in rendered prompts, from a cache.

    Args:
        tokens: The texts of the control tokens.
        exempt: Those that count as control tokens also in an assistant's content, which a template may search for them.

    """
    return ControlTokens(list(tokens), list(exempt))


class TokenizerGuard:
    """The guard of one tokenizer: it finds text of a prompt that the tokenizer would wrongly take for control tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokens = tuple(tokenizer.control_texts)
        ids = ((tokenizer.token_to_id(token), token) for token in self._tokens)
        self._texts = {token_id: token for token_id, token in ids if token_id is not None}
        self._sees_other_text = _sees_other_text(tokenizer)

    def search(self, exempt: tuple[str, ...]) -> ControlTokens:
        """Return the matcher for the tokenizer's control tokens; `exempt` is as for `search_for`."""
        return search_for(self._tokens, exempt)

    def guarded(self, rendering: Rendering, tokenizer: Tokenizer, exempt: tuple[str, ...]) -> tuple[int, ...]:
        """Find the characters over which no control token may match, because user text spells it.

        Args:
            rendering: The prompt.
            tokenizer: The tokenizer of this guard.
            exempt: Control tokens that count also in an assistant's content.

        Returns:
            Ascending offsets of characters: for each occurrence of a control token that is not wholly the template's, its
            first character that is not. All characters of user text if these cannot be determined.

        """
        guarded = rendering.guarded(self.search(exempt))
        if not self._sees_other_text:
            return guarded
        offsets = set(guarded)
        text = rendering.text
        unvouched = rendering.unvouched
        for _ in range(_ROUNDS):
            encoded = tokenizer.encode_with_offsets(text, add_special_tokens=False, guarded=sorted(offsets))
            wrong = set()
            for token_id, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
                token = self._texts.get(token_id)
                if token is None:
                    continue
                if token == token.strip():  # white space around a token is not part of it
                    start += len(text[start:end]) - len(text[start:end].lstrip())
                    end = start + len(text[start:end].rstrip())
                found = _first_unvouched(unvouched, start, end, token in exempt)
                if found is not None:
                    wrong.add(found)
            if not wrong:
                return tuple(sorted(offsets))
            if wrong & offsets:  # the offsets of some normalizers are those of a character beside the right one
                break
            offsets |= wrong
        return tuple(i for start, end, _ in unvouched for i in range(start, end))


guard_of = per_tokenizer(TokenizerGuard)
"""Return the guard of a tokenizer, which is made once for each."""


def _first_unvouched(stretches: Sequence[tuple[int, int, bool]], start: int, end: int, exempt: bool) -> int | None:
    """Return the first character in [start, end) that comes from user text, or None.

    Args:
        stretches: The stretches of user text, as in `Rendering.unvouched`.
        start: The first character to look at.
        end: The character after the last one.
        exempt: Whether an assistant's content does not count as user text.

    """
    at = bisect_right(stretches, start, key=lambda stretch: stretch[1])  # the first that ends behind `start`
    while at < len(stretches) and stretches[at][0] < end:
        if not (exempt and stretches[at][2]):
            return max(start, stretches[at][0])
        at += 1
    return None


def _sees_other_text(tokenizer: Tokenizer) -> bool:
    """Return whether the tokenizer may match a control token where the text has other characters, before normalizing."""
    normalizer = tokenizer.spec.normalizer
    steps = normalizer.normalizers if isinstance(normalizer, NormalizerSequence) else (normalizer,)
    if normalizer is None or not steps:
        return False
    if any(token.normalized for token in tokenizer.added_tokens if is_control(token)):
        return True
    return not all(_only_adds_words(step) for step in steps)


def _only_adds_words(step: object) -> bool:
    """Return whether a normalizer's step is known to add only letters, digits and white space to a text.

    Such a step cannot make a control token of other text.
    """
    match step:
        case NFC():
            return True
        case Prepend(prepend=added) | Replace(content=added):
            return is_plain(added)
        case _:
            return False
