"""Stop strings: text in, the same text out up to the first stop.

The matcher is an automaton in the core (`encode/core/chat_decoder/stop_strings.h`) whose state *is* the held text: the longest suffix
of the text that is a proper prefix of a stop. Emitted text is neither kept nor examined again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from tokenweir.encode import _core
from tokenweir.encode.base.options import check_flags
from tokenweir.encode.tokenizer import Tokenizer


class StopStep(Struct, frozen=True, gc=False):
    """Result of one step of the search for stop strings.

    Attributes:
        text: Final text, which can no longer be part of a stop.
        matched: The stop that has ended the text, in this step or before, or None.

    """

    text: str
    matched: str | None = None


class StopStrings(_core.StopStrings):
    """Matcher that truncates text at the first stop string and holds back possible prefixes of one.

    The match that completes earliest wins; of several that complete at the same character, the one listed first.

    Attributes:
        matched: The stop that was found, or None.
        held: The text that is held back: the longest suffix that is a proper prefix of a stop; empty with `include`.
        offset: The index of the stop's first character in all text that `step` was given, or None.

    """

    offset: int | None

    def __init__(self, stops: Iterable[str], *, include: bool = False) -> None:
        """Build the automaton, in time and memory linear in the stops' total length.

        Args:
            stops: The stop strings, most wanted first; a single string is one stop.
            include: Keep the stop itself in the text.

        Raises:
            TextError: A stop has a lone surrogate.
            TypeError: A stop is not a string, or `include` is not a bool.
            ValueError: A stop is empty.

        """
        check_flags(include=include)
        super().__init__(stop_list(stops), include)
        self.offset = None
        self._included = include
        self._sent = 0

    def step(self, text: str, *, ignore: int = 0) -> StopStep:
        """Process more text and return the part that is final.

        Args:
            text: The next piece, of any length.
            ignore: A match that completes within so many characters of `text` does not count, and its text stays.

        Returns:
            The final text, and the stop if one has matched. After a stop, later text is dropped.

        """
        final = self.take(text, ignore)
        self._sent += len(final)
        matched = self.matched
        if matched is not None and self.offset is None:
            self.offset = self._sent - (len(matched) if self._included else 0)
        return StopStep(final, matched)


def control_tokens_in(tokenizer: Tokenizer, stops: Sequence[str], apart: Collection[int]) -> dict[int, str]:
    """Return the control tokens whose text a stop string contains: a mapping of token id to text.

    Their text counts in the search for stop strings, though the answer does not have it.

    Args:
        tokenizer: The tokenizer.
        stops: The stop strings.
        apart: Ids to leave out.

    """
    found = {i: text for text, i in tokenizer.special_tokens.items() if any(text in stop for stop in stops)}
    return {token_id: text for token_id, text in found.items() if token_id not in apart and text}


def stop_list(stops: Iterable[str]) -> list[str]:
    """Return the stop strings as a list; a single string is one stop.

    Raises:
        TypeError: `stops` is not iterable, or a stop is not a string.
        ValueError: A stop is empty.

    """
    if not isinstance(stops, Iterable):
        raise TypeError(f"stop is {type(stops).__name__} {stops!r}, not a list of strings")
    listed = [stops] if isinstance(stops, str) else list(stops)
    for place, stop in enumerate(listed):
        if not isinstance(stop, str):
            raise TypeError(f"stop string {place} is {type(stop).__name__} {stop!r}, not a str")
        if not stop:
            raise ValueError(f"stop string {place} of {len(listed)} is empty; it would end every text at once")
    return listed
