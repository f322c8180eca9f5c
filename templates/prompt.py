"""A rendered prompt, which knows where user text stands in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

from tokenweir.encode.decode import check_tokenizer
from tokenweir.encode.errors import TemplateError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.guard import Guard


@dataclass(frozen=True)
class Segment:
    """A stretch of a prompt.

    Attributes:
        text: Its characters.
        control: It is one control token, written by the template.

    """

    text: str
    control: bool


@dataclass(frozen=True)
class Prompt:
    """The text of a prompt and what in it is user text.

    Attributes:
        text: What the template rendered.
        guarded: Offsets, ascending, of the characters of user text over which no control token may match.
        control_tokens: The control tokens that the template was told of or that its source shows.
        guard: The guard that found `guarded`; None if the template has none.
        generated: Ascending (start, end) of the characters that a model is to generate, if `render` was asked to find them.

    """

    text: str
    guarded: tuple[int, ...] = ()
    control_tokens: tuple[str, ...] = ()
    guard: Guard | None = field(default=None, compare=False, repr=False)
    generated: tuple[tuple[int, int], ...] = ()

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The text cut at the control tokens that the template wrote; joined, they are the text again."""
        if not self.control_tokens:
            return (Segment(self.text, False),) if self.text else ()
        longest_first = sorted(self.control_tokens, key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, longest_first)))
        guarded = set(self.guarded)
        segments = []
        done = start = 0
        while found := pattern.search(self.text, start):
            if not guarded.isdisjoint(range(*found.span())):
                start = found.start() + 1
                continue
            if found.start() > done:
                segments.append(Segment(self.text[done : found.start()], False))
            segments.append(Segment(found[0], True))
            done = start = found.end()
        if done < len(self.text):
            segments.append(Segment(self.text[done:], False))
        return tuple(segments)

    def encode(self, tokenizer: Tokenizer) -> list[int]:
        """Turn the prompt into ids.

        The whole text is encoded at once, so that without user text that looks like a control token the ids are those
        of the text: no seams, no spaces added. No ids are added around it, since templates write their own `<s>`.

        Args:
            tokenizer: The model's tokenizer.

        Raises:
            TemplateError: As for `check`.

        """
        self.check(tokenizer)
        return tokenizer.encode(self.text, add_special_tokens=False, guarded=self.guarded)

    def encode_with_mask(self, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
        """Turn the prompt into ids, and say which a model learns to generate.

        Args:
            tokenizer: The model's tokenizer.

        Returns:
            The ids of `encode`, and for each 1 if it covers a character of `generated`, else 0: what transformers gives
            for `return_assistant_tokens_mask`.

        Raises:
            TemplateError: As for `check`.

        """
        self.check(tokenizer)
        encoded = tokenizer.encode_with_offsets(self.text, add_special_tokens=False, guarded=self.guarded)
        ends = [end for _, end in self.generated]
        mask = []
        for start, end in encoded.offsets:
            at = bisect_right(ends, start)  # the first stretch that ends after the id's first character
            mask.append(int(start < end and at < len(ends) and self.generated[at][0] < end))
        return encoded.ids, mask

    def check(self, tokenizer: Tokenizer) -> None:
        """Check that the guard watches for all control tokens of a tokenizer; for encoders other than `encode`.

        Raises:
            TemplateError: It does not, which can only happen to a template that was loaded without its tokenizer.

        """
        check_tokenizer(tokenizer)
        if self.guard and (token := _uncovered(self.guard, tokenizer)) is not None:
            raise TemplateError(
                f"the tokenizer has the control token {token!r}, which this template does not guard against: "
                "load it with ChatTemplate.from_tokenizer(tokenizer), or pass control_tokens="
            )


_checked: WeakKeyDictionary[Tokenizer, dict[frozenset[str], str | None]] = WeakKeyDictionary()


def _uncovered(guard: Guard, tokenizer: Tokenizer) -> str | None:
    """`guard.uncovered`, once for each tokenizer: some have thousands of added tokens."""
    known = _checked.setdefault(tokenizer, {})
    if guard.characters not in known:
        known[guard.characters] = guard.uncovered(tokenizer.control_texts)
    return known[guard.characters]
