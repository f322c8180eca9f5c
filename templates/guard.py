"""The guard that keeps user text from becoming control tokens, whatever a template does with it.

A template pastes control text and user text into one string. The guard puts a mark after every character of user text
that could be part of a control token, renders, and reads from the marks where user text came to stand; the tokenizer
then matches no control token there. Marks travel with their character through concatenation, `replace`, `split` and
JSON, so that text which a template puts together from harmless parts is found as well.

Where the template's own text breaks off inside a control token (`seams.py`), what could complete it is marked too.

The scheme is sound as long as the marks do not change what the template does. `MarkedEnvironment` makes a template
blind to them, and `ChatTemplate` checks it on every render: the marked rendering without its marks must equal the
rendering that was never marked.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from tokenweir.encode.components.added_tokens import is_control, is_plain
from tokenweir.encode.spec import AddedToken
from tokenweir.templates.marks import MARK
from tokenweir.templates.seams import Seams

NONCHARACTERS = re.compile("[\ufdd0-\ufdef]")
DEFAULT_CHARACTERS = frozenset("<[]\u2581\u25c1")  # with which the control tokens of every known model can be told
_ESCAPED_MARK = re.compile(r"\\+ufdd0|\ufdd0")  # what repr() or JSON makes of it
_ORDINARY = frozenset("_-./: ")


class Guard:
    """Marks user text and reads the marks.

    Attributes:
        characters: The characters that are marked.

    """

    def __init__(
        self,
        control_tokens: Iterable[str],
        *,
        characters: Iterable[str] = (),
        exempt: Iterable[str] = (),
        literals: Iterable[str] = (),
        known: bool = True,
    ) -> None:
        """Build a guard.

        Args:
            control_tokens: One character of each of these is marked, wherever it stands in user text.
            characters: More characters to mark.
            exempt: Tags left unmarked in the assistant's content, since templates look for them there.
            literals: All text that the template holds: user text that could complete it to a control token is marked.
            known: The tokenizer has no other control tokens.

        """
        tokens = tuple(control_tokens)
        self._seams = Seams(literals, tokens, known=known)
        self.characters = frozenset(characters) | {telltale(token) for token in tokens}
        wanted = self.characters | self._seams.characters
        forms = {f for c in wanted for f in _forms(c)}
        letters = any(c.isalpha() for c in forms)
        lookalikes = _lookalikes(letters)
        self._marked = wanted.union(forms, *(lookalikes.get(form, "") for form in forms))
        self._ascii = tuple(c for c in self._marked if c.isascii())
        # A token may begin with what is no telltale, `_<EOT>`: at the end of a text it is dangerous all the same.
        self._heads = tuple(head for token in tokens if (head := token[: token.index(telltale(token))]).strip())
        tags = sorted(exempt, key=len, reverse=True)
        self._exempt = re.compile("(" + "|".join(map(re.escape, tags)) + ")") if tags else None

    def concerns(self, texts: Iterable[str]) -> bool:
        """Whether there is anything to mark in the texts."""
        texts = list(texts)
        joined = "\n".join(texts)
        if any(c in joined for c in (self._ascii if joined.isascii() else self._marked)):
            return True
        return any(self._is_odd(text) for text in texts) if self._heads or self._seams else False

    def mark(self, value: Any) -> Any:
        """Mark every string in JSON-like data, the keys of dicts included."""
        return _map(value, self._mark_text)

    def mark_assistant(self, content: Any) -> Any:
        """Mark an assistant's content, except for the exempt tags."""
        return _map(content, self._mark_around_tags)

    def _is_odd(self, text: str) -> bool:
        """Whether a text is dangerous for more than the characters in it."""
        return self._seams.completes(text) or text.rstrip().endswith(self._heads)

    def _mark_text(self, text: str) -> str:
        characters = self._ascii if text.isascii() else self._marked
        if (self._heads or self._seams) and self._is_odd(text):
            if (head := text.rstrip()).endswith(self._heads):
                text = head + MARK + text[len(head) :]
            text = self._seams.at_words(text, lambda word: word if word[1:2] == MARK else word[0] + MARK + word[1:])
        for character in characters:  # many times faster than one regular expression
            if character in text:
                text = text.replace(character, character + MARK)
        return text

    def _mark_around_tags(self, text: str) -> str:
        if self._exempt is None:
            return self._mark_text(text)
        pieces = self._exempt.split(text)
        return "".join(piece if number % 2 else self._mark_text(piece) for number, piece in enumerate(pieces))

    def locate(self, marked: str, plain: str) -> tuple[int, ...] | None:
        """Find the marked characters.

        Args:
            marked: What the template made of marked messages.
            plain: What it made of the same messages without marks.

        Returns:
            Offsets in `plain`, ascending; None if the marks changed the rendering otherwise than by standing in it.

        """
        pieces = marked.split(MARK)
        if "".join(pieces) != plain:
            pieces = _ESCAPED_MARK.split(marked)
            if "".join(pieces) != plain:
                return None
        offsets = []
        length = 0
        for piece in pieces[:-1]:
            length += len(piece)
            # A template may have removed the character; a mark alone says nothing about what stands before it.
            if piece and (piece[-1] in self._marked or self._seams or self._heads):
                offsets.append(length - 1)
        return tuple(offsets)

    def uncovered(self, control_tokens: Iterable[str]) -> str | None:
        """The first of `control_tokens` that has no marked character, which user text could therefore spell."""
        return next((token for token in control_tokens if self.characters.isdisjoint(token)), None)


def control_texts(added_tokens: Iterable[AddedToken]) -> tuple[str, ...]:
    """The texts of the added tokens that control the model, by the rule of `Tokenizer.control_texts`."""
    return tuple(token.content for token in added_tokens if is_control(token))


def telltale(token: str) -> str:
    """The character of a control token by which user text that spells it is noticed.

    Rare is best, as marks are in the way of templates that look into the text: the first that is neither a letter, a
    digit nor plain punctuation, else the first that is no space. (U+2581 is one: a normalizer may make it of a space.)
    """
    spaceless = token.strip(" \t\r\n\u2581")
    return next((c for c in token if not (is_plain(c) or c in _ORDINARY)), spaceless[:1] or token[0])


@cache
def _lookalikes(letters: bool) -> Mapping[str, Sequence[str]]:
    """Of what characters a normalizer (NFKC, NFKD, stripped accents) makes others: of the full-width `＜` it makes `<`.

    Only tokens with `normalized=True` match in normalized text, so this matters to few tokenizers; it costs 30 ms, once.

    Args:
        letters: With both cases of each letter, for a normalizer may make one of the other, and with the forms above the
            Basic Multilingual Plane, which are of letters, digits and the punctuation of numbered lists only.

    """
    form = _forms if letters else partial(unicodedata.normalize, "NFKD")
    made_of = defaultdict[str, list[str]](list)
    for c in map(chr, range(0xA0, 0x20000 if letters else 0x10000)):
        if (made := form(c)) != c:
            for one in made:
                made_of[one].append(c)
    return made_of


def _forms(character: str) -> str:
    """What a normalizer may make of a character, one at a time, and for a letter both cases of it."""
    form = unicodedata.normalize("NFKD", character)
    return form + form.lower() + form.upper() if form.isalpha() else form


def _map(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map(item, change) for item in value]
    if isinstance(value, dict):
        return {change(key): _map(item, change) for key, item in value.items()}
    return value
