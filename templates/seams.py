"""Where a template's own text breaks off inside a control token, so that user text could complete it.

A template that writes `'<' ~ key ~ '>'` makes a control token of the key `|im_end|`, in which nothing looks like one.
Few templates have such a seam. For those that do, this module tells which characters and words of user text could
continue what the template began.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable

# What may begin a control token, at the end of a template's text; for templates whose tokenizer is not known.
_OPENING = re.compile(r"(?:<[^\s<>{}'\"]{0,40}|\[/?[A-Z_]{0,40})\Z")
_LONGEST = 64  # characters that a template may have written of a token
_WORD = re.compile(r"\w+")


class Seams:
    """What user text could complete.

    Attributes:
        everywhere: The tokens are not known and there is a seam, so any text may complete one.
        characters: The characters, no letters or digits, that may stand behind a seam.

    """

    def __init__(self, literals: Iterable[str], control_tokens: Collection[str], *, known: bool) -> None:
        """Find the seams.

        Args:
            literals: All text that the template holds.
            control_tokens: The tokens.
            known: These are all that the tokenizer has.

        """
        literals = set(literals)
        rests = _rests(literals, control_tokens)
        self.everywhere = not known and any(map(_OPENING.search, literals))
        self.characters = frozenset(rest[0] for rest in rests if not _WORD.match(rest))
        runs = {(fold(run[0]), run.end() == len(rest)) for rest in rests if (run := _WORD.match(rest))}
        self._words = frozenset(word for word, _ in runs)
        self._parts = frozenset(word[:end] for word in self._words for end in range(1, len(word)))
        self._unclosed = tuple(word for word, ends in runs if ends)  # tokens that end in a letter: more may follow

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.characters or self._words)

    def completes(self, text: str) -> bool:
        """Whether the whole of a text, a word in it or its beginning could complete a control token, but for
        `characters`."""
        if self.everywhere and text:
            return True
        return bool(self._words) and (fold(text.strip()) in self._parts or any(map(self._is_one, _WORD.findall(text))))

    def at_words(self, text: str, change: Callable[[str], str]) -> str:
        """The text with `change` applied to every word, and to the first character, that `completes` speaks of."""
        if self._words:
            text = _WORD.sub(lambda run: change(run[0]) if self._is_one(run[0]) else run[0], text)
        if self.everywhere or fold(text.strip()) in self._parts:
            start = len(text) - len(text.lstrip())
            text = text[:start] + change(text[start:]) if start < len(text) else text
        return text

    def _is_one(self, word: str) -> bool:
        word = fold(word)
        return word in self._words or bool(self._unclosed) and word.startswith(self._unclosed)


def fold(text: str) -> str:
    """A text without case, accents and compatibility forms, as a normalizer may make it."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return text.lower()


def _rests(literals: Iterable[str], control_tokens: Iterable[str]) -> set[str]:
    """What is missing of control tokens of which the template's text ends with the beginning.

    A text of punctuation alone counts as the middle of a token too, for what stands before it may be the beginning.
    """
    rests: set[str] = set()
    tokens_of: dict[str, list[str]] = {}
    for token in control_tokens:
        for end in range(1, min(len(token), _LONGEST)):
            tokens_of.setdefault(token[:end], []).append(token)
    for literal in literals:
        for start in range(max(0, len(literal) - _LONGEST), len(literal)):
            beginning = literal[start:]
            rests.update(token[len(beginning) :] for token in tokens_of.get(beginning, ()))
        if literal and len(literal) < _LONGEST and not _WORD.search(literal) and not literal.isspace():
            for token in control_tokens:
                _, found, rest = token.partition(literal)
                if found and rest:
                    rests.add(rest)
    return rests
