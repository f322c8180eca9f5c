"""`CachedPrompt`: the ids of a rendered prompt, and how many of them were taken over from earlier prompts."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode._core import Tape
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.cache.block_keys import BlockScheme, block_keys
from tokenweir.stream.prompts.turns.engine_ids import Kept, KeptIds
from tokenweir.stream.prompts.turns.kept_turns import Difference
from tokenweir.stream.prompts.turns.token_tables import control_ids
from tokenweir.templates.prompt import Prompt

_MESSAGE = re.compile(r"messages\[([0-9]+)\]")


class Reused(NamedTuple):
    """The part of a prompt that was taken over from an earlier one.

    Attributes:
        ids: The number of ids.
        chars: The number of characters of the text.

    """

    ids: int
    chars: int


class PromptSource(NamedTuple):
    """The key of a prompt in the cache that made it.

    Attributes:
        tenant: The prompt's owner.
        digests: The digest of each prefix of the conversation, the empty one included; the last item is the conversation's.
        last: The digest of the last message alone.
        messages: The number of messages.
        continued: The cache's `KeptAnswer` of the last message that is a delivered answer; None if no message is.

    """

    tenant: str
    digests: tuple[int, ...]
    last: int
    messages: int
    continued: Any = None


class CachedPrompt:
    """A rendered prompt with its ids, as a `PromptCache` returns it.

    The ids are those of `Prompt.encode`, except in the stretches of `kept`, which have the ids that an engine generated.

    Attributes:
        prompt: The rendered prompt, with its origins.
        tokenizer: The tokenizer of the ids.
        tape: The text and its canonical ids, as the core keeps them.
        kept_ids: The ids if some of them are an engine's; None if all are canonical.
        source: The key of the prompt in its cache.

    """

    def __init__(
        self,
        prompt: Prompt,
        tokenizer: Tokenizer,
        tape: Tape,
        earlier_bytes: int | None,
        *,
        is_same: bool,
        kept: KeptIds | None,
        declined: Difference | None,
        source: PromptSource,
    ) -> None:
        """Create the result of a cache's encoding.

        Args:
            prompt: The rendered prompt.
            tokenizer: The tokenizer.
            tape: The prompt's text and canonical ids.
            earlier_bytes: Bytes of the text of the earlier prompt that it was compared with; None without one.
            is_same: Whether the earlier prompt is equal to this one.
            kept: The ids with those of earlier answers; None if no answer's ids are kept.
            declined: The first answer whose ids are not kept as a whole; None if there is no such answer.
            source: The key of the prompt in the cache.

        """
        self.prompt = prompt
        self.tokenizer = tokenizer
        self.tape = tape
        self._earlier_bytes = earlier_bytes
        self._is_same = is_same
        self.kept_ids = kept
        self._declined = declined
        self.source = source

    def __repr__(self) -> str:
        return f"CachedPrompt({len(self.ids)} ids, reused={self.reused}, differs={self.differs})"

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def text(self) -> str:
        """The text that the template rendered."""
        return self.prompt.text

    @cached_property
    def ids(self) -> NDArray[np.int32]:
        """The ids of the prompt, as a read-only array."""
        return self.tape.ids if self.kept_ids is None else self.kept_ids.ids

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The stretches of `ids` that an engine generated, each as (start, end, number of the message).

        Empty if all are canonical.
        """
        return () if self.kept_ids is None else self.kept_ids.engine_ids.kept

    @cached_property
    def sampled(self) -> NDArray[np.uint8]:
        """For each id its source: 0 (template or client), 1 (an engine sampled it) or 2 (inferred from an engine's text)."""
        size = len(self.ids)
        return np.zeros(size, np.uint8) if self.kept_ids is None else self.kept_ids.engine_ids.sampled(size)

    @cached_property
    def reused(self) -> Reused:
        """The numbers of ids and characters that were taken over from an earlier prompt."""
        tape = self.tape
        if self._is_same:
            return Reused(len(self.ids), len(self.text))
        chars = len(self.text) - tape.character(tape.rejoined) + tape.character(tape.resumed)
        return Reused(tape.reused_ids, chars)

    @cached_property
    def differs(self) -> Difference | None:
        """The first difference from the earlier prompt or answer; None if the prompts are equal and no answer is declined."""
        tape = self.tape
        reason = (
            "new" if self._earlier_bytes is None else "appended" if tape.difference == self._earlier_bytes else "text"
        )
        if self._is_same or (reason == "appended" and self._declined is not None):
            return self._declined
        at = tape.character(tape.difference)
        spans = (span for span in self.prompt.origins if span.end > at)
        found = next((match for span in spans if (match := _MESSAGE.match(span.origin))), None)
        return Difference(-1 if found is None else int(found[1]), reason)

    @cached_property
    def message_indices(self) -> list[int]:
        """For each id the number of the message whose text is in it, or -1; see `Prompt.message_indices`.

        Ids that an engine generated have the number of their answer's message, control tokens included.
        """
        canonical = self.prompt.message_indices(self.tokenizer)
        if self.kept_ids is None:
            return canonical
        found: list[int] = []
        place = 0  # among the canonical ids
        for (start, end, message), resume_index in zip(self.kept, self.kept_ids.engine_ids.resume_indices, strict=True):
            found += self._indices(len(found), start, canonical, place)
            found += [message] * (end - start)
            place = resume_index
        return found + self._indices(len(found), len(self.ids), canonical, place)

    def _indices(self, start: int, end: int, canonical: list[int], place: int) -> list[int]:
        """Return the message numbers of ids `[start, end)`, none of which an engine generated.

        These ids equal the canonical ones from index `place` on, and have their message numbers. Only ids at the end of an
        engine's prompt may be others; the template wrote their text, so their number is -1.

        Args:
            start: The index of the first id.
            end: The index behind the last id.
            canonical: The message number of each canonical id.
            place: The index in `canonical` of the first id.

        """
        behind = place + end - start
        same = self.ids[start:end] == self.tape.ids[place:behind]
        return [number if is_same else -1 for number, is_same in zip(canonical[place:behind], same, strict=True)]

    @cached_property
    def is_content(self) -> list[bool]:
        """For each id whether it has text of a message.

        False for ids of the template alone and for an engine's control tokens.
        """
        content = np.array(self.message_indices) >= 0
        engine = self.sampled > 0
        content[engine] = ~control_ids(self.tokenizer)[self.ids[engine]]
        found: list[bool] = content.tolist()
        return found

    def block_keys(self, size: int = 16, scheme: BlockScheme = "sha256_cbor", salt: str | None = None) -> list[bytes]:
        """Return the keys under which an engine's prefix cache stores the prompt's blocks, one for each full block in order.

        A prompt with media has the keys of the blocks before the first placeholder only, because the engine expands the
        placeholder and hashes the media with the blocks behind it.

        Args:
            size: The number of ids in a block.
            scheme: The engine's way of hashing; see `BlockScheme`.
            salt: The cache salt that goes with the request.

        """
        ids = self.ids
        if media := self.prompt.media_ids(self.tokenizer):
            kept = min((start for start, _, _ in self.kept), default=len(ids))  # behind it, other ids have other places
            ids = ids[: min(media[0][1], kept)]
        return block_keys(ids, size, scheme, salt)
