"""Regular expressions in steps: a backtracking matcher that counts, and texts that make a pattern backtrack.

Python's own matcher cannot tell how much it did, and a test must not depend on the machine's speed. This one takes the
tree of Python's parser and tries the same alternatives in the same order, without the shortcuts that only save a factor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

Continue = Callable[[int], bool]
Match = Callable[[int, Continue], bool]

CHARACTERS = "\n a0_A-.:;,+<>[](){}|\"'\\/`=~@!?é\x00\x1b"
"""Samples for a class of characters."""
SINGLE = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN}
REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
MOST_SAMPLES = 8
"""Samples of a pattern's parts that are repeated, at most, and as many that stand before them."""


class TooMany(Exception):
    """The matcher has taken more steps than it may."""


class Counter:
    """Matcher of a compiled pattern that counts its steps: characters compared and positions tried.

    Attributes:
        steps: The number of steps of the last call of `run`.

    """

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._tree = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
        self._flags = self._tree.state.flags
        self._bytes = isinstance(pattern.pattern, bytes)
        self._known: dict[int, dict[Any, bool]] = {}
        self._match = self._sequence(list(self._tree))
        self._text: Any = ""
        self.steps = self._most = 0

    def run(self, method: str, text: Any, most: int = 1 << 60) -> int:
        """Return the steps of a method of a pattern on a text; raise `TooMany` after `most` of them."""
        self._text, self.steps, self._most = text, 0, most
        size, place = len(text), 0
        end: list[int] = []

        def accept(at: int) -> bool:
            if method == "fullmatch" and at != size:
                return False
            end[:] = [at]
            return True

        while place <= size:
            self._step()
            found = self._match(place, accept)
            if method in ("match", "fullmatch") or (found and method == "search"):
                break
            place = max(place + 1, end[0]) if found else place + 1
        return self.steps

    def samples(self) -> list[Any]:
        """Return texts that parts of the pattern match: each prefix of the pattern, and each part by itself."""
        return list(dict.fromkeys(self._encode(text) for text in self._prefixes(list(self._tree))))

    def characters(self) -> list[Any]:
        """Return a character for each class of the pattern, and two that often no class has."""
        found = {self._sample(item) for item in self._items(self._tree)}
        return [self._encode(text) for text in (*sorted(found - {""}), "<", "\x00")]

    def repeated(self) -> list[Any]:
        """Return texts that repeats of the pattern match once."""
        return list(dict.fromkeys(self._encode(text) for text in self._repeats(self._tree)))

    def _encode(self, text: str) -> Any:
        return text.encode("latin-1", "replace") if self._bytes else text

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._most:
            raise TooMany

    def _is(self, item: Any, at: int) -> bool:
        """Whether the character at a place is one of a class; a step."""
        self._step()
        if at >= len(self._text):
            return False
        char = self._text[at : at + 1]
        known = self._known.setdefault(id(item), {})
        if char not in known:
            known[char] = self._class(item).fullmatch(char) is not None
        return known[char]

    def _class(self, item: Any) -> re.Pattern[Any]:
        state = _parser.State()
        state.flags, state.str = self._flags, b"" if self._bytes else ""
        return _compiler.compile(_parser.SubPattern(state, [item]), self._flags)

    def _sequence(self, items: list[Any]) -> Match:
        matches = [self._item(item) for item in items]

        def match(at: int, then: Continue, place: int = 0) -> bool:
            if place == len(matches):
                return then(at)
            return matches[place](at, lambda end: match(end, then, place + 1))

        return match

    def _item(self, item: Any) -> Match:
        kind, value = item
        if kind in SINGLE:
            return lambda at, then: self._is(item, at) and then(at + 1)
        if kind is _constants.SUBPATTERN:
            return self._sequence(list(value[3]))
        if kind is _constants.BRANCH:
            ways = [self._sequence(list(way)) for way in value[1]]
            return lambda at, then: any(way(at, then) for way in ways)
        if kind in REPEATS:
            return self._repeat(kind, *value)
        if kind is _constants.ATOMIC_GROUP:
            return self._alone(self._sequence(list(value)))
        if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
            return self._look(kind is _constants.ASSERT, *value)
        if kind is _constants.AT:
            return lambda at, then: self._at(value, at) and then(at)
        raise NotImplementedError(kind)

    def _alone(self, match: Match) -> Match:
        """Return a match that keeps its first way."""

        def atomic(at: int, then: Continue) -> bool:
            end: list[int] = []
            return match(at, lambda place: not end.append(place)) and then(end[0])  # type: ignore[func-returns-value]

        return atomic

    def _repeat(self, kind: Any, least: int, most: int, inner: Any) -> Match:
        item = self._sequence(list(inner))
        lazy = kind is _constants.MIN_REPEAT

        def match(at: int, then: Continue, count: int = 0) -> bool:
            self._step()
            if lazy and count >= least and then(at):
                return True
            if count < most and item(at, lambda end: (end > at or count < least) and match(end, then, count + 1)):
                return True
            return not lazy and count >= least and then(at)

        return self._alone(match) if kind is _constants.POSSESSIVE_REPEAT else match

    def _look(self, wanted: bool, direction: int, inner: Any) -> Match:
        item, width = self._sequence(list(inner)), inner.getwidth()[1]

        def match(at: int, then: Continue) -> bool:
            begin = at if direction > 0 else at - width
            found = begin >= 0 and item(begin, lambda end: direction > 0 or end == at)
            return found == wanted and then(at)

        return match

    def _at(self, where: Any, at: int) -> bool:
        self._step()
        pattern = {
            _constants.AT_BEGINNING: r"(?m:^)" if self._flags & re.MULTILINE else r"\A",
            _constants.AT_BEGINNING_STRING: r"\A",
            _constants.AT_END: r"(?m:$)" if self._flags & re.MULTILINE else r"$",
            _constants.AT_END_STRING: r"\Z",
            _constants.AT_BOUNDARY: r"\b",
            _constants.AT_NON_BOUNDARY: r"\B",
        }[where]
        return re.compile(self._encode(pattern)).match(self._text, at) is not None

    def _items(self, tree: Any) -> Iterator[Any]:
        for item in tree:
            if item[0] in SINGLE:
                yield item
            for inner in _inside(item):
                yield from self._items(inner)

    def _repeats(self, tree: Any) -> Iterator[str]:
        for item in tree:
            for inner in _inside(item):
                if item[0] in REPEATS:
                    yield self._text_of(list(inner))
                yield from self._repeats(inner)

    def _prefixes(self, items: list[Any]) -> Iterator[str]:
        before = ""
        yield before
        for item in items:
            for inner in _inside(item):
                yield from (before + text for text in self._prefixes(list(inner)))
            before += self._text_of([item])
            yield before

    def _text_of(self, items: list[Any]) -> str:
        text = ""
        for item in items:
            kind, value = item
            if kind in SINGLE:
                text += self._sample(item)
            elif kind in REPEATS:
                text += self._text_of(list(value[2])) * min(value[1], max(1, value[0]))
            elif kind is _constants.BRANCH:
                text += self._text_of(list(value[1][0]))
            elif kind in (_constants.SUBPATTERN, _constants.ATOMIC_GROUP):
                text += self._text_of(list(value[3] if kind is _constants.SUBPATTERN else value))
        return text

    def _sample(self, item: Any) -> str:
        if item[0] is _constants.LITERAL:
            return chr(item[1])
        matches = self._class(item).fullmatch
        return next((char for char in CHARACTERS if matches(self._encode(char))), "")


