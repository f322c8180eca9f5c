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
from weakref import WeakKeyDictionary

from tokenweir.encode.components.added_tokens import is_control, is_plain
from tokenweir.encode.spec import NFC, AddedToken, NormalizerSequence, Prepend, Replace
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates._native import ControlTokens, Rendering

_ROUNDS = 8  # of encoding again, after which all user text is guarded


def control_texts(added_tokens: Iterable[AddedToken]) -> tuple[str, ...]:
    """The texts of the added tokens that control the model, by the rule of `Tokenizer.control_texts`."""
    return tuple(token.content for token in added_tokens if is_control(token))


@lru_cache(maxsize=64)
def search_for(tokens: tuple[str, ...], exempt: tuple[str, ...]) -> ControlTokens:
    """The search for some control tokens; `exempt` are those that an assistant's content may have."""
    return ControlTokens(list(tokens), list(exempt))


class TokenizerGuard:
    """Control tokens as a tokenizer matches them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokens = tuple(tokenizer.control_texts)
        ids = ((tokenizer.token_to_id(token), token) for token in self._tokens)
        self._texts = {token_id: token for token_id, token in ids if token_id is not None}
        self._sees_other_text = _sees_other_text(tokenizer)

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> TokenizerGuard:
        """The guard of a tokenizer, made once."""
        guard = _guards.get(tokenizer)
        if guard is None:
            guard = _guards[tokenizer] = cls(tokenizer)
        return guard

    def search(self, exempt: tuple[str, ...]) -> ControlTokens:
        """Return the search for the tokenizer's control tokens; `exempt` as for `search_for`."""
        return search_for(self._tokens, exempt)

    def guarded(self, rendering: Rendering, tokenizer: Tokenizer, exempt: tuple[str, ...]) -> tuple[int, ...]:
        """Find the characters over which no control token may match.

        Args:
            rendering: The prompt.
            tokenizer: The tokenizer of this guard.
            exempt: Control tokens that count in an assistant's content.

        Returns:
            Ascending offsets of characters, one for each control token that would count and must not.

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


_guards: WeakKeyDictionary[Tokenizer, TokenizerGuard] = WeakKeyDictionary()


def _first_unvouched(stretches: Sequence[tuple[int, int, bool]], start: int, end: int, exempt: bool) -> int | None:
    """Return the first of some characters that is not vouched for; `exempt`: an assistant's content counts as vouched for."""
    at = bisect_right(stretches, start, key=lambda stretch: stretch[1])  # the first that ends behind `start`
    while at < len(stretches) and stretches[at][0] < end:
        if not (exempt and stretches[at][2]):
            return max(start, stretches[at][0])
        at += 1
    return None


def _sees_other_text(tokenizer: Tokenizer) -> bool:
    """Whether control tokens may be found in text that the normalizer made of other characters."""
    normalizer = tokenizer.spec.normalizer
    steps = normalizer.normalizers if isinstance(normalizer, NormalizerSequence) else (normalizer,)
    if normalizer is None or not steps:
        return False
    if any(token.normalized for token in tokenizer.added_tokens if is_control(token)):
        return True
    return not all(_only_adds_words(step) for step in steps)


def _only_adds_words(step: object) -> bool:
    """Whether no control token's punctuation comes from a step of a normalizer."""
    match step:
        case NFC():
            return True
        case Prepend(prepend=added) | Replace(content=added):
            return is_plain(added)
        case _:
            return False
