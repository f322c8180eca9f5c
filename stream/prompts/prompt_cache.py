"""`PromptCache`: prompts that share text with earlier ones are encoded from where they differ."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Literal, get_args

import numpy as np
from msgspec import Struct

from tokenweir.encode import _core
from tokenweir.encode.build import core_of
from tokenweir.encode.decode import check_tokenizer
from tokenweir.encode.options import check_integers, check_texts
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.cached_prompt import CachedPrompt, PromptSource
from tokenweir.stream.prompts.ledger import Entry, Ledger
from tokenweir.stream.prompts.message_digests import chain, delivered, digest
from tokenweir.stream.prompts.sampled_turns import KeptIds, SampledTurn, fingerprint, keep_turn, sampled_turn
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.messages import Messages
from tokenweir.templates.prompt import Prompt

logger = logging.getLogger("tokenweir.prompts")

History = Literal["canonical", "exact", "sampled"]
"""Kinds of ids: those of the text; with those that an engine sampled, where the text is the same; or with the engine's
for the whole last answer, also where the template writes other text."""

MAX_AGE = 600.0
"""Seconds after its last use at which a prompt is dropped."""
MESSAGE_BYTES = 128
"""Bytes that a message costs in the index: its digest, and the place of it."""


def check_history(history: object) -> None:
    """Raise ValueError for another value than those of `History`."""
    if history not in get_args(History):
        raise ValueError(f"history must be one of {', '.join(get_args(History))}, not {history!r:.80}")


class CacheCounts(Struct):
    """Counts of a cache since it was made.

    Attributes:
        reused_ids: Ids of prompts that were taken over from earlier ones.
        encoded_ids: Ids of prompts that were encoded.
        kept_ids: Ids of prompts that are an engine's.
        declined: Prompts that keep less than all of an earlier answer, by the reason that `CachedPrompt.differs` has.
        wrong: Prompts that a check found to have other ids than without the cache. 0 unless there is a bug.

    """

    reused_ids: int = 0
    encoded_ids: int = 0
    kept_ids: int = 0
    declined: dict[str, int] = {}
    wrong: int = 0

    def __add__(self, other: CacheCounts) -> CacheCounts:
        """Return the sums of the counts of two caches."""
        return CacheCounts(
            self.reused_ids + other.reused_ids,
            self.encoded_ids + other.encoded_ids,
            self.kept_ids + other.kept_ids,
            dict(Counter(self.declined) + Counter(other.declined)),
            self.wrong + other.wrong,
        )


class PromptCache:
    """Encoded prompts of the last minutes, by which later ones are encoded from where they differ.

    Rendering is not cached. The rendered text and its guards are compared with those of an earlier prompt, which the
    digests of the messages propose. Encoding resumes at the last cut before the first difference, and stops where the two
    texts agree again; `docs/explanation/prompt-cache.md` proves that the ids are those of `Prompt.encode`.

    Tenants share nothing, because a hit is faster than a miss and would tell one tenant of another's prompts. Objects may
    be shared between threads, templates and tokenizers. They hold prompts in memory only.

    Args:
        max_bytes: Most bytes of all prompts together. Over it, the oldest prompt of the tenant that holds most is dropped.
        max_age: Seconds without use after which a prompt is dropped.
        check_every: How many prompts pass until one is encoded again, without the cache; 0 checks none. A difference is
            logged, without any text, and empties the cache.
        ledger: Counts the bytes in place of an own bound, for prompts that share a budget with other memory.
        clock: The time in seconds.

    Attributes:
        counts: Its counts.

    Raises:
        TypeError: `max_bytes` or `check_every` is not an int.
        ValueError: `max_bytes` is below 1, `check_every` below 0, or `max_age` is not above 0.

    """

    def __init__(
        self,
        max_bytes: int = 64 << 20,
        *,
        max_age: float = MAX_AGE,
        check_every: int = 0,
        ledger: Ledger | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        check_integers(max_bytes=max_bytes, check_every=check_every)
        if max_bytes < 1:
            raise ValueError(f"max_bytes={max_bytes} is below 1")
        if check_every < 0:
            raise ValueError(f"check_every={check_every} is below 0")
        if not max_age > 0:
            raise ValueError(f"max_age={max_age} is not above 0")
        self.counts = CacheCounts()
        self._check_every = check_every
        self._unchecked = 0
        self._ledger = Ledger(max_bytes) if ledger is None else ledger
        self._max_age = max_age
        self._clock = clock
        self._lock = Lock()
        self._shelves: dict[_ShelfKey, _Shelf] = {}
        self._by_use: OrderedDict[_Kept, None] = OrderedDict()  # the longest unused first

    def __len__(self) -> int:
        return len(self._by_use)

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that the kept prompts take."""
        with self._lock:
            return sum(kept.size for kept in self._by_use)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]] | Messages,
        *,
        template: ChatTemplate,
        tokenizer: Tokenizer,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tenant: str = "",
        history: History = "canonical",
        **template_kwargs: Any,
    ) -> CachedPrompt:
        """Render a conversation and encode it.

        Args:
            messages: As for `ChatTemplate.render`.
            template: The model's chat template.
            tokenizer: The model's tokenizer.
            tools: As for `ChatTemplate.render`.
            tenant: Whose prompt it is. Only prompts of the same tenant are taken over.
            history: Whether to keep the ids of answers that `answered` was told of; see `History`.
            template_kwargs: Further arguments of `ChatTemplate.render`, the template's variables included.

        Raises:
            TemplateError: As `ChatTemplate.render`.
            TextError: A string has a lone surrogate.
            TypeError: `template`, `tokenizer` or `tenant` has the wrong type.
            ValueError: `history` has another value.

        """
        if not isinstance(template, ChatTemplate):
            raise TypeError(f"template is a {type(template).__name__}, not a ChatTemplate")
        check_tokenizer(tokenizer)
        read = _read(messages)
        prompt = template.render_for(tokenizer, read, tools=tools, **template_kwargs)
        variables = {name: value for name, value in template_kwargs.items() if name != "add_generation_prompt"}
        return self.encode(
            prompt,
            read,
            tokenizer=tokenizer,
            before=(template.source, tools, variables),
            tenant=tenant,
            history=history,
        )

    def encode(
        self,
        prompt: Prompt,
        messages: Sequence[Mapping[str, Any]] | Messages,
        *,
        tokenizer: Tokenizer,
        before: object = None,
        tenant: str = "",
        history: History = "canonical",
    ) -> CachedPrompt:
        """Encode a rendered conversation.

        Args:
            prompt: The rendered messages.
            messages: The messages, which propose an earlier prompt. No ids depend on them.
            tokenizer: The model's tokenizer.
            before: JSON-like data that prompts of one conversation have in common, such as its tools.
            tenant: As for `render`.
            history: As for `render`.

        Raises:
            TypeError: `tenant` is not a str.
            ValueError: `history` has another value.

        """
        check_history(history)
        check_texts(tenant=tenant)
        start = digest(before)
        read = _read(messages)
        own = read.text_digests
        digests = chain(start, own)
        with self._lock:
            expired = self._expired()
            shelf = self._shelves.get((tenant, tokenizer, False))
            earlier = None if shelf is None else shelf.find(digests, own)
        self._leave(expired)
        answer, is_continued = self._find_answer((tenant, tokenizer, True), digests, own, read)
        encoder, guarded = core_of(tokenizer).encoder, prompt.guarded_for(tokenizer)
        last = None if earlier is None else earlier.tape
        text = prompt.encoded_text
        tape = _core.tape(encoder, text, guarded, last)
        if self._is_due():
            checked = _core.tape(encoder, text, guarded, None)
            if not np.array_equal(tape.ids, checked.ids):
                self._report(tape)
                tape, last, earlier = checked, None, None
        reused = len(tape.ids) if tape is last else tape.reused_ids
        with self._lock:
            self.counts.reused_ids += reused
            self.counts.encoded_ids += len(tape.ids) - reused
        self._keep(_Kept(tenant, tokenizer, digests, own[-1] if own else start, tape), earlier)
        kept = None
        if history != "canonical" and answer is not None and answer.turn is not None:
            kept = keep_turn(answer.turn, read, prompt, tape, tokenizer, as_sampled=history == "sampled")
            self._count(kept)
        return CachedPrompt(
            prompt,
            tokenizer,
            tape,
            None if last is None else last.size,
            is_same=tape is last,
            kept=kept,
            source=PromptSource(tenant, digests, len(read), answer if is_continued else None),
        )

    def _find_answer(
        self, shelf: _ShelfKey, digests: tuple[int, ...], own: Sequence[int], messages: Messages
    ) -> tuple[_Kept | None, bool]:
        """Find the last answer that a conversation has a message of, and whether the message is the delivered one.

        Answers that begin like the conversation are found too; how much of them can be kept is decided by their bytes.
        """
        with self._lock:
            answers = self._shelves.get(shelf)
            known = [] if answers is None else answers.answered(digests[:-1])
        for number in known:
            message = messages[number]
            if message.get("role") == "assistant":
                place = delivered(digests[number], fingerprint(message))
                with self._lock:
                    if answers is not None and (found := answers.at(place)) is not None:
                        return found, True
        with self._lock:
            return (None if answers is None else answers.find(digests, own)), False

    def answered(
        self,
        prompt: CachedPrompt,
        ids: Sequence[int],
        message: Mapping[str, Any],
        *,
        inferred: Sequence[int] | None = None,
    ) -> None:
        """Keep the ids of an answer with the message that was made of it.

        When the message comes back in a later conversation, `history="exact"` and `"sampled"` keep these ids. A message that
        was not delivered to the same tenant gets canonical ids.

        Args:
            prompt: The prompt that the engine was given, of this cache.
            ids: All ids of the answer, the one that ended it included.
            message: The message as it was delivered.
            inferred: Places in `ids` that the engine did not tell and that were inferred from its text.

        Raises:
            TokenIdError: An id is outside the vocabulary.
            TypeError: An argument has the wrong type.
            ValueError: `inferred` has a place outside of the answer.

        """
        if not isinstance(prompt, CachedPrompt):
            raise TypeError(f"prompt is a {type(prompt).__name__}, not a CachedPrompt")
        source = prompt.source
        turn = sampled_turn(prompt, ids, message, source.messages, () if inferred is None else inferred)
        digests = (*source.digests, delivered(source.digests[-1], turn.identities[-1]))
        if (before := source.continued) is not None:
            self._drop(before)  # its ids are part of this turn
        self._keep(_Kept(source.tenant, prompt.tokenizer, digests, 0, prompt.tape, turn), None)

    def _count(self, kept: KeptIds | None) -> None:
        """Count what was kept of an earlier answer."""
        with self._lock:
            if kept is not None:
                self.counts.kept_ids += int(np.count_nonzero(kept.sampled))
            reason = "nothing" if kept is None else kept.reason
            if reason:
                self.counts.declined[reason] = self.counts.declined.get(reason, 0) + 1

    def clear(self, tenant: str | None = None) -> None:
        """Drop all prompts, or those of one tenant."""
        with self._lock:
            gone = [kept for kept in self._by_use if tenant is None or kept.tenant == tenant]
            entries = [self._remove(kept) for kept in gone]
        self._leave(entries)

    def forget(self, tenant: str, conversation: int) -> None:
        """Drop the prompts of a conversation, those that continue it included, and the answers to them.

        Args:
            tenant: The tenant.
            conversation: The last one of the digests that `PromptSource` has.

        """
        with self._lock:
            gone = [kept for kept in self._by_use if kept.tenant == tenant and conversation in kept.digests]
            entries = [self._remove(kept) for kept in gone]
        self._leave(entries)

    def _is_due(self) -> bool:
        """Whether a prompt is to be checked."""
        with self._lock:
            self._unchecked += 1
            if self._check_every == 0 or self._unchecked < self._check_every:
                return False
            self._unchecked = 0
            return True

    def _report(self, tape: _core.Tape) -> None:
        """Empty the cache, and log where a prompt with wrong ids was cut."""
        self.clear()
        with self._lock:
            self.counts.wrong += 1
        logger.error(
            "a cached prompt of %d bytes had wrong ids: it differed at byte %d, resumed at %d and rejoined at %d",
            tape.size, tape.difference, tape.resumed, tape.rejoined,
        )  # fmt: skip

    def _keep(self, new: _Kept, earlier: _Kept | None) -> None:
        """Keep a prompt in place of those that it continues, or the earlier one, if that says as much."""
        with self._lock:
            if earlier is not None and earlier in self._by_use and earlier.covers(new):
                kept, entries = earlier, [earlier.entry]
                kept.entry = None
                self._by_use.move_to_end(kept)
            else:
                shelf = self._shelves.setdefault(new.shelf, _Shelf())
                kept, entries = new, [self._remove(continued) for continued in shelf.continued_by(new)]
                self._shelves.setdefault(new.shelf, shelf).add(new)
                self._by_use[new] = None
            kept.used = self._clock()
        self._leave(entries)
        # Without the lock, because the ledger may drop prompts of this cache, also this one.
        entry = self._ledger.enter(kept.tenant, kept.size, partial(self._drop, kept), is_cache=True)
        with self._lock:
            if kept in self._by_use and kept.entry is None:
                kept.entry = entry
                return
        self._ledger.leave(entry)  # the prompt was dropped meanwhile, or another thread has counted it

    def _drop(self, kept: _Kept) -> None:
        with self._lock:
            entry = self._remove(kept) if kept in self._by_use else None
        self._leave([entry])

    def _leave(self, entries: Iterable[Entry | None]) -> None:
        for entry in entries:
            if entry is not None:
                self._ledger.leave(entry)

    def _remove(self, kept: _Kept) -> Entry | None:
        """Take a prompt out of the index; the caller holds the lock, and gives the entry back to the ledger after it."""
        del self._by_use[kept]
        shelf = self._shelves[kept.shelf]
        shelf.remove(kept)
        if shelf.empty:
            del self._shelves[kept.shelf]
        return kept.entry

    def _expired(self) -> list[Entry | None]:
        """Take out the prompts that were not used for too long."""
        entries = []
        oldest = self._clock() - self._max_age
        while self._by_use and (kept := next(iter(self._by_use))).used < oldest:
            entries.append(self._remove(kept))
        return entries


