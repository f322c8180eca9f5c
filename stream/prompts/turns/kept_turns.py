"""Ids of an engine's prompt and answer that a later prompt keeps.

A prompt keeps the ids of an answer if its text begins with the text of the engine's prompt, control tokens included, and goes
on with the bytes of the answer's ids. Behind the last id that is kept, encoding is resumed at a cut of the text, so what
follows is canonical. In mode "sampled" a turn is kept even where the template writes other text for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.tokenizer import Tokenizer, core_of
from tokenweir.stream.prompts.turns.answer_identity import fingerprint
from tokenweir.stream.prompts.turns.engine_ids import EngineIds, Kept, KeptIds
from tokenweir.stream.prompts.turns.sampled_turns import SampledTurn
from tokenweir.stream.prompts.turns.token_tables import control_ids, id_lengths
from tokenweir.templates.messages import Messages
from tokenweir.templates.prompt import Prompt

MAX_TRIES = 64
"""The most places at the end of an answer at which a cut is looked for."""
CONTROL_WINDOW = 256
"""Ids before an answer among which the last control id of its prompt is looked for."""


class Difference(NamedTuple):
    """The first place at which a prompt differs from an earlier prompt, or does not have the ids of an earlier answer.

    Attributes:
        message: The number of the first message with text at the place or behind it, -1 if there is no such message. For an
            answer, the number of its message.
        reason: `"new"`: no earlier prompt was found; `"appended"`: the whole earlier text is a prefix of this prompt's;
            `"text"`: the text differs, or its origins do. For an answer: `"text"`: the template writes other text;
            `"message"`: the message is not the delivered one; `"control"`: the answer has other control ids than its text;
            `"cut"`: encoding cannot be resumed behind the answer's ids; `"spelling"`: the ids of the engine's prompt do not
            decode to its text; `"nothing"`: none of the answer's ids can be kept.

    """

    message: int
    reason: str


def keep_turn(
    turn: SampledTurn,
    messages: Sequence[Mapping[str, Any]] | Messages,
    prompt: Prompt,
    tape: _core.Tape,
    tokenizer: Tokenizer,
    *,
    as_sampled: bool,
    is_delivered: bool,
) -> KeptIds | None:
    """Return the ids of a new prompt, with the ids that an engine generated for earlier answers where the texts agree.

    Args:
        turn: An earlier prompt as an engine got it, and the engine's answer.
        messages: The messages of the new prompt.
        prompt: The new prompt, rendered.
        tape: The canonical ids of the new prompt, from encoding its text.
        tokenizer: The tokenizer.
        as_sampled: Keep the last answer as a whole, also where the template writes other text for it.
        is_delivered: Whether the digests say that the new prompt's messages begin with those of the earlier prompt and the
            answer's message as it was delivered; if False, each answer's message is checked.

    Returns:
        The ids of the new prompt; None if no id of an answer can be kept.

    """
    comparison = _Comparison(
        turn.rebased_on(tape), messages, prompt, tokenizer, is_delivered=is_delivered and not as_sampled
    )
    found = comparison.whole_turn() if as_sampled else None
    if found is None:
        found = comparison.common()
    count, resume_index, reason = found
    engine_ids = comparison.engine_ids(count, resume_index)
    if engine_ids is None:
        return None
    ids = engine_ids.over(tape.ids)
    ids.flags.writeable = False
    return KeptIds(ids, engine_ids, reason, comparison.is_spelled(engine_ids.kept[-1].end))


def find_declined_answer(turn: SampledTurn, kept: KeptIds | None) -> Difference | None:
    """Return the first answer whose ids are not kept as a whole, with the reason; None if all answers are kept.

    Args:
        turn: The engine's prompt and answer.
        kept: The result of `keep_turn` for them.

    """
    if kept is None:
        return Difference(turn.kept[0].message, "nothing")
    if not kept.reason:
        return None
    found = kept.engine_ids.kept
    whole = len(found) - (found[-1].end < turn.kept[len(found) - 1].end)
    return Difference(turn.kept[min(whole, len(turn.kept) - 1)].message, kept.reason)


class _Comparison:
    """Comparison of the ids of an engine's prompt and answer with the text of a later prompt.

    "Engine's ids" are those of its prompt, then those of its answer. "Canonical ids" are those of the later prompt's text.
    Sizes and positions of text are in bytes of UTF-8.
    """

    def __init__(
        self,
        turn: SampledTurn,
        messages: Sequence[Mapping[str, Any]] | Messages,
        prompt: Prompt,
        tokenizer: Tokenizer,
        *,
        is_delivered: bool,
    ) -> None:
        self._turn = turn
        self._prompt = prompt
        self._tape = turn.tape
        self._tokenizer = tokenizer
        self._encoder = core_of(tokenizer).encoder
        self._lengths = id_lengths(tokenizer)
        self._first, self._known = turn.total, turn.ids[:0]  # ids, and the number of those before them
        self._common = self._agreement()
        self._most = turn.total if is_delivered else self._delivered(messages)

    def _ids(self, first: int, last: int | None = None) -> NDArray[np.int32]:
        """Return the engine's ids `[first, last)`, or from `first` to the end if `last` is None."""
        if first < self._first:
            self._first = max(0, min(first, self._turn.start - 2 * CONTROL_WINDOW))
            self._known = self._turn.ids_from(self._first)
        return self._known[first - self._first : None if last is None else last - self._first]

    def _agreement(self) -> int:
        """Return how many bytes at the start the engine's prompt and answer have in common with the later prompt.

        The guards of the engine's prompt, bytes over which no control token may match, have to be equal as well.
        """
        turn, tape = self._turn, self._tape
        behind = turn.tail_text + turn.answer
        common = turn.shared_bytes + _agreement(tape.bytes(turn.shared_bytes, turn.shared_bytes + len(behind)), behind)
        if turn.tail_text:
            here = {byte for byte in tape.guards if turn.shared_bytes <= byte < turn.text_size}
            common = min((*(here ^ set(turn.guards)), common))
        return common

    def _delivered(self, messages: Sequence[Mapping[str, Any]] | Messages) -> int:
        """Return how many of the engine's ids come before the first answer that a client has changed.

        An answer is changed if its message among `messages` is not the one that was delivered. All ids if no answer is.
        """
        turn = self._turn
        for kept, identity in zip(turn.kept, (*turn.before.identities, turn.identity), strict=True):
            if kept.message >= len(messages) or fingerprint(messages[kept.message]) != identity:
                return kept.start
        return turn.total

    def engine_ids(self, count: int, resume_index: int) -> EngineIds | None:
        """Return the stretches of engines' answers among the first `count` of the engine's ids.

        Args:
            count: The number of the engine's ids that the later prompt keeps.
            resume_index: The index in the canonical ids of the first id behind the kept ones.

        Returns:
            None if no answer begins among these ids, or if the canonical ids of the two prompts already differ before the end
            of an earlier stretch.

        """
        turn = self._turn
        before = turn.before
        if count > turn.start:
            if before.kept and turn.shared_ids < before.resume_indices[-1]:
                return None
            end, overridden = min(count, turn.start + len(turn.ids)), len(turn.tail_ids)
            own = self._ids(turn.start - overridden, end)
            kept = Kept(turn.start, end, turn.message)
            return before.with_one(kept, overridden, resume_index, own, turn.flags[: end - turn.start], turn.identity)
        number = sum(kept.start < count for kept in before.kept)
        if not number:
            return None
        found = before.first(number)
        if found.kept[-1].end > count:
            found = found.cut(count, resume_index)
            return None if turn.shared_ids < found.place(number - 1) else found
        return None if turn.shared_ids < found.resume_indices[-1] else found

    def common(self) -> tuple[int, int, str]:
        """Find the most of the engine's ids that the later prompt can keep.

        Returns:
            (count, resume_index, reason): how many of the engine's ids are kept, the index in the canonical ids at which
            the prompt goes on behind them, and why no more are kept, as in `Difference.reason`; an empty reason if all are.
        """
        turn = self._turn
        if not self._is_prompt_spelled() or not turn.total:
            return 0, 0, "spelling"
        first = max(0, turn.start - 2 * MAX_TRIES)
        ends = self._ends(first)
        if first and ends[MAX_TRIES] > self._common:  # the difference is not in the last answer
            first, ends = 0, self._ends(0)
        last = min(first + int(np.searchsorted(ends, self._common, "right")), self._most)
        if last - MAX_TRIES < first:
            first, ends = 0, self._ends(0)
        reason = "" if last == turn.total else "message" if last == self._most else "text"
        for count in range(last, max(0, last - MAX_TRIES), -1):
            before = _core.ids_before(self._encoder, self._tape, int(ends[count - 1 - first]))
            if before is None:
                reason = reason or "cut"
            elif self._has_same_controls(count, before):
                return count, before, reason
            else:
                reason = "control"
        return 0, 0, reason

    def _ends(self, first: int) -> NDArray[np.int64]:
        """Return the byte at which each of the engine's ids ends in the text, from id `first` on."""
        lengths = self._lengths[self._ids(first)]
        ends = np.cumsum(lengths, dtype=np.int64)
        return ends + (self._turn.size - int(ends[-1]))

    def whole_turn(self) -> tuple[int, int, str] | None:
        """Return the triple of `common` for keeping the last answer as a whole, whatever text the template writes for it.

        The kept ids are followed by the canonical ones from the end token of the answer's message on. None if the later
        prompt has another text before the answer, if a delivered message was changed, or if no end token is found behind it.
        """
        turn, tokenizer = self._turn, self._tokenizer
        if self._most < turn.total or self._common < turn.text_size:
            return None
        place = max(turn.text_size, self._prompt.message_end(turn.message))
        rest = self._tape.bytes(place, self._tape.size)
        found = [
            (at, token_id)
            for token_id in tokenizer.eos_ids
            if (token := tokenizer.id_to_token(token_id)) and (at := rest.find(token.encode())) >= 0
        ]
        if not found:
            return None
        at, token_id = min(found)
        before = _core.ids_before(self._encoder, self._tape, place + at)
        if before is None or int(self._tape.ids[before]) != token_id:
            return None
        end = turn.total
        last = int(turn.ids[-1]) if len(turn.ids) else -1
        if last == token_id:
            return end, before + 1, ""
        return end - (last in tokenizer.eos_ids), before, ""

    def _is_prompt_spelled(self) -> bool:
        """Whether the ids of the engine's prompt decode to the bytes of that prompt's text."""
        turn = self._turn
        if turn.is_spelled is not None:
            return turn.is_spelled
        return int(self._lengths[self._ids(0, turn.start)].sum()) == turn.text_size

    def is_spelled(self, count: int) -> bool:
        """Whether the first `count` of the engine's ids decode to bytes with which the later prompt's text begins."""
        rest = int(self._lengths[self._ids(count)].sum())
        return self._is_prompt_spelled() and self._common >= self._turn.size - rest

    def _has_same_controls(self, count: int, before: int) -> bool:
        """Whether the engine's first `count` ids and the first `before` canonical ones have equal control ids at equal bytes."""
        controls = control_ids(self._tokenizer)
        own, other = self._checked(count, controls)
        found = []
        for ids in (self._ids(own, count), self._tape.ids[other:before]):
            places = np.flatnonzero(controls[ids])
            found.append((np.cumsum(self._lengths[ids])[places], ids[places]))
        (own_ends, own_ids), (other_ends, other_ids) = found
        return np.array_equal(own_ends, other_ends) and np.array_equal(own_ids, other_ids)

    def _checked(self, count: int, controls: NDArray[np.bool_]) -> tuple[int, int]:
        """Return how many of the engine's ids and how many canonical ids `_has_same_controls` may skip.

        The engine's prompt was checked when it was made. Up to its last control id the two texts agree, and that id begins at
        a cut of both, so the canonical ids before it are the same.
        """
        turn = self._turn
        start = turn.start
        last = min(count, start)
        first = max(0, last - CONTROL_WINDOW)
        places = np.flatnonzero(controls[self._ids(first, last)])
        if not len(places):
            return 0, 0
        own = first + int(places[-1])
        byte = turn.text_size - int(self._lengths[self._ids(own, start)].sum())
        other = _core.ids_before(self._encoder, self._tape, byte)
        if other is None or int(self._tape.ids[other]) != int(self._ids(own, own + 1)[0]):
            return 0, 0
        return own, other


def _agreement(one: bytes, other: bytes) -> int:
    """Return the number of bytes at the start that two texts have in common."""
    if one == other:
        return len(one)
    size = min(len(one), len(other))
    same = np.frombuffer(one, np.uint8, size) == np.frombuffer(other, np.uint8, size)
    return size if same.all() else int(same.argmin())
