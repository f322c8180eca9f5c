"""The last turn of a prompt, which the answer continues.

A prompt of a chat template ends soon after its last control token. The search starts at the end, so the prompt's length
does not matter, unless the prompt has no control token or a long text after the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokenweir.encode import _core
from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.tokenizer import Tokenizer

PART = 4096  # ids of a long turn that are decoded at a time


class LastTurn:
    """Text of a prompt behind the last occurrence of any of some control tokens.

    Attributes:
        begins: Whether the prompt has such a token. Otherwise its text is one turn, or several that cannot be
            separated.

    """

    def __init__(self, tok: Tokenizer, prompt_ids: Sequence[int], ends: _core.IdSet) -> None:
        """Find the turn: what follows the last of the tokens `ends` in the prompt, or all of the prompt."""
        place = ends.last_in(prompt_ids)
        self.begins = place is not None
        self._tok = tok
        self._ids = prompt_ids
        self._start = 0 if place is None else place + 1

    def texts(self) -> Iterator[str]:
        """Yield the decoded text of the turn, a long one in parts.

        Raises:
            TokenIdError: An id of the turn is outside the vocabulary.

        """
        if len(self._ids) - self._start <= PART:
            yield self._decode(self._start)
            return
        stream = DecodeStream(self._tok, skip_special_tokens=False)
        for start in range(self._start, len(self._ids), PART):
            yield "".join(map(stream.step, self._ids[start : start + PART]))
        yield stream.flush()

    def ending(self, least: int) -> str:
        """Return the decoded end of the turn, without trailing white space.

        Args:
            least: Least number of characters to return, unless the turn has fewer.

        Raises:
            TokenIdError: An id of the turn is outside the vocabulary.

        """
        # The first characters may differ from the full text: half a character, or a space that the decoder strips.
        count = 16
        while True:
            start = max(self._start, len(self._ids) - count)
            text = self._decode(start).rstrip()
            if start == self._start or len(text) >= least + 4:
                return text
            count *= 4

    def _decode(self, start: int) -> str:
        return self._tok.decode(self._ids[start:], skip_special_tokens=False)