def _inside(item: Any) -> list[Any]:
    kind, value = item
    if kind in REPEATS:
        return [value[2]]
    if kind is _constants.BRANCH:
        return list(value[1])
    if kind is _constants.SUBPATTERN:
        return [value[3]]
    if kind is _constants.ATOMIC_GROUP:
        return [value]
    if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
        return [value[1]]
    return []


def attacks(counter: Counter) -> Iterator[Callable[[int], Any]]:
    """Yield functions that make texts of about so many characters: a beginning, something again and again, and an end.

    The beginnings are prefixes of what the pattern matches, the repeated are characters, pairs and parts of it.
    """
    characters = counter.characters()
    empty = characters[0][:0]
    pairs = [one + other for one, other in pairwise(characters)]
    samples = counter.samples()
    samples = samples[:: max(1, len(samples) // MOST_SAMPLES)]
    pumps = filter(None, dict.fromkeys([*characters, *pairs, *counter.repeated()[:MOST_SAMPLES], *samples]))
    begins = list(dict.fromkeys([empty, *samples]))
    for pump in pumps:
        for begin in begins:
            for end in (empty, *characters[-2:]):
                yield lambda size, begin=begin, pump=pump, end=end: begin + pump * (size // len(pump)) + end  # type: ignore[misc]
