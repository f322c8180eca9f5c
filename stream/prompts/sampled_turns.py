"""Answers as an engine gave them, and the prompts that keep their ids.

A prompt keeps the ids of an answer if its text begins with the text of the engine's prompt, control tokens included, and goes
on with the bytes of the answer's ids. Behind the last id that is kept, encoding is resumed at a cut of the text, so what
follows is canonical. In mode "sampled" a turn is kept even where the template writes other text for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.build import core_of
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.encode.values.ids import as_ids
from tokenweir.templates.messages import REASONING_FIELDS, Messages
from tokenweir.templates.prompt import Prompt

MAX_TRIES = 64
"""The most places at the end of an answer at which a cut is looked for."""
CONTROL_WINDOW = 256
"""Ids before an answer among which the last control id of its prompt is looked for."""


class Kept(NamedTuple):
    """Ids of a prompt that are those of an engine: `[start, end)`, in the message of this number."""

    start: int
    end: int
    message: int


class EnginePrompt(Protocol):
    """A prompt as an engine was given it: a `CachedPrompt`."""

    @property
    def prompt(self) -> Prompt: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def text(self) -> str: ...
    @property
    def ids(self) -> NDArray[np.int32]: ...
    @property
    def sampled(self) -> NDArray[np.uint8]: ...
    @property
    def kept_ids(self) -> KeptIds | None: ...


class KeptIds(NamedTuple):
    """The ids of a prompt that keeps those of answers.

    Attributes:
        ids: All ids.
        sampled: For each id 0, 1 (an engine sampled it) or 2 (it was inferred from an engine's text).
        kept: Which ids are those of an engine.
        identities: The messages of `kept` as they were delivered, as `fingerprint` gives them.
        reason: Why the last answer is not kept as a whole; empty if it is.
        is_spelled: The ids have the bytes of the prompt's text.
        behind: For each of `kept` the number of canonical ids before what follows it.

    """

    ids: NDArray[np.int32]
    sampled: NDArray[np.uint8]
    kept: tuple[Kept, ...]
    identities: tuple[bytes, ...]
    reason: str
    is_spelled: bool
    behind: tuple[int, ...]


class SampledTurn(NamedTuple):
    """An engine's prompt and its answer.

    Attributes:
        text: The bytes of the prompt's text, shared with its tape.
        answer: The bytes of the answer's ids.
        guarded: The guards of the prompt, in characters.
        ids: The ids of the prompt and of the answer.
        sampled: As in `KeptIds`.
        kept: As in `KeptIds`, the answer included.
        identities: The messages of `kept` as they were delivered, as `fingerprint` gives them.
        is_spelled: The ids have the bytes of `text` and `answer`.
        behind: As in `KeptIds`, for all but the answer.

    """

    text: NDArray[np.uint8]
    answer: bytes
    guarded: tuple[int, ...]
    ids: NDArray[np.int32]
    sampled: NDArray[np.uint8]
    kept: tuple[Kept, ...]
    identities: tuple[bytes, ...]
    is_spelled: bool
    behind: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of the prompt's text and of the answer."""
        return len(self.text) + len(self.answer)

    @property
    def memory(self) -> int:
        """Bytes that it takes."""
        return self.size + 5 * len(self.ids) + 8 * len(self.guarded) + 256 * len(self.kept)


def identity(message: Mapping[str, Any]) -> object:
    """Return what tells whether a client sends back a message that was delivered to it.

    That is its content and reasoning as strings, and its calls by name and JSON value; clients rename the ids of calls.
    """
    reasoning = next((message[name] for name in REASONING_FIELDS if message.get(name)), "")
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function", call) if isinstance(call, Mapping) else {}
        arguments = function.get("arguments") if isinstance(function, Mapping) else None
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                pass
        name = function.get("name") if isinstance(function, Mapping) else None
        calls.append((name, msgspec.json.encode(arguments, order="sorted")))
    return message.get("role"), _text(message.get("content")), _text(reasoning), tuple(calls)


def fingerprint(message: Mapping[str, Any]) -> bytes:
    """Return a digest of the `identity` of a message, which takes no memory of its text."""
    return blake2b(repr(identity(message)).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = (part if isinstance(part, str) else part.get("text", "") for part in content)
    return "\n".join(part for part in parts if isinstance(part, str))


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
    ids, text = as_ids(ids, "ids"), text_bytes(prompt.prompt)
    answered = prompt.tokenizer.decode_bytes(ids)  # checks each id
    answer = np.asarray(ids, np.int32)
    flags = np.ones(len(answer), np.uint8)
    for place in as_ids(inferred, "inferred"):
        if not 0 <= place < len(answer):
            raise ValueError(f"inferred has {place}, but the answer has {len(answer)} ids")
        flags[place] = 2
    start = len(prompt.ids)
    before = prompt.kept_ids
    return SampledTurn(
        text,
        answered,
        prompt.prompt.guarded_for(prompt.tokenizer),
        np.concatenate([prompt.ids, answer]),
        np.concatenate([prompt.sampled, flags]),
        (*(() if before is None else before.kept), Kept(start, start + len(answer), number)),
        (*(() if before is None else before.identities), fingerprint(message)),
        _is_spelled(prompt, len(text)),
        () if before is None else before.behind,
    )


def _is_spelled(prompt: EnginePrompt, size: int) -> bool:
    """Whether the ids of a prompt have the bytes of its text, of which there are `size`."""
    if prompt.kept_ids is not None:
        return prompt.kept_ids.is_spelled
    return int(id_lengths(prompt.tokenizer)[prompt.ids].sum()) == size


def keep_turn(
    turn: SampledTurn,
    messages: Sequence[Mapping[str, Any]] | Messages,
    prompt: Prompt,
    tape: _core.Tape,
    tokenizer: Tokenizer,
    *,
    as_sampled: bool,
) -> KeptIds | None:
    """Return the ids of a prompt that keep those of an engine's prompt and answer, as far as the two agree.

    Args:
        turn: The engine's prompt and answer.
        messages: The messages of the prompt.
        prompt: The rendered prompt.
        tape: Its canonical ids.
        tokenizer: The tokenizer.
        as_sampled: Keep the last answer as a whole, also where the template writes other text.

    Returns:
        None if nothing of an answer can be kept.

    """
    reading = _Reading(turn, messages, prompt, tape, tokenizer)
    found = reading.whole_turn() if as_sampled else None
    if found is None:
        found = reading.common()
    count, behind, reason = found
    kept = tuple(each if each.end <= count else each._replace(end=count) for each in turn.kept if each.start < count)
    if not kept:
        return None
    canonical = tape.ids[behind:]
    ids = np.concatenate([turn.ids[:count], canonical])
    ids.flags.writeable = False
    sampled = np.concatenate([turn.sampled[:count], np.zeros(len(canonical), np.uint8)])
    return KeptIds(
        ids,
        sampled,
        kept,
        turn.identities[: len(kept)],
        reason,
        reading.is_spelled(count),
        (*turn.behind[: len(kept) - 1], behind),
    )


class _Reading:
    """An engine's ids beside the text of a later prompt. Places are bytes."""

    def __init__(
        self,
        turn: SampledTurn,
        messages: Sequence[Mapping[str, Any]] | Messages,
        prompt: Prompt,
        tape: _core.Tape,
        tokenizer: Tokenizer,
    ) -> None:
        self._turn = turn
        self._prompt = prompt
        self._tape = tape
        self._tokenizer = tokenizer
        self._encoder = core_of(tokenizer).encoder
        self._lengths = id_lengths(tokenizer)
        self._text = text_bytes(prompt)
        self._common = self._agreement()
        # Messages that are not those that were delivered keep nothing.
        known = [
            number < len(messages) and fingerprint(messages[number]) == delivered
            for (_, _, number), delivered in zip(turn.kept, turn.identities, strict=True)
        ]
        self._most = next((turn.kept[i].start for i, each in enumerate(known) if not each), len(turn.ids))

    def _agreement(self) -> int:
        """The number of bytes at the start that the two have in common, guards of the engine's prompt included."""
        turn = self._turn
        common = _agreement(self._text, turn.text)
        if common == len(turn.text):
            common += _agreement(self._text[common:], np.frombuffer(turn.answer, np.uint8))
        here, there = self._prompt.guarded_for(self._tokenizer), self._turn.guarded
        if here == there:
            return common
        for offset in sorted(set(here) ^ set(there)):
            byte = len(self._prompt.text[:offset].encode())
            if byte < min(common, len(turn.text)) or offset in there:
                return min(common, byte)
        return common

    def common(self) -> tuple[int, int, str]:
        """Return how many ids can be kept, how many canonical ids come before what follows, and why no more are kept."""
        turn = self._turn
        if not turn.is_spelled or not len(turn.ids):
            return 0, 0, "spelling"
        first = max(0, turn.kept[-1].start - 2 * MAX_TRIES)
        ends = self._ends(first)
        if first and ends[MAX_TRIES] > self._common:  # the difference is not in the last answer
            first, ends = 0, self._ends(0)
        last = min(first + int(np.searchsorted(ends, self._common, "right")), self._most)
        if last - MAX_TRIES < first:
            first, ends = 0, self._ends(0)
        reason = "" if last == len(turn.ids) else "message" if last == self._most else "text"
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
        """Return the ends of the engine's ids, from the `first` on."""
        lengths = self._lengths[self._turn.ids[first:]]
        ends = np.cumsum(lengths, dtype=np.int64)
        return ends + (self._turn.size - int(ends[-1]))

    def whole_turn(self) -> tuple[int, int, str] | None:
        """Return the same for the whole last answer: what follows is what the template writes from its end on."""
        turn, tokenizer = self._turn, self._tokenizer
        start, end, number = turn.kept[-1]
        if self._most < len(turn.ids) or self._common < len(turn.text):
            return None
        place = max(len(turn.text), self._prompt.message_end(number))
        rest = self._text[place:].tobytes()
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
        last = int(turn.ids[end - 1]) if end > start else -1
        if last == token_id:
            return end, before + 1, ""
        return end - (last in tokenizer.eos_ids), before, ""

    def is_spelled(self, count: int) -> bool:
        """Whether the first ids have the bytes of the prompt's text."""
        turn = self._turn
        rest = int(self._lengths[turn.ids[count:]].sum())
        return turn.is_spelled and self._common >= turn.size - rest

    def _has_same_controls(self, count: int, before: int) -> bool:
        """Whether the engine's first ids have the control ids of the canonical ones, at the same bytes."""
        controls = control_ids(self._tokenizer)
        own, other = self._checked(count, controls)
        found = []
        for ids in (self._turn.ids[own:count], self._tape.ids[other:before]):
            places = np.flatnonzero(controls[ids])
            found.append((np.cumsum(self._lengths[ids])[places], ids[places]))
        (own_ends, own_ids), (other_ends, other_ids) = found
        return np.array_equal(own_ends, other_ends) and np.array_equal(own_ids, other_ids)

    def _checked(self, count: int, controls: NDArray[np.bool_]) -> tuple[int, int]:
        """Return how many ids of the engine and how many canonical ones need no check.

        The engine's prompt was checked when it was made. Up to its last control id the two texts agree, and that id begins at
        a cut of both, so the canonical ids before it are the same.
        """
        turn = self._turn
        start = turn.kept[-1].start
        last = min(count, start)
        first = max(0, last - CONTROL_WINDOW)
        places = np.flatnonzero(controls[turn.ids[first:last]])
        if not len(places):
            return 0, 0
        own = first + int(places[-1])
        byte = len(turn.text) - int(self._lengths[turn.ids[own:start]].sum())
        other = _core.ids_before(self._encoder, self._tape, byte)
        if other is None or int(self._tape.ids[other]) != int(turn.ids[own]):
            return 0, 0
        return own, other


def _agreement(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> int:
    """Return the number of bytes at the start that two texts have in common."""
    size = min(len(one), len(other))
    same = one[:size] == other[:size]
    return size if same.all() else int(same.argmin())


def text_bytes(prompt: Prompt) -> NDArray[np.uint8]:
    """Return the UTF-8 of a prompt's text, without a copy if a template rendered it."""
    text = prompt.encoded_text
    return np.frombuffer(text.encode() if isinstance(text, str) else memoryview(text), np.uint8)


def prepare(tokenizer: Tokenizer) -> None:
    """Make the tables of a tokenizer that the first answer would make."""
    id_lengths(tokenizer)
    control_ids(tokenizer)


@lru_cache(maxsize=16)
def id_lengths(tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Return the number of bytes of each id."""
    return np.array([len(tokenizer.token_bytes(token_id)) for token_id in range(tokenizer.vocab_size)], np.int32)


@lru_cache(maxsize=16)
def control_ids(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """Return for each id whether user text must not become it."""
    controls = np.zeros(tokenizer.vocab_size, np.bool_)
    for text in tokenizer.control_texts:
        if (token_id := tokenizer.token_to_id(text)) is not None:
            controls[token_id] = True
    return controls
