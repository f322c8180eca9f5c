"""`PromptCache`: a prompt that shares text with an earlier one is encoded only from where they differ."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from time import monotonic
from typing import Any, Literal, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.base.options import check_texts
from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer, core_of
from tokenweir.stream.prompts.cache.cached_prompt import CachedPrompt, PromptSource
from tokenweir.stream.prompts.cache.ledger import Ledger
from tokenweir.stream.prompts.cache.message_digests import digest
from tokenweir.stream.prompts.cache.prompt_index import KeptPrompt
from tokenweir.stream.prompts.cache.prompt_store import PromptStore
from tokenweir.stream.prompts.turns.engine_ids import KeptIds
from tokenweir.stream.prompts.turns.kept_turns import Difference, find_declined_answer, keep_turn
from tokenweir.stream.prompts.turns.sampled_turns import sampled_turn
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.messages import Messages
from tokenweir.templates.prompt import Prompt

logger = logging.getLogger("tokenweir.prompts")

History = Literal["canonical", "exact", "sampled"]
"""Kinds of ids: those of the text; with those that an engine sampled, where the text is the same; or with the engine's
for the whole last answer, also where the template writes other text."""

MAX_AGE = 600.0
"""Seconds after its last use at which a prompt is dropped."""


def check_history(history: object) -> None:
    """Raise ValueError if a value is not one of `History`: "canonical", "exact" or "sampled"."""
    if history not in get_args(History):
        raise ValueError(f"history must be one of {', '.join(get_args(History))}, not {history!r:.80}")


def before_messages(
    template: ChatTemplate, tools: Sequence[Mapping[str, Any]] | None, template_kwargs: Mapping[str, Any]
) -> tuple[object, ...]:
    """Return the data that all prompts of a conversation share besides its messages.

    That is the template's source, the tools and the template's variables, as the argument `before` of `PromptCache.encode`.
    """
    variables = {name: value for name, value in template_kwargs.items() if name != "add_generation_prompt"}
    return template.source, tools, variables


class CacheCounts(Struct):
    """Counts of a prompt cache since it was created.

    Attributes:
        reused_ids: Ids of prompts that were taken over from earlier prompts.
        encoded_ids: Ids of prompts that were encoded.
        kept_ids: Ids of prompts that an engine generated for an earlier answer.
        declined: For each reason of `Difference`, the number of prompts that keep less than all ids of an earlier answer.
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
    """Cache of encoded prompts: a prompt that shares text with an earlier one is encoded only where they differ.

    Rendering is not cached. The rendered text and its guards (bytes over which no control token may match) are compared with
    those of an earlier prompt, which is looked up by the digests of the messages. Encoding resumes at the last cut
    before the first difference, and stops where the two texts agree again; `docs/explanation/prompt-cache.md` proves
    that the ids are those of `Prompt.encode`.

    Tenants share nothing, because a hit is faster than a miss and would tell one tenant of another's prompts. Objects may
    be shared between threads, templates and tokenizers. They hold prompts in memory only.

    Args:
        max_bytes: Most bytes of all prompts together. Over it, the oldest prompt of the tenant that holds most is dropped.
        max_age: Seconds without use after which a prompt is dropped.
        check_every: One in so many prompts is encoded again without the cache, and the ids compared; 0 checks no prompt. A
            difference is logged, without any text, and empties the cache.
        ledger: The budget of memory that counts the bytes; `max_bytes` is then not used. None makes a ledger of `max_bytes`.
        clock: Returns the current time in seconds.

    Attributes:
        counts: Counts since the cache was created.

    Raises:
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
        if max_bytes < 1:
            raise ValueError(f"max_bytes={max_bytes} is below 1")
        if check_every < 0:
            raise ValueError(f"check_every={check_every} is below 0")
        if not max_age > 0:
            raise ValueError(f"max_age={max_age} is not above 0")
        self.counts = CacheCounts()
        self._check_every = check_every
        self._unchecked = 0
        self._lock = Lock()  # of the counts
        self._store = PromptStore(Ledger(max_bytes) if ledger is None else ledger, max_age, clock)

    def __len__(self) -> int:
        return len(self._store)

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that the kept prompts and answers take."""
        return self._store.held_bytes

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
        """Render a conversation, encode it, and return the prompt.

        Args:
            messages: As for `ChatTemplate.render`.
            template: The model's chat template.
            tokenizer: The model's tokenizer.
            tools: As for `ChatTemplate.render`.
            tenant: The prompt's owner. Only ids of prompts of the same tenant are reused.
            history: Whether to keep the ids of answers that `answered` was told of; see `History`.
            template_kwargs: Further arguments of `ChatTemplate.render`, the template's variables included.

        Raises:
            TemplateError: The template refuses the messages, or rendering exceeds a bound.
            TextError: A string has a lone surrogate.
            TypeError: `template`, `tokenizer` or `tenant` has the wrong type.
            ValueError: `history` has another value.

        """
        if not isinstance(template, ChatTemplate):
            raise TypeError(f"template is a {type(template).__name__}, not a ChatTemplate")
        check_tokenizer(tokenizer)
        read = _read(messages)
        prompt = template.render_for(tokenizer, read, tools=tools, **template_kwargs)
        before = before_messages(template, tools, template_kwargs)
        return self.encode(prompt, read, tokenizer=tokenizer, before=before, tenant=tenant, history=history)

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
        """Encode a rendered conversation, and keep it for later prompts.

        Args:
            prompt: The rendered messages.
            messages: The messages, by whose digests an earlier prompt is looked up.
            tokenizer: The model's tokenizer.
            before: JSON-like data that prompts of one conversation have in common, such as its tools.
            tenant: As for `render`.
            history: As for `render`.
            ids: The ids of the prompt, if another encoder has encoded it; None encodes it here.

        Raises:
            TypeError: `tenant` is not a str.
            ValueError: `history` has another value.

        """
        check_history(history)
        check_texts(tenant=tenant)
        read = _read(messages)
        own = read.text_digests
        digests = read.text_chain(digest(before))
        key, last_message = (tenant, tokenizer), own[-1] if own else digests[0]
        shelf, earlier, last = self._store.find(key, digests, own)
        answer, is_delivered = self._store.find_answer(shelf, earlier, digests, read)
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
        self._store.keep(KeptPrompt(key, digests, last_message, tape), earlier)
        kept = declined = None
        if history != "canonical" and answer is not None:
            turn = answer.turn
            kept = keep_turn(
                turn, read, prompt, tape, tokenizer, as_sampled=history == "sampled", is_delivered=is_delivered
            )
            declined = find_declined_answer(turn, kept)
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
        """Return how many bytes at the start of a rendered conversation an earlier prompt shares, and how many are left.

        The arguments are as for `encode`. Nothing is encoded or kept.
        """
        read = _read(messages)
        digests, own = read.text_chain(digest(before)), read.text_digests
        _, _, last = self._store.find((tenant, tokenizer), digests, own)
        text = prompt.encoded_text
        size = len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else len(text)
        known = 0 if last is None else last.common_bytes(text)
        return known, size - known

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
            inferred: Indices in `ids` of those that the engine did not tell and that were inferred from its text.

        Raises:
            TokenIdError: An id is outside the vocabulary.
            TypeError: An argument has the wrong type.
            ValueError: `inferred` has an index outside of the answer.

        """
        if not isinstance(prompt, CachedPrompt):
            raise TypeError(f"prompt is a {type(prompt).__name__}, not a CachedPrompt")
        source = prompt.source
        turn = sampled_turn(prompt, ids, message, source.messages, () if inferred is None else inferred)
        base = KeptPrompt((source.tenant, prompt.tokenizer), source.digests, source.last, prompt.tape)
        self._store.keep_answer(base, turn, continued=source.continued)

    def _count(self, kept: KeptIds | None, declined: Difference | None) -> None:
        """Add the kept ids of earlier answers and the reason for a declined answer, each if given, to `counts`."""
        with self._lock:
            if kept is not None:
                self.counts.kept_ids += len(kept.engine_ids.flags)
            if declined is not None:
                reason = declined.reason
                self.counts.declined[reason] = self.counts.declined.get(reason, 0) + 1

    def clear(self, tenant: str | None = None) -> None:
        """Drop all prompts and answers, or those of one tenant."""
        self._store.clear(tenant)

    def forget(self, tenant: str, conversation: int) -> None:
        """Drop the prompts of a conversation, those that continue it included, and the answers to them.

        Args:
            tenant: The tenant.
            conversation: The digest of the conversation: the last item of `PromptSource.digests`.

        """
        self._store.forget(tenant, conversation)

    def _is_due(self) -> bool:
        """Count a prompt; return whether it is one of every `check_every` that are checked."""
        with self._lock:
            self._unchecked += 1
            if self._check_every == 0 or self._unchecked < self._check_every:
                return False
            self._unchecked = 0
            return True

    def _report(self, tape: _core.Tape) -> None:
        """Empty the cache, count a wrong prompt, and log the bytes at which its encoding was resumed."""
        self.clear()
        with self._lock:
            self.counts.wrong += 1
        logger.error(
            "a cached prompt of %d bytes had wrong ids: it differed at byte %d, resumed at %d and rejoined at %d",
            tape.size, tape.difference, tape.resumed, tape.rejoined,
        )  # fmt: skip


def _read(messages: Sequence[Mapping[str, Any]] | Messages) -> Messages:
    return messages if isinstance(messages, Messages) else Messages(messages)
