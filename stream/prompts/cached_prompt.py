"""`CachedPrompt`: the ids of a rendered prompt, and what was known of them before."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode._core import Tape
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.block_keys import BlockScheme, block_keys
from tokenweir.stream.prompts.engine_ids import Kept, KeptIds
from tokenweir.stream.prompts.token_tables import control_ids
from tokenweir.templates.prompt import Prompt

_MESSAGE = re.compile(r"messages\[([0-9]+)\]")


class Reused(NamedTuple):
    """The part of a prompt that was taken over from an earlier one."""

    ids: int
    chars: int


class Difference(NamedTuple):
    """The first place at which a prompt differs from the earlier one, or has not the ids of an earlier answer.

    Attributes:
        message: The first message that has text at the place or behind it, or the message of the answer; -1 if none has.
        reason: `"new"`: no earlier prompt was found; `"appended"`: the earlier text goes on; `"text"`: the text differs, or
            its origins do. For an answer: `"text"`: the template writes other text; `"message"`: the message is not the
            delivered one; `"control"`: it has other control ids; `"cut"`: encoding cannot be resumed behind its ids;
            `"spelling"`: they have not the bytes of the text; `"nothing"`: none of its ids can be kept.

    """

    message: int
    reason: str


class PromptSource(NamedTuple):
    """The origin of a prompt in a cache.

    Attributes:
        tenant: The tenant.
        digests: The digests of the conversation's beginnings.
        last: The digest of the last message alone.
        messages: The number of messages.
        continued: What the cache holds of the last answer that is one of the messages; None without one.

    """

    tenant: str
    digests: tuple[int, ...]
    last: int
    messages: int
    continued: Any = None


class CachedPrompt:
    """A prompt whose ids come from a `PromptCache`. They are those of `Prompt.encode`.

    Attributes:
        prompt: The rendered prompt, with its origins.
        tokenizer: The tokenizer of the ids.
        tape: The ids as the core keeps them.

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
        """Take what a cache has found.

        Args:
            prompt: The rendered prompt.
            tokenizer: The tokenizer.
            tape: Its ids.
            earlier_bytes: Bytes of the earlier prompt's text; None without one.
            is_same: The earlier prompt is the same one.
            kept: The ids, if they keep those of answers.
            declined: The first answer whose ids are not kept as a whole, if there is one.
            source: Where the cache has it from.

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
        """The ids, read-only."""
        return self.tape.ids if self.kept_ids is None else self.kept_ids.ids

    @property
    def kept(self) -> tuple[Kept, ...]:
        """Stretches of ids that an engine gave: (start, end, message)."""
        return () if self.kept_ids is None else self.kept_ids.engine_ids.kept

    @cached_property
    def sampled(self) -> NDArray[np.uint8]:
        """For each id 0 (template or client), 1 (an engine sampled it) or 2 (inferred from an engine's text)."""
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
        """The first difference from the earlier prompt and answer; None if the prompts are equal and the answer is kept."""
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

        Ids of an engine are those of its message, control tokens included.
        """
        canonical = self.prompt.message_indices(self.tokenizer)
        if self.kept_ids is None:
            return canonical
        found: list[int] = []
        place = 0  # among the canonical ids
        for (start, end, message), behind in zip(self.kept, self.kept_ids.engine_ids.behind, strict=True):
            found += self._indices(len(found), start, canonical, place)
            found += [message] * (end - start)
            place = behind
        return found + self._indices(len(found), len(self.ids), canonical, place)

    def _indices(self, start: int, end: int, canonical: list[int], place: int) -> list[int]:
        """Return the messages of ids that no engine gave, which are the canonical ones from a place on.

        Only the last text of an engine's prompt may have other ids, where the template's next text joins it. The template
        wrote it.
        """
        behind = place + end - start
        same = self.ids[start:end] == self.tape.ids[place:behind]
        return [number if is_same else -1 for number, is_same in zip(canonical[place:behind], same, strict=True)]

    @cached_property
    def is_content(self) -> list[bool]:
        """For each id whether a message wrote text of it, not the template alone; control tokens of an engine are no content."""
        content = np.array(self.message_indices) >= 0
        engine = self.sampled > 0
        content[engine] = ~control_ids(self.tokenizer)[self.ids[engine]]
        found: list[bool] = content.tolist()
        return found

    def block_keys(self, size: int = 16, scheme: BlockScheme = "sha256_cbor", salt: str | None = None) -> list[bytes]:
        """Return the keys by which an engine's prefix cache knows the prompt's whole blocks.

        A prompt with media has the keys of the blocks before the first placeholder, because the engine expands that one and
        hashes the media with the blocks behind it.

        Args:
            size: Ids a block.
            scheme: The engine's way of hashing; see `BlockScheme`.
            salt: The cache salt that goes with the request.

        """
        ids = self.ids
        if media := self.prompt.media_ids(self.tokenizer):
            kept = min((start for start, _, _ in self.kept), default=len(ids))  # behind it, other ids have other places
            ids = ids[: min(media[0][1], kept)]
        return block_keys(ids, size, scheme, salt)