_ShelfKey = tuple[str, Tokenizer, bool]
"""Tenant, tokenizer, and whether the shelf is that of answers."""


def _read(messages: Sequence[Mapping[str, Any]] | Messages) -> Messages:
    return messages if isinstance(messages, Messages) else Messages(messages)


class _Kept:
    """An encoded prompt, or an engine's answer to one, with the digests by which it is found."""

    __slots__ = ("digests", "entry", "last", "shelf", "size", "tape", "tenant", "turn", "used")

    def __init__(
        self,
        tenant: str,
        tokenizer: Tokenizer,
        digests: tuple[int, ...],
        last: int,
        tape: _core.Tape,
        turn: SampledTurn | None = None,
    ) -> None:
        self.tenant = tenant
        self.digests = digests
        self.last = last
        self.tape = tape
        self.turn = turn
        self.shelf = tenant, tokenizer, turn is not None
        self.size = (tape.memory if turn is None else turn.memory) + MESSAGE_BYTES * len(digests)
        self.used = 0.0
        self.entry: Entry | None = None

    def covers(self, new: _Kept) -> bool:
        """Whether a new prompt need not be kept beside this one: it is the same, or a beginning of this conversation."""
        if self.tape is new.tape:
            return True
        n = len(new.digests)
        begins = n < len(self.digests) and self.digests[n - 1] == new.digests[-1]
        return begins and 2 * new.tape.reused_ids >= len(new.tape.ids)


