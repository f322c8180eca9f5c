"""Index of the prompts in a cache and of the engines' answers to them, by the digests of their messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tokenweir.encode import _core
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.cache.ledger import LedgerEntry
from tokenweir.stream.prompts.turns.sampled_turns import SampledTurn

MESSAGE_BYTES = 128
"""Bytes that a message costs in the index: its digest, and the place of it."""

ShelfKey = tuple[str, Tokenizer]
"""Tenant and tokenizer."""


class KeptPrompt:
    """An encoded prompt in a cache; a longer prompt of the same conversation may take over the object.

    Attributes:
        key: Tenant and tokenizer, which name the `Shelf`.
        digests: The digest of each prefix of the conversation, the empty one included, as `Messages.text_chain` returns them.
        last: The digest of the last message alone.
        tape: The prompt's text and ids, as the core keeps them.
        answers: The answers to it or to a beginning of it, which are dropped with it.
        used: The time of its last use, by the store's clock.
        entry: The ledger's entry that counts its bytes; None while they are not counted.

    """

    __slots__ = ("answers", "digests", "entry", "key", "last", "tape", "used")

    def __init__(self, key: ShelfKey, digests: tuple[int, ...], last: int, tape: _core.Tape) -> None:
        self.key = key
        self.digests = digests
        self.last = last
        self.tape = tape
        self.answers: dict[KeptAnswer, None] = {}
        self.used = 0.0
        self.entry: LedgerEntry | None = None

    @property
    def size(self) -> int:
        """Bytes of memory that the prompt takes, without its answers."""
        return self.tape.memory + MESSAGE_BYTES * len(self.digests)

    def covers(self, new: KeptPrompt) -> bool:
        """Whether a new prompt need not be kept in addition to this one.

        True if it has the same tape, or if it is a beginning of this conversation and at least half of its ids were reused.
        """
        if self.tape is new.tape:
            return True
        n = len(new.digests)
        begins = n < len(self.digests) and self.digests[n - 1] == new.digests[-1]
        return begins and 2 * new.tape.reused_ids >= len(new.tape.ids)


class KeptAnswer:
    """An engine's answer to a prompt in a cache.

    Attributes:
        prompt: The prompt, or one that continues it; `turn` is stored as differences from its tape.
        prompt_digest: The digest of the conversation before the answer.
        answered_digest: The digest of the conversation that ends with the answer, as `message_digests.delivered` returns it.
        turn: The prompt as the engine got it, and the answer's ids.
        used: The time at which it was kept, by the store's clock.
        entry: The ledger's entry that counts its bytes; None while they are not counted.

    """

    __slots__ = ("answered_digest", "entry", "prompt", "prompt_digest", "turn", "used")

    def __init__(self, prompt: KeptPrompt, prompt_digest: int, answered_digest: int, turn: SampledTurn) -> None:
        self.prompt = prompt
        self.prompt_digest = prompt_digest
        self.answered_digest = answered_digest
        self.turn = turn
        self.used = 0.0
        self.entry: LedgerEntry | None = None

    @property
    def key(self) -> ShelfKey:
        """Tenant and tokenizer, which name the `Shelf`."""
        return self.prompt.key

    @property
    def size(self) -> int:
        """Bytes of memory that the answer takes, without its prompt."""
        return self.turn.memory + 2 * MESSAGE_BYTES


class Shelf:
    """Index of the prompts and answers of one tenant and tokenizer."""

    __slots__ = ("_answers", "_by_chain", "_by_last", "_prompt_digests")

    def __init__(self) -> None:
        self._by_chain: dict[int, KeptPrompt] = {}  # for each beginning of a conversation one that begins so
        self._by_last: dict[int, KeptPrompt] = {}  # by the last message alone
        self._answers: dict[int, KeptAnswer] = {}  # by `answered_digest`
        self._prompt_digests: Counter[int] = Counter()  # of the answers, the conversations before them

    @property
    def empty(self) -> bool:
        return not self._by_chain

    def at(self, one: int) -> KeptPrompt | None:
        """Return a prompt whose conversation has a prefix of this digest; None if there is no such prompt."""
        return self._by_chain.get(one)

    def find(self, digests: Sequence[int], messages: Sequence[int]) -> KeptPrompt | None:
        """Return the prompt that is likely to have most text in common with a conversation; None if no digest is found.

        The longest known prefix is looked up first, then a prompt that ends with one of the messages, the last message first.

        Args:
            digests: The digest of each prefix of the conversation, the empty one included.
            messages: The digest of each message alone.

        """
        for one in reversed(digests[1:]):
            if (found := self._by_chain.get(one)) is not None:
                return found
        for message in reversed(messages):  # another system prompt, or other tools
            if (found := self._by_last.get(message)) is not None:
                return found
        return self._by_chain.get(digests[0])

    def continued_by(self, digests: tuple[int, ...]) -> KeptPrompt | None:
        """Return the longest prompt that has all its messages at the start of a conversation, or is equal to it.

        Args:
            digests: The digest of each prefix of the conversation, the empty one included.

        Returns:
            None if the conversation continues no prompt of this shelf.

        """
        for one in reversed(digests):
            found = self._by_chain.get(one)
            if found is not None and found.digests[-1] == one and found.digests == digests[: len(found.digests)]:
                return found
        return None

    def add(self, new: KeptPrompt) -> None:
        """Add a prompt to the index, under the digest of each prefix of its conversation and of its last message."""
        self._by_chain.update(dict.fromkeys(new.digests, new))
        self._by_last[new.last] = new

    def extend(self, kept: KeptPrompt, new: KeptPrompt) -> list[KeptAnswer]:
        """Replace a prompt by one that continues its conversation: the object `kept` takes over the content of `new`.

        Returns:
            The answers of `kept` whose `size` has changed by this.

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
                answer.turn = answer.turn.rebased_on(new.tape, common)
                if answer.size != size:
                    changed.append(answer)
        kept.digests, kept.last, kept.tape = new.digests, new.last, new.tape
        return changed

    def remove(self, kept: KeptPrompt) -> None:
        """Remove a prompt from the index. Its answers must have been removed before."""
        for one in kept.digests:
            if self._by_chain.get(one) is kept:
                del self._by_chain[one]
        if self._by_last.get(kept.last) is kept:
            del self._by_last[kept.last]

    def answered_indices(self, digests: Sequence[int]) -> Iterator[int]:
        """Yield the indices in `digests` of those to which an answer is kept, in descending order.

        An index is also the number of the message that may be that answer. Other threads may change the shelf meanwhile.

        Args:
            digests: The digest of each prefix of a conversation, the empty one included.

        """
        if self._prompt_digests:
            for place in reversed(range(len(digests))):
                if digests[place] in self._prompt_digests:
                    yield place

    def answer(self, digest: int) -> KeptAnswer | None:
        """Return the answer whose attribute `answered_digest` is this digest; None if it is not kept."""
        return self._answers.get(digest)

    def add_answer(self, answer: KeptAnswer) -> None:
        """Add an answer to its prompt, which is on this shelf. No other answer may have the same `answered_digest`."""
        self._answers[answer.answered_digest] = answer
        self._prompt_digests[answer.prompt_digest] += 1
        answer.prompt.answers[answer] = None

    def remove_answer(self, answer: KeptAnswer) -> None:
        """Remove an answer from the index and from its prompt."""
        del self._answers[answer.answered_digest], answer.prompt.answers[answer]
        self._prompt_digests[answer.prompt_digest] -= 1
        if not self._prompt_digests[answer.prompt_digest]:
            del self._prompt_digests[answer.prompt_digest]
