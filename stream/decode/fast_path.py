"""Fast path: ids whose text cannot affect the splitter bypass it inside the core, a run at a time.

A splitter describes such text by a `SkippableText`, which is configured in the core here. Without the fast path, every id
goes through the splitter, with the same result.
"""

from __future__ import annotations

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.splitter import SkippableText, Splitter

_ANYTHING = SkippableText("")


class FastPath:
    """Switch of the core's fast path, on which text reaches the output without the splitter.

    The core is configured only when something changes.
    """

    __slots__ = ("_detok", "_known", "_marks")

    def __init__(self, detok: _core.Detokenizer, marks: str = "") -> None:
        """Start with the path closed.

        Args:
            detok: The detokenizer, which leaves tags that count as ids to the decoder.
            marks: The characters with which such tags begin; other text has no tags.

        """
        self._detok = detok
        self._marks = marks
        self._known: SkippableText | None = None
        detok.allow_skip(None)  # a copied detokenizer has the original's fast path

    def open(self, splitter: Splitter | None, continues: bool) -> None:
        """Let the text that the splitter's `skippable` describes take the fast path; close the path if that is None.

        Args:
            splitter: The splitter; None lets any text pass.
            continues: Such text continues the last delta. Otherwise it may pass only if the splitter would hold it
                back.

        """
        skippable = _ANYTHING if splitter is None else splitter.skippable
        if skippable is None or not (continues or skippable.held):
            self.close()
        elif skippable is not self._known or skippable.scanner is not None:
            self._known = skippable
            self._detok.allow_skip(_without_tags(skippable, self._marks) if self._marks else skippable)

    def close(self) -> None:
        """Disable the fast path."""
        if self._known is not None:
            self._known = None
            self._detok.allow_skip(None)


def _without_tags(skippable: SkippableText, marks: str) -> SkippableText:
    until = None if skippable.until is None else skippable.until + marks
    return SkippableText(until, skippable.scanner, skippable.held, bare=skippable.bare, line_until=skippable.line_until)
