"""Storage of a cache's prompts and answers: found by their digests, bounded in bytes and in age."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Lock

from tokenweir.encode import _core
from tokenweir.stream.prompts.cache.ledger import Ledger, LedgerEntry
from tokenweir.stream.prompts.cache.message_digests import delivered
from tokenweir.stream.prompts.cache.prompt_index import KeptAnswer, KeptPrompt, Shelf, ShelfKey
from tokenweir.stream.prompts.turns.answer_identity import fingerprint
from tokenweir.stream.prompts.turns.sampled_turns import SampledTurn
from tokenweir.templates.messages import Messages

MAX_ANSWERS = 256
"""The most answers to one prompt. Over it, the oldest is dropped."""


class PromptStore:
    """Storage of the prompts and answers of a `PromptCache`. Threads may share it.

    Args:
        ledger: Counts the bytes of prompts and answers, and drops the oldest when its bound is exceeded.
        max_age: Seconds without use after which a prompt or answer is dropped.
        clock: Returns the current time in seconds.

    """

    def __init__(self, ledger: Ledger, max_age: float, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._max_age = max_age
        self._clock = clock
        self._lock = Lock()
        self._shelves: dict[ShelfKey, Shelf] = {}
        self._by_use: OrderedDict[KeptPrompt | KeptAnswer, None] = OrderedDict()  # the longest unused first

    def __len__(self) -> int:
        return len(self._by_use)

    @property
    def kept(self) -> list[KeptPrompt | KeptAnswer]:
        """All prompts and answers, the least recently used first."""
        with self._lock:
            return list(self._by_use)

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that all prompts and answers take."""
        return sum(kept.size for kept in self.kept)

    def find(
        self, key: ShelfKey, digests: tuple[int, ...], own: Sequence[int]
    ) -> tuple[Shelf | None, KeptPrompt | None, _core.Tape | None]:
        """Drop what has expired, then look up an earlier prompt that is likely to be similar to a conversation.

        Args:
            key: Tenant and tokenizer.
            digests: The digest of each prefix of the conversation, the empty one included.
            own: The digest of each message alone.

        Returns:
            The shelf of the key, the earlier prompt, and its tape; None for each that does not exist.

        """
        with self._lock:
            expired = self._expired()
            shelf = self._shelves.get(key)
            earlier = None if shelf is None else shelf.find(digests, own)
            last = None if earlier is None else earlier.tape
        self._leave(expired)
        return shelf, earlier, last

    def find_answer(
        self, shelf: Shelf | None, earlier: KeptPrompt | None, digests: tuple[int, ...], messages: Messages
    ) -> tuple[KeptAnswer | None, bool]:
        """Find the last kept answer whose delivered message is one of a conversation's messages.

        Args:
            shelf: The shelf of the conversation, as `find` returned it.
            earlier: The earlier prompt, as `find` returned it.
            digests: The digest of each prefix of the conversation, the empty one included.
            messages: The messages of the conversation.

        Returns:
            The answer and True. If no message is a delivered one: the newest answer to the earlier prompt, or None if it has
            no answer, and False.

        """
        if shelf is None:
            return None, False
        for number in shelf.answered_indices(digests[:-1]):
            message = messages[number]
            if message.get("role") == "assistant":
                found = shelf.answer(delivered(digests[number], fingerprint(message)))
                if found is not None:
                    return found, True
        with self._lock:
            return next(reversed(earlier.answers), None) if earlier is not None else None, False

    def keep_answer(self, prompt: KeptPrompt, turn: SampledTurn, continued: KeptAnswer | None) -> None:
        """Keep an engine's answer to a prompt.

        Args:
            prompt: The prompt, which is kept again if it was dropped.
            turn: The prompt as the engine got it, and the answer's ids.
            continued: The kept answer before it in the conversation, which is removed because `turn` has its ids too; None
                if there is no such answer.

        """
        key, prompt_digest = prompt.key, prompt.digests[-1]
        answered_digest = delivered(prompt_digest, turn.identity)
        with self._lock:
            shelf = self._shelves.setdefault(key, Shelf())
            base, changed = shelf.at(prompt_digest), list[KeptPrompt | KeptAnswer]()
            if base is None:  # it was dropped
                shelf.add(prompt)
                changed.append(base := prompt)
            # The ids of the continued answer are part of this turn.
            gone = [continued] if continued is not None and continued in self._by_use else []
            if (same := shelf.answer(answered_digest)) is not None and same not in gone:
                gone.append(same)
            kept = [each for each in base.answers if each not in gone]
            gone += kept[: max(0, len(kept) + 1 - MAX_ANSWERS)]
            entries = [entry for each in gone for entry in self._remove(each)]
            answer = KeptAnswer(base, prompt_digest, answered_digest, turn.rebased_on(base.tape))
            shelf.add_answer(answer)
            changed.append(answer)
            entries += self._use([base, answer], changed)
        self._leave(entries)
        self._enter(changed)

    def clear(self, tenant: str | None = None) -> None:
        """Drop all prompts and answers, or those of one tenant."""
        with self._lock:
            gone = [kept for kept in self._by_use if tenant is None or kept.key[0] == tenant]
            entries = [entry for kept in gone if kept in self._by_use for entry in self._remove(kept)]
        self._leave(entries)

    def forget(self, tenant: str, conversation: int) -> None:
        """Drop the prompts of a conversation, those that continue it included, and the answers to them.

        Args:
            tenant: The tenant.
            conversation: The digest of the conversation: the last item of `PromptSource.digests`.

        """
        with self._lock:
            gone = [
                kept
                for kept in self._by_use
                if isinstance(kept, KeptPrompt) and kept.key[0] == tenant and conversation in kept.digests
            ]
            entries = [entry for kept in gone for entry in self._remove(kept)]
        self._leave(entries)

    def keep(self, new: KeptPrompt, earlier: KeptPrompt | None) -> None:
        """Keep a prompt.

        It replaces a kept prompt of which it is the continuation. It is not stored if `earlier` makes it superfluous, as
        `KeptPrompt.covers` decides; `earlier` then counts as used.

        Args:
            new: The prompt.
            earlier: The earlier prompt, as `find` returned it.

        """
        with self._lock:
            shelf = self._shelves.setdefault(new.key, Shelf())
            changed: list[KeptPrompt | KeptAnswer] = []
            if earlier is not None and earlier in self._by_use and earlier.covers(new):
                kept = earlier
            elif (continued := shelf.continued_by(new.digests)) is not None:
                changed += shelf.extend(continued, new)
                kept = continued
            else:
                shelf.add(new)
                kept = new
            changed.append(kept)
            entries = self._use([kept], changed)
        self._leave(entries)
        self._enter(changed)

    def _use(
        self, used: Iterable[KeptPrompt | KeptAnswer], changed: Iterable[KeptPrompt | KeptAnswer]
    ) -> list[LedgerEntry | None]:
        """Set the time of use of `used`, and detach the ledger's entries from `changed`.

        The caller holds the lock.

        Args:
            used: Those that are used now.
            changed: Those whose bytes `_enter` will count again, as they have another size or a new use.

        Returns:
            The former entries of `changed`, which the caller gives back to the ledger after it has released the lock.

        """
        now = self._clock()
        for each in used:
            each.used = now
            self._by_use[each] = None
            self._by_use.move_to_end(each)
        entries = [each.entry for each in changed]
        for each in changed:
            each.entry = None
        return entries

    def _enter(self, changed: Iterable[KeptPrompt | KeptAnswer]) -> None:
        """Enter the bytes of prompts and answers into the ledger.

        The caller does not hold the lock, because the ledger may call back to drop any prompt or answer.
        """
        for kept in changed:
            entry = self._ledger.enter(kept.key[0], kept.size, partial(self._drop, kept), is_cache=True)
            with self._lock:
                if kept in self._by_use and kept.entry is None:
                    kept.entry = entry
                    continue
            self._ledger.leave(entry)  # it was dropped meanwhile, or another thread has counted it

    def _drop(self, kept: KeptPrompt | KeptAnswer) -> None:
        with self._lock:
            entries = self._remove(kept) if kept in self._by_use else []
        self._leave(entries)

    def _leave(self, entries: Iterable[LedgerEntry | None]) -> None:
        for entry in entries:
            if entry is not None:
                self._ledger.leave(entry)

    def _remove(self, kept: KeptPrompt | KeptAnswer) -> list[LedgerEntry | None]:
        """Remove an answer, or a prompt with its answers; return the ledger's entries of all that was removed.

        The caller holds the lock, and gives the entries back to the ledger after it has released the lock.
        """
        del self._by_use[kept]
        shelf = self._shelves[kept.key]
        if isinstance(kept, KeptAnswer):
            shelf.remove_answer(kept)
            return [kept.entry]
        entries = [entry for answer in list(kept.answers) for entry in self._remove(answer)]
        shelf.remove(kept)
        if shelf.empty:
            del self._shelves[kept.key]
        return [*entries, kept.entry]

    def _expired(self) -> list[LedgerEntry | None]:
        """Remove the prompts and answers that were not used for `max_age` seconds; return their ledger entries.

        The caller holds the lock, and gives the entries back to the ledger after it has released the lock.
        """
        entries: list[LedgerEntry | None] = []
        oldest = self._clock() - self._max_age
        while self._by_use and (kept := next(iter(self._by_use))).used < oldest:
            entries += self._remove(kept)
        return entries
