"""Answers as an engine gave them.

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
from tokenweir.stream.prompts.answer_identity import fingerprint
from tokenweir.stream.prompts.engine_ids import STRETCH_BYTES, EngineIds, Kept, KeptIds


class EnginePrompt(Protocol):
    """A prompt as an engine was given it: a `CachedPrompt`."""

    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def tape(self) -> _core.Tape: ...
    @property
    def ids(self) -> NDArray[np.int32]: ...
    @property
    def kept_ids(self) -> KeptIds | None: ...


class SampledTurn(NamedTuple):
    """An engine's prompt and its answer.

    Attributes:
        tape: A tape that begins as the prompt does.
        shared: The number of bytes that the prompt's text has in common with the tape's, guards included.
        tail: The rest of its text.
        guards: The guards in `tail`, as bytes of the text.
        agreed: The number of canonical ids that the prompt has in common with the tape.
        rest: The other canonical ids.
        before: Ids of engines in the prompt.
        start: The number of the prompt's ids.
        ids: The ids of the answer.
        answer: The bytes of `ids`.
        flags: For each of `ids` 1 (sampled) or 2 (inferred).
        message: The message's number in the next prompt.
        identity: The message as it was delivered, as `fingerprint` gives it.
        is_spelled: The prompt's ids have the bytes of its text; None if that is not known yet.

    """

    tape: _core.Tape
    shared: int
    tail: bytes
    guards: tuple[int, ...]
    agreed: int
    rest: NDArray[np.int32]
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
        return self.shared + len(self.tail)

    @property
    def size(self) -> int:
        """Bytes of the prompt's text and of the answer."""
        return self.text_size + len(self.answer)

    @property
    def kept(self) -> tuple[Kept, ...]:
        """Stretches of ids that an engine gave, the answer included."""
        return *self.before.kept, Kept(self.start, self.start + len(self.ids), self.message)

    @property
    def memory(self) -> int:
        """Bytes that it takes besides its tape."""
        arrays = self.rest.nbytes + self.ids.nbytes + self.flags.nbytes + self.before.memory
        return len(self.tail) + len(self.answer) + 8 * len(self.guards) + arrays + 2 * STRETCH_BYTES

    @property
    def total(self) -> int:
        """The number of ids of the prompt and of the answer."""
        return self.start + len(self.ids)

    def ids_from(self, first: int) -> NDArray[np.int32]:
        """Return the ids of the prompt and of the answer, without the `first` ones."""
        if first >= self.start:
            return self.ids[first - self.start :]
        canonical = self.tape.ids[: self.agreed]
        if len(self.rest):
            canonical = np.concatenate([canonical, self.rest])
        return self.before.over(canonical, self.ids, first=first)

    def on(self, tape: _core.Tape, common: tuple[int, int] | None = None) -> SampledTurn:
        """Return the turn on another tape, beside which it keeps what differs.

        Args:
            tape: The tape.
            common: The bytes and ids that both tapes have in common; None compares them.

        """
        own = self.tape
        if tape is own:
            return self
        size, ids = tape.common(own) if common is None else common
        shared, agreed = min(size, self.shared), min(ids, self.agreed)
        return self._replace(
            tape=tape,
            shared=shared,
            tail=own.bytes(shared, self.shared) + self.tail,
            guards=(*(byte for byte in own.guards if shared <= byte < self.shared), *self.guards),
            agreed=agreed,
            rest=np.concatenate([own.ids[agreed : self.agreed], self.rest]),
        )


def sampled_turn(
    prompt: EnginePrompt, ids: Sequence[int], message: Mapping[str, Any], number: int, inferred: Sequence[int]
) -> SampledTurn:
    """Return the turn of an answer.

    Args:
        prompt: The prompt that the engine was given.
        ids: All ids of the answer.
        message: The message as it was delivered.
        number: The message's number in the next prompt.
        inferred: Places in `ids` that were inferred.

    Raises:
        TokenIdError: An id is outside the vocabulary.
        TypeError: `ids` or `inferred` are not integers, or `message` is not a mapping.
        ValueError: `inferred` has a place outside of the answer.

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
        shared=tape.size,
        tail=b"",
        guards=(),
        agreed=len(tape.ids),
        rest=np.zeros(0, np.int32),
        before=EngineIds() if kept is None else kept.engine_ids,
        start=len(prompt.ids),
        ids=answer,
        answer=text,
        flags=flags,
        message=number,
        identity=fingerprint(message),
        is_spelled=None if kept is None else kept.is_spelled,
    )
