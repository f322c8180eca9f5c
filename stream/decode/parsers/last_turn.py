"""The last turn of a prompt: what an answer goes on after.

A prompt of a chat template ends soon after its last control token, which is found from the end, so its length does not
matter. Only a prompt that has none, or goes on for long after it, is read as far as that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokenweir.encode import _core
from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.tokenizer import Tokenizer

PART = 4096  # ids of a long turn that are decoded at once


class LastTurn:
    """What comes after the last of some control tokens of a prompt.

    Attributes:
        begins: Whether there is one. Otherwise the whole prompt is the turn, or several that nobody can tell apart.

    """

    def __init__(self, tok: Tokenizer, prompt_ids: Sequence[int], ends: _core.IdSet) -> None:
        """Find it.

        Args:
            tok: The tokenizer whose ids these are.
            prompt_ids: The prompt.
            ends: The control tokens that end a turn.

        """
        place = ends.last_in(prompt_ids)
        self.begins = place is not None
        self._tok = tok
        self._ids = prompt_ids
        self._start = 0 if place is None else place + 1

    def texts(self) -> Iterator[str]:
        """Decode the turn, in parts if it is long.

        Raises:
            TokenIdError: One of its ids is outside the vocabulary.

        """
        if len(self._ids) - self._start <= PART:
            yield self._decode(self._start)
            return
        stream = DecodeStream(self._tok, skip_special_tokens=False)
        for start in range(self._start, len(self._ids), PART):
            yield "".join(map(stream.step, self._ids[start : start + PART]))
        yield stream.flush()

    def ending(self, least: int) -> str:
        """Decode the turn's end.

        Args:
            least: So many characters or more, unless the turn has fewer; white space at the end is left out.

        Raises:
            TokenIdError: One of its ids is outside the vocabulary.

        """
        # The first characters may be other ones than in the whole text: half of one, a space that a decoder strips.
        count = 16
        while True:
            start = max(self._start, len(self._ids) - count)
            text = self._decode(start).rstrip()
            if start == self._start or len(text) >= least + 4:
                return text
            count *= 4

    def _decode(self, start: int) -> str:
        return self._tok.decode(self._ids[start:], skip_special_tokens=False)
