"""Answers with the ids that an engine generated, and the prompts that they answer.

A turn shares the text and the canonical ids of a tape, and stores what differs. At first it is the tape of the engine's prompt,
later that of the next prompt of the conversation. So a conversation has one text and one list of ids, whatever its number of answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.encode.values.ids import as_ids
from tokenweir.stream.prompts.turns.answer_identity import fingerprint
from tokenweir.stream.prompts.turns.engine_ids import STRETCH_BYTES, EngineIds, Kept, KeptIds


class EnginePrompt(Protocol):
    """A prompt whose ids were sent to an engine, such as a `CachedPrompt`."""

    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def tape(self) -> _core.Tape: ...
    @property
    def ids(self) -> NDArray[np.int32]: ...
    @property
    def kept_ids(self) -> KeptIds | None: ...


class SampledTurn(NamedTuple):
    """An engine's prompt and its answer, stored as differences from a tape (an encoded text, `_core.Tape`).

    The prompt's canonical ids are those of encoding its text. Guards are bytes over which no control token may match.

    Attributes:
        tape: A tape that begins as the prompt does: the prompt's own, or that of a later prompt of the conversation.
        shared_bytes: The number of bytes at the start that the prompt's text and its guards have in common with the tape's.
        tail_text: The bytes of the prompt's text behind the `shared_bytes` ones.
        guards: The guards in `tail_text`, as byte offsets in the prompt's text.
        shared_ids: The number of canonical ids at the start that the prompt has in common with the tape.
        tail_ids: The prompt's canonical ids behind the `shared_ids` ones.
        before: The ids in the prompt that engines generated for earlier answers.
        start: The number of the prompt's ids, which is the index of the answer's first id.
        ids: The ids of the answer.
        answer: The bytes that `ids` decode to.
        flags: For each of `ids` 1 (an engine sampled it) or 2 (it was inferred from an engine's text).
        message: The number that the answer's message has in the next prompt.
        identity: The `fingerprint` of the message as it was delivered.
        is_spelled: Whether the prompt's ids decode to the bytes of its text; None if that is not known yet.

    """

    tape: _core.Tape
    shared_bytes: int
    tail_text: bytes
    guards: tuple[int, ...]
    shared_ids: int
    tail_ids: NDArray[np.int32]
    before: EngineIds
    start: int
    ids: NDArray[np.int32]
    answer: bytes
    flags: NDArray[np.uint8]
    message: int
    identity: bytes
    is_spelled: bool | None

    @property
    def text_size(self) -> int:
        """Bytes of the prompt's text."""
        return self.shared_bytes + len(self.tail_text)

    @property
    def size(self) -> int:
        """Bytes of the prompt's text and of the answer."""
        return self.text_size + len(self.answer)

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The stretches of ids that engines generated: those in the prompt, then the answer."""
        return *self.before.kept, Kept(self.start, self.start + len(self.ids), self.message)

    @property
    def memory(self) -> int:
        """Bytes of memory that the turn takes besides its tape, by estimate."""
        arrays = self.tail_ids.nbytes + self.ids.nbytes + self.flags.nbytes + self.before.memory
        return len(self.tail_text) + len(self.answer) + 8 * len(self.guards) + arrays + 2 * STRETCH_BYTES

    @property
    def total(self) -> int:
        """The number of ids of the prompt and of the answer."""
        return self.start + len(self.ids)

    def ids_from(self, first: int) -> NDArray[np.int32]:
        """Return the ids of the prompt and of the answer, without the `first` ones."""
        if first >= self.start:
            return self.ids[first - self.start :]
        canonical = self.tape.ids[: self.shared_ids]
        if len(self.tail_ids):
            canonical = np.concatenate([canonical, self.tail_ids])
        return self.before.over(canonical, self.ids, first=first)

    def rebased_on(self, tape: _core.Tape, common: tuple[int, int] | None = None) -> SampledTurn:
        """Return an equal turn that stores its prompt as differences from another tape.

        Args:
            tape: The other tape.
            common: The numbers of bytes and of ids at the start that both tapes have in common; None compares the tapes.

        """
        own = self.tape
        if tape is own:
            return self
        size, ids = tape.common(own) if common is None else common
        shared_bytes, shared_ids = min(size, self.shared_bytes), min(ids, self.shared_ids)
        return self._replace(
            tape=tape,
            shared_bytes=shared_bytes,
            tail_text=own.bytes(shared_bytes, self.shared_bytes) + self.tail_text,
            guards=(*(byte for byte in own.guards if shared_bytes <= byte < self.shared_bytes), *self.guards),
            shared_ids=shared_ids,
            tail_ids=np.concatenate([own.ids[shared_ids : self.shared_ids], self.tail_ids]),
        )


def sampled_turn(
    prompt: EnginePrompt, ids: Sequence[int], message: Mapping[str, Any], number: int, inferred: Sequence[int]
) -> SampledTurn:
    """Return a `SampledTurn` of an engine's prompt and answer, on the prompt's own tape.

    Args:
        prompt: The prompt that the engine was given.
        ids: All ids of the answer.
        message: The message as it was delivered.
        number: The message's number in the next prompt.
        inferred: Indices in `ids` of those that the engine did not tell and that were inferred from its text.

    Raises:
        TokenIdError: An id is outside the vocabulary.
        TypeError: `ids` or `inferred` are not integers, or `message` is not a mapping.
        ValueError: `inferred` has an index outside of the answer.

    """
    if not isinstance(message, Mapping):
        raise TypeError(f"message must be a mapping, not {type(message).__name__}")
    ids = as_ids(ids, "ids")
    text = prompt.tokenizer.decode_bytes(ids)  # checks each id
    answer = np.array(ids, np.int32)
    flags = np.ones(len(answer), np.uint8)
    for place in as_ids(inferred, "inferred"):
        if not 0 <= place < len(answer):
            raise ValueError(f"inferred has {place}, but the answer has {len(answer)} ids")
        flags[place] = 2
    tape, kept = prompt.tape, prompt.kept_ids
    return SampledTurn(
        tape=tape,
        shared_bytes=tape.size,
        tail_text=b"",
        guards=(),
        shared_ids=len(tape.ids),
        tail_ids=np.zeros(0, np.int32),
        before=EngineIds() if kept is None else kept.engine_ids,
        start=len(prompt.ids),
        ids=answer,
        answer=text,
        flags=flags,
        message=number,
        identity=fingerprint(message),
        is_spelled=None if kept is None else kept.is_spelled,
    )
