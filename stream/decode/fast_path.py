"""Fast path: ids whose text cannot affect the splitter bypass it inside the core, a run at a time.

A splitter describes such text by a `Passage`, which is configured in the core here. Without the fast path, every id
goes through the splitter, with the same result.
"""

from __future__ import annotations

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.base import Passage, Splitter

_ANYTHING = Passage("")


class FastPath:
    """Configuration of the core's fast path, updated only when it changes."""

    __slots__ = ("_detok", "_known")

    def __init__(self, detok: _core.Detokenizer) -> None:
        self._detok = detok
        self._known: Passage | None = None
        detok.let_pass(None)  # a copied detokenizer has the original's fast path

    def open(self, splitter: Splitter | None, goes_on: bool) -> None:
        """Enable the fast path for the splitter's `Passage`; `goes_on` if text continues the last delta."""
        passage = _ANYTHING if splitter is None else splitter.passage
        if passage is None or not (goes_on or passage.held):
            self.close()
        elif passage is not self._known or passage.scanner is not None:
            self._known = passage
            self._detok.let_pass(passage)

    def close(self) -> None:
        """Disable the fast path."""
        if self._known is not None:
            self._known = None
            self._detok.let_pass(None)
