"""The fast way of an answer's ids: those that cannot concern the splitter pass through the core, as many as there are.

A splitter says what may pass (`Passage`); this tells the core. Without it every id goes the long way, through the
splitter, and gives the same.
"""

from __future__ import annotations

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.base import Passage, Splitter

_ANYTHING = Passage("")


class FastPath:
    """Tells the core what may pass, whenever that has changed."""

    __slots__ = ("_detok", "_known")

    def __init__(self, detok: _core.Detokenizer) -> None:
        self._detok = detok
        self._known: Passage | None = None
        detok.let_pass(None)  # a copy lets pass what the original did

    def open(self, splitter: Splitter | None, goes_on: bool) -> None:
        """Let pass what the splitter need not see: what it holds back, and text that just `goes_on` as the last did."""
        passage = _ANYTHING if splitter is None else splitter.passage
        if passage is None or not (goes_on or passage.held):
            self.close()
        elif passage is not self._known or passage.scanner is not None:
            self._known = passage
            self._detok.let_pass(passage)

    def close(self) -> None:
        """Let nothing pass."""
        if self._known is not None:
            self._known = None
            self._detok.let_pass(None)
