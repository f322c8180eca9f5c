"""Index of a cache's prompts and of the answers to them, by the digests of their messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tokenweir.encode import _core
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.ledger import Entry
from tokenweir.stream.prompts.sampled_turns import SampledTurn

MESSAGE_BYTES = 128
"""Bytes that a message costs in the index: its digest, and the place of it."""

ShelfKey = tuple[str, Tokenizer]
"""Tenant and tokenizer."""


class KeptPrompt:
    """An encoded prompt, or one that continues it and has taken its place.

    Attributes:
        key: The shelf.
        digests: The digests of the conversation's beginnings, as `chain` has them.
        last: The digest of the last message alone.
        tape: The prompt.
        answers: The answers to it or to a beginning of it, which are dropped with it.
        used: The time of its last use.
        entry: Its bytes in the ledger.

    """

    __slots__ = ("answers", "digests", "entry", "key", "last", "tape", "used")

    def __init__(self, key: ShelfKey, digests: tuple[int, ...], last: int, tape: _core.Tape) -> None:
        self.key = key
        self.digests = digests
        self.last = last
        self.tape = tape
        self.answers: dict[KeptAnswer, None] = {}
        self.used = 0.0
        self.entry: Entry | None = None

    @property
    def size(self) -> int:
        """Bytes of memory, without the answers."""
        return self.tape.memory + MESSAGE_BYTES * len(self.digests)

    def covers(self, new: KeptPrompt) -> bool:
        """Whether a new prompt need not be kept beside this one: it is the same, or a beginning of this conversation."""
        if self.tape is new.tape:
            return True
        n = len(new.digests)
        begins = n < len(self.digests) and self.digests[n - 1] == new.digests[-1]
        return begins and 2 * new.tape.reused_ids >= len(new.tape.ids)


class KeptAnswer:
    """An engine's answer to a prompt.

    Attributes:
        prompt: The prompt, or one that continues it; `turn` is on its tape.
        asked: The digest of the conversation before the answer.
        place: The digest of the conversation with it, as `delivered` gives it.
        turn: The answer.
        used: The time at which it was kept.
        entry: Its bytes in the ledger.

    """

    __slots__ = ("asked", "entry", "place", "prompt", "turn", "used")

    def __init__(self, prompt: KeptPrompt, asked: int, place: int, turn: SampledTurn) -> None:
        self.prompt = prompt
        self.asked = asked
        self.place = place
        self.turn = turn
        self.used = 0.0
        self.entry: Entry | None = None

    @property
    def key(self) -> ShelfKey:
        """The shelf."""
        return self.prompt.key

    @property
    def size(self) -> int:
        """Bytes of memory, without the prompt."""
        return self.turn.memory + 2 * MESSAGE_BYTES


class Shelf:
    """The prompts and answers of one tenant and tokenizer."""

    __slots__ = ("_answers", "_asked", "_by_chain", "_by_last")

    def __init__(self) -> None:
        self._by_chain: dict[int, KeptPrompt] = {}  # for each beginning of a conversation one that begins so
        self._by_last: dict[int, KeptPrompt] = {}  # by the last message alone
        self._answers: dict[int, KeptAnswer] = {}  # by their places
        self._asked: Counter[int] = Counter()  # of the answers, the conversations before them

    @property
    def empty(self) -> bool:
        return not self._by_chain

    def at(self, one: int) -> KeptPrompt | None:
        """Return a prompt whose conversation begins by that of a digest."""
        return self._by_chain.get(one)

    def find(self, digests: Sequence[int], messages: Sequence[int]) -> KeptPrompt | None:
        """Find a prompt that is likely to have much in common with a conversation, by the digests of its beginnings and messages."""
        for one in reversed(digests[1:]):
            if (found := self._by_chain.get(one)) is not None:
                return found
        for message in reversed(messages):  # another system prompt, or other tools
            if (found := self._by_last.get(message)) is not None:
                return found
        return self._by_chain.get(digests[0])

    def continued_by(self, digests: tuple[int, ...]) -> KeptPrompt | None:
        """Return the prompt of the longest conversation that one continues, or has again."""
        for one in reversed(digests):
            found = self._by_chain.get(one)
            if found is not None and found.digests[-1] == one and found.digests == digests[: len(found.digests)]:
                return found
        return None

    def add(self, new: KeptPrompt) -> None:
        """Add a prompt."""
        self._by_chain.update(dict.fromkeys(new.digests, new))
        self._by_last[new.last] = new

    def extend(self, kept: KeptPrompt, new: KeptPrompt) -> list[KeptAnswer]:
        """Put a prompt in place of one whose conversation it continues: the kept object takes over the new one's content.

        Returns:
            The answers that have another size then.

        """
        self._by_chain.update(dict.fromkeys(new.digests[len(kept.digests) :], kept))
        if self._by_last.get(kept.last) is kept:
            del self._by_last[kept.last]
        self._by_last[new.last] = kept
        changed = []
        if kept.answers and new.tape is not kept.tape:
            common = new.tape.common(kept.tape)
            for answer in kept.answers:
                size = answer.size
                answer.turn = answer.turn.on(new.tape, common)
                if answer.size != size:
                    changed.append(answer)
        kept.digests, kept.last, kept.tape = new.digests, new.last, new.tape
        return changed

    def remove(self, kept: KeptPrompt) -> None:
        """Remove a prompt, whose answers are removed already."""
        for one in kept.digests:
            if self._by_chain.get(one) is kept:
                del self._by_chain[one]
        if self._by_last.get(kept.last) is kept:
            del self._by_last[kept.last]

    def asked(self, digests: Sequence[int]) -> Iterator[int]:
        """Yield the places of the beginnings of a conversation to which an answer is kept, the last one first.

        Other threads may change the shelf meanwhile.
        """
        if self._asked:
            for place in reversed(range(len(digests))):
                if digests[place] in self._asked:
                    yield place

    def answer(self, place: int) -> KeptAnswer | None:
        """Return the answer at a place."""
        return self._answers.get(place)

    def add_answer(self, answer: KeptAnswer) -> None:
        """Add an answer to a prompt on this shelf, whose place for it is empty."""
        self._answers[answer.place] = answer
        self._asked[answer.asked] += 1
        answer.prompt.answers[answer] = None

    def remove_answer(self, answer: KeptAnswer) -> None:
        """Remove an answer."""
        del self._answers[answer.place], answer.prompt.answers[answer]
        self._asked[answer.asked] -= 1
        if not self._asked[answer.asked]:
            del self._asked[answer.asked]
