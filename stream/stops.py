"""Stop strings: text in, the same text out up to the first stop.

The matcher is an Aho-Corasick automaton (Aho and Corasick, 1975). It finds the match that completes earliest, wherever
the text is cut, in time linear in the text, and its state *is* the held text: the longest suffix of the text that is
a proper prefix of a stop. Nothing that has gone out is kept or looked at again.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

from msgspec import Struct


class StopStep(Struct, frozen=True, gc=False):
    """What one step gave.

    Attributes:
        text: Text that can no longer be part of a stop.
        matched: The stop that has ended the text, in this step or before; None while there is none.

    """

    text: str
    matched: str | None = None


class StopStrings:
    """Cuts text at the first stop string and holds back what may still become one.

    The match that completes earliest wins; of several that complete at the same character, the one listed first.

    Attributes:
        matched: The stop that was found, or None.

    """

    __slots__ = ("_automaton", "_include", "_state", "matched")

    def __init__(self, stops: Iterable[str], *, include: bool = False) -> None:
        """Build the automaton, in time and memory linear in the stops' total length.

        Args:
            stops: The stop strings, most wanted first; a single string is one stop.
            include: Keep the stop itself in the text.

        Raises:
            TypeError: A stop is not a string.
            ValueError: A stop is empty.

        """
        self._automaton = _Automaton(stop_tuple(stops))
        self._include = include
        self._state = 0
        self.matched: str | None = None

    @property
    def starts(self) -> frozenset[str]:
        """The characters that stops begin with; while nothing is held, text without them passes whole."""
        return self._automaton.starts

    @property
    def held(self) -> str:
        """The text that is held back: the longest suffix that is a proper prefix of a stop."""
        return self._automaton.prefix(self._state)

    def step(self, text: str, *, ignore: int = 0) -> StopStep:
        """Take more text; give what is final.

        Args:
            text: The next piece, of any length.
            ignore: A match that completes within so many characters of `text` does not count, and its text stays.

        Returns:
            The final text and the stop, if one has been found. After a stop, later text is dropped.

        """
        if self.matched is not None:
            return StopStep("", self.matched)
        automaton = self._automaton
        if self._state == 0 and automaton.first(text) is None:
            return StopStep(text)
        held = self.held
        end, self._state, self.matched = automaton.run(self._state, text, ignore)
        if self.matched is None:
            kept = len(held) + len(text) - automaton.depth[self._state]
        else:
            kept = len(held) + end - (0 if self._include else len(self.matched))
        return StopStep((held + text)[:kept], self.matched)

    def flush(self) -> str:
        """Give the held text: no more follows that could make a stop of it."""
        held, self._state = self.held, 0
        return held


def stop_tuple(stops: Iterable[str]) -> tuple[str, ...]:
    """Check stop strings and return them in order; a single string is one stop."""
    listed = (stops,) if isinstance(stops, str) else tuple(stops)
    for place, stop in enumerate(listed):
        if not isinstance(stop, str):
            raise TypeError(f"stop string {place} is {type(stop).__name__} {stop!r}, not a str")
        if not stop:
            raise ValueError(f"stop string {place} of {len(listed)} is empty; it would end every text at once")
    return listed


class _Automaton:
    """The trie of the stops with failure links; node 0 is the root, and a node's path is a prefix of a stop.

    Attributes:
        depth: Length of each node's path.
        starts: The first characters of all stops.
        first: Finds the first of them in a text, from a position on.

    """

    __slots__ = ("_best", "_children", "_fail", "_owner", "_stops", "depth", "first", "starts")

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._children: list[dict[str, int]] = [{}]
        self._owner = [0]  # a stop that begins with the node's path
        self._best = [-1]  # the first-listed stop that ends at the node, on its path or on a suffix of it
        self.depth = [0]
        for number, stop in enumerate(stops):
            node = 0
            for char in stop:
                child = self._children[node].get(char)
                if child is None:
                    child = self._children[node][char] = len(self.depth)
                    self._children.append({})
                    self._owner.append(number)
                    self._best.append(-1)
                    self.depth.append(self.depth[node] + 1)
                node = child
            if self._best[node] < 0:
                self._best[node] = number
        self._fail = [0] * len(self.depth)
        self._link()
        self.starts = frozenset(self._children[0])
        # A search at C speed for where the next stop could begin: ordinary text never reaches the automaton.
        one_of = "".join(map(re.escape, self._children[0]))
        self.first = re.compile(f"[{one_of}]" if one_of else r"(?!)").search

    def _link(self) -> None:
        """Set the failure links, breadth first, and hand down the stops that end at a suffix."""
        queue = deque(self._children[0].values())
        while queue:
            node = queue.popleft()
            best, inherited = self._best[node], self._best[self._fail[node]]
            if inherited >= 0 and (best < 0 or inherited < best):
                self._best[node] = inherited
            for char, child in self._children[node].items():
                self._fail[child] = self._next(self._fail[node], char)
                queue.append(child)

    def _next(self, node: int, char: str) -> int:
        children = self._children
        while node and char not in children[node]:
            node = self._fail[node]
        return children[node].get(char, 0)

    def prefix(self, node: int) -> str:
        return self._stops[self._owner[node]][: self.depth[node]] if node else ""

    def run(self, node: int, text: str, ignore: int) -> tuple[int, int, str | None]:
        """Walk over `text`; return where the walk ended, the node there, and the stop that ended it."""
        children, best, position, length = self._children, self._best, 0, len(text)
        while position < length:
            if node == 0:
                begin = self.first(text, position)
                if begin is None:
                    break
                position = begin.start()
            node = self._next(node, text[position])
            position += 1
            if best[node] >= 0:
                if position > ignore:
                    return position, 0, self._stops[best[node]]
                while node and not children[node]:  # a whole stop is no proper prefix: hold what still is one
                    node = self._fail[node]
        return length, node, None
