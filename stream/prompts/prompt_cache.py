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
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.build import core_of
from tokenweir.encode.decode import check_tokenizer
from tokenweir.encode.options import check_integers, check_texts
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.answer_identity import fingerprint
from tokenweir.stream.prompts.cached_prompt import CachedPrompt, Difference, PromptSource
from tokenweir.stream.prompts.ledger import Entry, Ledger
from tokenweir.stream.prompts.message_digests import chain, delivered, digest
from tokenweir.stream.prompts.prompt_index import KeptAnswer, KeptPrompt, Shelf, ShelfKey
from tokenweir.stream.prompts.sampled_turns import KeptIds, SampledTurn, keep_turn, sampled_turn
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.messages import Messages
from tokenweir.templates.prompt import Prompt

logger = logging.getLogger("tokenweir.prompts")

History = Literal["canonical", "exact", "sampled"]
"""Kinds of ids: those of the text; with those that an engine sampled, where the text is the same; or with the engine's
for the whole last answer, also where the template writes other text."""

MAX_AGE = 600.0
"""Seconds after its last use at which a prompt is dropped."""
MAX_ANSWERS = 256
"""The most answers to one prompt. Over it, the oldest is dropped."""


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
        self._shelves: dict[ShelfKey, Shelf] = {}
        self._by_use: OrderedDict[KeptPrompt | KeptAnswer, None] = OrderedDict()  # the longest unused first

    def __len__(self) -> int:
        return len(self._by_use)

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that the kept prompts and answers take."""
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
        ids: Sequence[int] | NDArray[np.int32] | None = None,
    ) -> CachedPrompt:
        """Encode a rendered conversation.

        Args:
            prompt: The rendered messages.
            messages: The messages, which propose an earlier prompt. No ids depend on them.
            tokenizer: The model's tokenizer.
            before: JSON-like data that prompts of one conversation have in common, such as its tools.
            tenant: As for `render`.
            history: As for `render`.
            ids: The ids of the prompt, if another encoder has encoded it.

        Raises:
            TypeError: `tenant` is not a str.
            ValueError: `history` has another value.

        """
        check_history(history)
        check_texts(tenant=tenant)
        read = _read(messages)
        own = read.text_digests
        digests = chain(digest(before), own)
        key, last_message = (tenant, tokenizer), own[-1] if own else digests[0]
        shelf, earlier, last = self._find(key, digests, own)
        answer, is_delivered = self._find_answer(shelf, earlier, digests, read)
        encoder, guarded = core_of(tokenizer).encoder, prompt.guarded_for(tokenizer)
        text = prompt.encoded_text
        if ids is not None:
            tape, last = _core.tape_of_ids(text, guarded, np.asarray(ids, np.int32)), None
        else:
            tape = _core.tape(encoder, text, guarded, last)
        if ids is None and self._is_due():
            checked = _core.tape(encoder, text, guarded, None)
            if not np.array_equal(tape.ids, checked.ids):
                self._report(tape)
                tape, last, earlier = checked, None, None
        reused = len(tape.ids) if tape is last else tape.reused_ids
        with self._lock:
            self.counts.reused_ids += reused
            self.counts.encoded_ids += len(tape.ids) - reused
        self._keep(KeptPrompt(key, digests, last_message, tape), earlier)
        kept = declined = None
        if history != "canonical" and answer is not None:
            turn = answer.turn
            kept = keep_turn(
                turn, read, prompt, tape, tokenizer, as_sampled=history == "sampled", is_delivered=is_delivered
            )
            declined = _declined(turn, kept)
            self._count(kept, declined)
        return CachedPrompt(
            prompt,
            tokenizer,
            tape,
            None if last is None else last.size,
            is_same=tape is last,
            kept=kept,
            declined=declined,
            source=PromptSource(tenant, digests, last_message, len(read), answer if is_delivered else None),
        )

    def known_bytes(
        self,
        prompt: Prompt,
        messages: Sequence[Mapping[str, Any]] | Messages,
        *,
        tokenizer: Tokenizer,
        before: object = None,
        tenant: str = "",
    ) -> tuple[int, int]:
        """Return how many bytes a rendered conversation has in common with an earlier prompt, and how many come behind them.

        Arguments are those of `encode`.
        """
        own = _read(messages).text_digests
        _, _, last = self._find((tenant, tokenizer), chain(digest(before), own), own)
        text = prompt.encoded_text
        size = len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else len(text)
        known = 0 if last is None else last.common_bytes(text)
        return known, size - known

    def _find(
        self, key: ShelfKey, digests: tuple[int, ...], own: Sequence[int]
    ) -> tuple[Shelf | None, KeptPrompt | None, _core.Tape | None]:
        """Find the shelf of a conversation, and an earlier prompt with its tape."""
        with self._lock:
            expired = self._expired()
            shelf = self._shelves.get(key)
            earlier = None if shelf is None else shelf.find(digests, own)
            last = None if earlier is None else earlier.tape
        self._leave(expired)
        return shelf, earlier, last

    def _find_answer(
        self, shelf: Shelf | None, earlier: KeptPrompt | None, digests: tuple[int, ...], messages: Messages
    ) -> tuple[KeptAnswer | None, bool]:
        """Find the last answer that a conversation has a message of, and whether the message is the delivered one.

        Otherwise it is the newest answer to the earlier prompt; how much of it can be kept is decided by its bytes.
        """
        if shelf is None:
            return None, False
        for number in shelf.asked(digests[:-1]):
            message = messages[number]
            if message.get("role") == "assistant":
                found = shelf.answer(delivered(digests[number], fingerprint(message)))
                if found is not None:
                    return found, True
        with self._lock:
            return next(reversed(earlier.answers), None) if earlier is not None else None, False

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
        asked = source.digests[-1]
        place = delivered(asked, turn.identity)
        key = source.tenant, prompt.tokenizer
        with self._lock:
            shelf = self._shelves.setdefault(key, Shelf())
            base, changed = shelf.at(asked), list[KeptPrompt | KeptAnswer]()
            if base is None:  # it was dropped
                base = KeptPrompt(key, source.digests, source.last, prompt.tape)
                shelf.add(base)
                changed.append(base)
            gone = [source.continued] if source.continued in self._by_use else []  # its ids are part of this turn
            if (same := shelf.answer(place)) is not None and same not in gone:
                gone.append(same)
            kept = [each for each in base.answers if each not in gone]
            gone += kept[: max(0, len(kept) + 1 - MAX_ANSWERS)]
            entries = [entry for each in gone for entry in self._remove(each)]
            answer = KeptAnswer(base, asked, place, turn.on(base.tape))
            shelf.add_answer(answer)
            changed.append(answer)
            entries += self._use([base, answer], changed)
        self._leave(entries)
        self._enter(changed)

    def _count(self, kept: KeptIds | None, declined: Difference | None) -> None:
        """Count what was kept of an earlier answer."""
        with self._lock:
            if kept is not None:
                self.counts.kept_ids += len(kept.engine_ids.flags)
            if declined is not None:
                reason = declined.reason
                self.counts.declined[reason] = self.counts.declined.get(reason, 0) + 1

    def clear(self, tenant: str | None = None) -> None:
        """Drop all prompts, or those of one tenant."""
        with self._lock:
            gone = [kept for kept in self._by_use if tenant is None or kept.key[0] == tenant]
            entries = [entry for kept in gone if kept in self._by_use for entry in self._remove(kept)]
        self._leave(entries)

    def forget(self, tenant: str, conversation: int) -> None:
        """Drop the prompts of a conversation, those that continue it included, and the answers to them.

        Args:
            tenant: The tenant.
            conversation: The last one of the digests that `PromptSource` has.

        """
        with self._lock:
            gone = [
                kept
                for kept in self._by_use
                if isinstance(kept, KeptPrompt) and kept.key[0] == tenant and conversation in kept.digests
            ]
            entries = [entry for kept in gone for entry in self._remove(kept)]
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

    def _keep(self, new: KeptPrompt, earlier: KeptPrompt | None) -> None:
        """Keep a prompt in place of the one that it continues, or the earlier one, if that says as much."""
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
    ) -> list[Entry | None]:
        """Note a use, and return the entries of what has another size or a new use; the caller holds the lock."""
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
        """Count the bytes of what is kept, without the lock, because the ledger may drop any of it."""
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

    def _leave(self, entries: Iterable[Entry | None]) -> None:
        for entry in entries:
            if entry is not None:
                self._ledger.leave(entry)

    def _remove(self, kept: KeptPrompt | KeptAnswer) -> list[Entry | None]:
        """Take an answer, or a prompt with its answers, out of the index.

        The caller holds the lock, and gives the entries back to the ledger after it.
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

    def _expired(self) -> list[Entry | None]:
        """Take out what was not used for too long."""
        entries: list[Entry | None] = []
        oldest = self._clock() - self._max_age
        while self._by_use and (kept := next(iter(self._by_use))).used < oldest:
            entries += self._remove(kept)
        return entries


def _read(messages: Sequence[Mapping[str, Any]] | Messages) -> Messages:
    return messages if isinstance(messages, Messages) else Messages(messages)


def _declined(turn: SampledTurn, kept: KeptIds | None) -> Difference | None:
    """Return the first answer whose ids are not kept as a whole, and why; None if all are."""
    if kept is None:
        return Difference(turn.kept[0].message, "nothing")
    if not kept.reason:
        return None
    found = kept.engine_ids.kept
    whole = len(found) - (found[-1].end < turn.kept[len(found) - 1].end)
    return Difference(turn.kept[min(whole, len(turn.kept) - 1)].message, kept.reason)
