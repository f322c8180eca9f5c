"""Splitter of thinking from the answer.

Tags are matched in the text, so tags spelled by one control token or by ordinary tokens give the same result. The
leftmost tag wins. No tag is a prefix of another, so pieces depend on the text alone and not on how it was cut. Text is
held back only if it may become a tag that is active *there*: in the middle of a sentence, where an opener has no
effect, a `<` is emitted at once. Tags in a fenced code block of the answer are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar

from tokenweir.stream.decode.parsers.pieces import ANSWER, REASONING, Piece, markup, plain
from tokenweir.stream.decode.parsers.saved import Count, Saved, ShortText, check_channel, check_restored
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.tag_rules import TagRule, compiled_rules
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.reasoning import ReasoningStyle, style_of

_FENCE = 3  # backticks that open or close a code block, at least
_TICKS = re.compile(r"`+|\n|[^`\n]+")

# An object, a list, a tag, or at once a function's name with a tag or an object behind it.
_CALL_FOLLOWS = re.compile(
    r"(?P<call>[ \t\r\n]{0,8}[\[{<]|[\w.\-/]{1,64}(?:\n?<|>\{|\">))"
    r"|(?P<cut>(?:[ \t\r\n]{0,8}|[\w.\-/]{1,64}[\n>\"]?)\Z)"
)


class ReasoningParser(Saved):
    """Splitter of generated text into answer and thinking.

    Attributes:
        channel: The channel of the next text.

    """

    SAVED: ClassVar[dict[str, Any]] = {
        "channel": Channel,
        "_held": ShortText,
        "_trim": ShortText,
        "_label": ShortText,
        "_bare_start": bool,
        "_bare_line": bool,
        "_unclosed": bool,
        "_wrapped": bool,
        "_fence": Count,
        "_ticks": Count,
    }

    def __init__(self, style: str | ReasoningStyle, *, inside: bool = False) -> None:
        """Start at the answer, or inside the thinking.

        Args:
            style: The tags and policies, or the name of a style in `STYLES` or of a family of models.
            inside: The prompt has already opened the thinking.

        Raises:
            ValueError: No style has the name.

        """
        style = style_of(style)
        self._rules, self._trimmed, self._switches, self._begins, self._skippables = compiled_rules(style)
        self._callers = style.enders
        self._all_enders = style.enders + style.token_enders
        self._labels = dict.fromkeys(style.openers, style.label)
        self._label = ""  # optional text behind an opener, removed with it
        self._trim = ""  # characters to strip until another one comes
        self._held = ""
        self.channel = REASONING if inside and style.separate else ANSWER
        self._bare_start = self._bare_line = True  # only white space so far: on this channel, on this line
        self._unclosed = False  # a call has interrupted the thinking; its closer may still come
        self._wrapped = False  # the envelope has been opened and not closed
        self._fences = len(self._skippables[ANSWER]) > len(self._skippables[REASONING])  # tags in code blocks are text
        self._fence = 0  # the backticks that opened the code block of the answer; 0 outside of one
        self._ticks = 0  # the backticks so far that may open or close one

    @property
    def held(self) -> str:
        """The text that is held back, because it may still become a tag."""
        return self._held

    @property
    def skippable(self) -> SkippableText | None:
        """Description of the text that may bypass `feed`, and of the tags that switch the channel; None if all must be fed.

        The text has none of the characters with which tags that are active on the channel begin.
        """
        if self._held or self._trim or self._label or self._ticks:
            return None
        return self._skippables[self.channel][self._bare_line + 2 * bool(self._fence)]

    @property
    def answer_skippables(self) -> tuple[SkippableText, ...]:
        """The values that `skippable` can have in the answer, other than None."""
        return self._skippables[ANSWER]

    @property
    def waits(self) -> bool:
        """Whether the held text begins with a complete opening text of calls, which ends the thinking if a call follows."""
        return bool(self._held) and self._held.startswith(self._callers)

    def has_tags_like(self, texts: Iterable[str]) -> bool:
        """Return whether a tag that is active in the answer is a prefix of one of `texts`, or one of them a prefix of it."""
        tags = [rule.tag for rule in self._rules[ANSWER]]
        return any(tag.startswith(text) or text.startswith(tag) for text in texts for tag in tags)

    def release(self) -> str:
        """Return the text that is held back as a possible tag, and forget it."""
        held, self._held = self._held, ""
        return held

    def step(self, text: str) -> list[tuple[Channel, str]]:
        """Process more text and return the final spans with their channels, without the tags."""
        return [(piece.channel, piece.text) for piece in self.feed(text) if piece.channel is not None]

    def flush(self) -> list[tuple[Channel, str]]:
        """End the answer: return the held text, which cannot become a tag any more, as spans with their channel."""
        return [(self.channel, piece.text) for piece in self.finish()]

    def feed(self, text: str) -> list[Piece]:
        """Process more text and return the final pieces. Tags are pieces of markup, so the joined sources are the text."""
        if self._held:
            text, self._held = self._held + text, ""
        out: list[Piece] = []
        sent = seen = self._cut(text, 0, out)  # `text` is emitted up to `sent`, scanned for line starts up to `seen`
        length = len(text)
        while seen < length and (begin := self._begins[self.channel](text, seen)) is not None:
            place = begin.start()
            if place > seen:
                self._record_emitted(text[seen:place])
                seen = place
            rule, partial = self._tag_at(text, place)
            if rule is not None:
                if place > sent:
                    out.append(plain(text[sent:place], self.channel))
                sent = seen = place + len(rule.tag)
                if rule.then is not self.channel:
                    self.channel, self._trim = rule.then, self._trimmed[rule.then] if rule.cut else ""
                    self._fence = self._ticks = 0
                    self._bare_start = self._bare_line = True
                    self._unclosed = not rule.cut
                elif rule.at == "unclosed":
                    self._unclosed = False
                elif rule.at in ("envelope", "end"):
                    self._wrapped = rule.at == "envelope"
                if rule.cut:
                    out.append(rule.markup)
                    if rule.tag in self._labels:
                        self._label, self._trim = self._labels[rule.tag], self._trimmed[rule.then]
                    sent = seen = self._cut(text, sent, out)
                else:
                    self._record_emitted(rule.tag)
                    sent = place
            elif partial:
                self._held = text[place:]
                text, seen = text[:place], place
                break
            else:
                self._record_emitted(text[place])
                seen = place + 1
        if seen < len(text):
            self._record_emitted(text[seen:])
        if sent < len(text):
            out.append(plain(text[sent:], self.channel))
        return out

    def take_tag(self, tag: str) -> None:
        """Continue behind a complete tag that was found without `feed`. The text before it has no effect on the state."""
        self.channel, self._trim, self._label = self._switches[self.channel][tag]
        self._bare_start = self._bare_line = True
        self._unclosed = False
        self._fence = self._ticks = 0

    def _cut(self, text: str, place: int, out: list[Piece]) -> int:
        """Remove what the style drops behind a tag: a label and white space, from index `place` on.

        Return the index after them.
        """
        if place == len(text):
            return place
        label, self._label = self._label, ""
        if label.startswith(text[place:]) and len(text) - place < len(label):
            self._held, self._label = text[place:], label
            return len(text)
        if label and text.startswith(label, place):
            out.append(markup(label))
            place += len(label)
        if place == len(text) or not self._trim:
            return place
        end = len(text) - len(text[place:].lstrip(self._trim))
        if end > place:
            out.append(markup(text[place:end]))
        if end < len(text):
            self._trim = ""
        return end

    def finish(self) -> list[Piece]:
        """End the answer: return the text that is held back as a possible tag, as at most one piece."""
        held, self._held, self._label = self._held, "", ""
        if not held:
            return []
        self._record_emitted(held)
        return [plain(held, self.channel)]

    @property
    def interrupted(self) -> bool:
        """Whether the opening text of a call has ended the thinking, whose closer has not come."""
        return self._unclosed

    def begins_with_ender(self, text: str) -> bool:
        """Return whether a text begins with the opening text of a call that ends the thinking."""
        return text.startswith(self._all_enders)

    def split_ender(self, text: str) -> tuple[str, str]:
        """Divide a text that begins with the opening text of a call behind it."""
        opener = next(tag for tag in self._all_enders if text.startswith(tag))
        return opener, text[len(opener) :]

    def resume(self, opener: str) -> None:
        """Go on with the thinking behind the opening text of a call that has ended it, and that was a mention only."""
        self.channel, self._unclosed = REASONING, False
        self._fence = self._ticks = 0
        self._record_emitted(opener)

    def begin_block(self, opener: str) -> None:
        """Record the opening text of a block of tool calls. Backticks in it do not open a fenced code block.

        If the text proves not to be a call, `see_answer` gets it, and counts its backticks.
        """
        if "`" in opener:
            self._fence = self._ticks = 0
            self._bare_line = True

    def see(self, text: str) -> None:
        """Record text of a tool call, which is not fed, because some tags are active only at the start of a line."""
        self._end_ticks()
        self._record_line_start(text)

    def see_answer(self, text: str) -> None:
        """Record text that began like a tool call, was not fed, and proved to belong to the answer."""
        self._record_emitted(text)

    def _record_emitted(self, text: str) -> None:
        """Record where lines and fenced code blocks begin in text that is emitted."""
        if self.channel is ANSWER and self._fences and (self._ticks or "`" in text):
            self._count_ticks(text)
        self._record_line_start(text)

    def _count_ticks(self, text: str) -> None:
        """Update whether the answer is inside a fenced code block, from its next text.

        A block begins at three or more backticks that only white space precedes on their line. It ends at as many or
        more that stand likewise; text may follow them. A run of backticks counts once other text has followed it.
        """
        bare = self._bare_line
        for part in _TICKS.findall(text):
            if part[0] == "`":
                self._ticks += len(part) if self._ticks or bare else 0
                bare = False
            else:
                self._end_ticks()
                bare = part == "\n" or (bare and part.isspace())

    def _end_ticks(self) -> None:
        """Open or close a fenced code block if the backticks counted so far are enough, and reset the count."""
        if self._ticks >= _FENCE and not self._fence:
            self._fence = self._ticks
        elif self._ticks >= self._fence > 0:
            self._fence = 0
        self._ticks = 0

    def _record_line_start(self, text: str) -> None:
        if text and not text.isspace():
            self._bare_start = False
            self._bare_line = "\n" in text and not text[text.rindex("\n") :].strip()
        elif "\n" in text:
            self._bare_line = True

    def check(self) -> None:
        check_channel(self.channel)
        check_restored(self._trim in ("", *self._trimmed.values()), "other characters than the style's are cut out")
        check_restored(self._label in ("", *self._labels.values()), "another label than the style's is cut out")
        in_code = len(self._skippables[self.channel]) > 2  # whether the channel has code blocks
        check_restored(in_code or not self._fence, "a code block is open in a channel that has none")
        held = self._held
        may_be_tag = (found := self._begins[self.channel](held, 0)) is not None and found.start() == 0
        check_restored(not held or may_be_tag or self._label.startswith(held), "text is held that begins no tag")

    def _tag_at(self, text: str, place: int) -> tuple[TagRule | None, bool]:
        """Look for an active tag at index `place`.

        Return the rule of the tag, or None; and whether the text ends too early to decide.
        """
        partial = False
        for rule in self._rules[self.channel]:
            tag, at = rule.tag, rule.at
            if (at != "anywhere" and not self._may_count(at)) or (self._fence and not rule.fenced):
                continue
            if text.startswith(tag, place):
                if at != "call" or self._bare_line:
                    return rule, False
                follows = _CALL_FOLLOWS.match(text, place + len(tag))
                if follows and follows["call"]:
                    return rule, False
                partial = partial or follows is not None
            elif len(text) - place < len(tag) and tag.startswith(text[place:]):
                partial = True
        return None, partial

    def _may_count(self, at: str) -> bool:
        match at:
            case "line":
                return self._bare_line
            case "start":
                return self._bare_start
            case "unclosed":
                return self._unclosed
            case "envelope":
                return self._bare_start and not self._wrapped
            case "end":
                return self._wrapped
            case _:
                return True
