"""Ids that llama.cpp's server leaves out of its stream, inferred from their text and number.

While a character is incomplete the server sends nothing. Then comes one event with the whole text, but only the last of
the ids that made it; `tokens_predicted` shows how many there were. The bytes of the others are known, and so is that some
ids of that number have them. Which ones is inferred: first those that the tokenizer itself would choose, since a model
mostly writes as it has read, then any. Text and count come out right in either case.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tokenweir.encode.tokenizer import Tokenizer

REPLACEMENT = "\ufffd".encode()
INCOMPLETE = (b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x98")
"""Bytes of a character that lacks more; each decodes to one U+FFFD."""


class LostIds:
    """What finds ids for text, with a tokenizer's vocabulary."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def before(self, ids: Sequence[int], text: str, count: int) -> tuple[list[int], list[int]]:
        """Infer the `count` ids before `ids`, which all together have made `text`.

        Returns:
            The inferred ids, and those of `ids` that follow them: none if their bytes are no part of the text.

        """
        chosen = self._encoded(text)
        if len(chosen) == count + len(ids) and chosen[count:] == list(ids):
            return chosen[:count], list(ids)
        whole = text.encode()
        known = b"".join(map(self._tokenizer.token_bytes, ids))
        if whole.endswith(known):
            return self._made(whole[: len(whole) - len(known)], count), list(ids)
        if text.endswith("\ufffd"):  # what `ids` begin does not go on
            return self._made(whole[: -len(REPLACEMENT)], count), list(ids)
        return self._made(whole, count + len(ids)), []

    def incomplete(self, count: int) -> list[int]:
        """Infer ids whose character was never completed, so that no text of them was sent: any that are incomplete too."""
        return self._made((INCOMPLETE[-1] * count)[:count], count)

    def _made(self, data: bytes, count: int) -> list[int]:
        for stand_in in (REPLACEMENT, *INCOMPLETE):  # U+FFFD is what the server makes of bytes that are no character
            if (ids := self._split(data.replace(REPLACEMENT, stand_in), count)) is not None:
                return ids
        return self._encoded(data.decode("utf-8", "replace"))  # another vocabulary: the text, whatever the count

    def _encoded(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False, parse_special=False)

    def _split(self, data: bytes, count: int) -> list[int] | None:
        """Exactly `count` ids whose bytes are `data`; None if there are none. Long tokens come first."""
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