class _Shelf:
    """The prompts of one tenant and tokenizer, by digests."""

    __slots__ = ("_by_chain", "_by_last", "_prompts")

    def __init__(self) -> None:
        self._prompts: Counter[int] = Counter()  # of the answers, the conversations before them
        self._by_chain: dict[int, _Kept] = {}  # of each beginning of a conversation the newest that begins so
        self._by_last: dict[int, _Kept] = {}  # by the last message alone

    @property
    def empty(self) -> bool:
        return not self._by_chain

    def answered(self, digests: Sequence[int]) -> list[int]:
        """Return the places of the beginnings of a conversation to which an answer is kept, the last one first."""
        return [place for place in reversed(range(len(digests))) if digests[place] in self._prompts]

    def at(self, one: int) -> _Kept | None:
        """Return what is kept of the conversation that ends by a digest."""
        found = self._by_chain.get(one)
        return found if found is not None and found.digests[-1] == one else None

    def find(self, digests: Sequence[int], messages: Sequence[int]) -> _Kept | None:
        """Find a prompt that is likely to have much in common with a conversation, by the digests of its beginnings and messages."""
        for one in reversed(digests[1:]):
            if (found := self._by_chain.get(one)) is not None:
                return found
        for message in reversed(messages):  # another system prompt, or other tools
            if (found := self._by_last.get(message)) is not None:
                return found
        return self._by_chain.get(digests[0])

    def continued_by(self, new: _Kept) -> list[_Kept]:
        """Return the prompts whose conversation a new one continues or has again."""
        found = ((one, self._by_chain.get(one)) for one in new.digests)
        return [kept for one, kept in found if kept is not None and kept.digests[-1] == one]

    def add(self, new: _Kept) -> None:
        self._by_chain.update(dict.fromkeys(new.digests, new))
        self._by_last[new.last] = new
        if new.turn is not None:
            self._prompts[new.digests[-2]] += 1

    def remove(self, kept: _Kept) -> None:
        for one in kept.digests:
            if self._by_chain.get(one) is kept:
                del self._by_chain[one]
        if self._by_last.get(kept.last) is kept:
            del self._by_last[kept.last]
        if kept.turn is not None:
            place = kept.digests[-2]
            self._prompts[place] -= 1
            if not self._prompts[place]:
                del self._prompts[place]
