"""Inference of ids that llama.cpp's server omits from its stream, from their text and number.

While a character is incomplete, the server sends nothing. Then one event has the complete text, but only the last of
its ids; `tokens_predicted` gives the number of ids. So the bytes and the number of the missing ids are known. The
tokenizer's own encoding of the bytes is tried first, because models mostly generate canonical encodings, then any split
of that length. Text and count are correct in either case.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tokenweir.encode.tokenizer import Tokenizer

REPLACEMENT = "\ufffd".encode()
INCOMPLETE = (b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x98")
"""Incomplete byte sequences of a character; each decodes to one U+FFFD."""


class LostIds:
    """Inference of ids that llama.cpp's server has omitted, from their text and number and a tokenizer's vocabulary."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def before(self, ids: Sequence[int], text: str, count: int) -> tuple[list[int], list[int]]:
        """Infer the ids that the server has omitted before `ids`.

        Args:
            ids: The ids that the server has sent.
            text: The text of the omitted ids and of `ids` together.
            count: The number of omitted ids.

        Returns:
            The inferred ids, and the ids that follow them: `ids`; or an empty list if the bytes of `ids` are not in the
            text, in which case the inferred ids replace them, too.

        """
        chosen = self._encoded(text)
        if len(chosen) == count + len(ids) and chosen[count:] == list(ids):
            return chosen[:count], list(ids)
        whole = text.encode()
        known = b"".join(map(self._tokenizer.token_bytes, ids))
        if whole.endswith(known):
            return self._made(whole[: len(whole) - len(known)], count), list(ids)
        if text.endswith("\ufffd"):  # the character that `ids` begin is not completed
            return self._made(whole[: -len(REPLACEMENT)], count), list(ids)
        return self._made(whole, count + len(ids)), []

    def incomplete(self, count: int) -> list[int]:
        """Return `count` placeholder ids, of incomplete byte sequences, for a character that was never completed."""
        return self._made((INCOMPLETE[-1] * count)[:count], count)

    def _made(self, data: bytes, count: int) -> list[int]:
        for stand_in in (REPLACEMENT, *INCOMPLETE):  # the server sends U+FFFD for invalid bytes
            if (ids := self._split(data.replace(REPLACEMENT, stand_in), count)) is not None:
                return ids
        return self._encoded(data.decode("utf-8", "replace"))  # another vocabulary: match the text, ignore the count

    def _encoded(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False, parse_special=False)

    def _split(self, data: bytes, count: int) -> list[int] | None:
        """Return exactly `count` ids whose joined bytes are `data`, long tokens preferred; None if there is no such split."""
        dead: set[tuple[int, int]] = set()
        ids: list[int] = []

        def walk(start: int) -> bool:
            left = count - len(ids)
            if left == 0 or start == len(data):
                return left == 0 and start == len(data)
            if (start, left) in dead or not left <= len(data) - start <= left * self._longest:
                return False
            for end in range(min(len(data) - left + 1, start + self._longest), start, -1):
                if (token_id := self._ids.get(data[start:end])) is not None:
                    ids.append(token_id)
                    if walk(end):
                        return True
                    ids.pop()
            dead.add((start, left))
            return False

        return ids if count < len(data) + 1 and walk(0) else None

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        tok = self._tokenizer
        control = {token.content for token in tok.added_tokens}
        ids: dict[bytes, int] = {}
        for token_id in range(tok.vocab_size):
            if tok.id_to_token(token_id) not in control and (data := tok.token_bytes(token_id)):
                ids.setdefault(data, token_id)
        return ids

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._ids), default=1)
