"""Rules of a reasoning style: which tags are active where, and what follows them. `reasoning.py` applies them to text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from tokenweir.stream.decode.parsers.pieces import ANSWER, REASONING, Piece, markup
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import first_of
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.reasoning import ReasoningStyle

_TRIMMED = {"keep": "", "strip_newlines": "\r\n", "strip": " \t\r\n"}


class TagRule(NamedTuple):
    """Rule for a tag on a channel: where the tag is active, which channel follows it, and whether it is removed.

    Attributes:
        tag: The tag.
        at: Where it is active: "anywhere"; at the "start" of the channel; first on a "line"; if a "call" follows, or
            first on a line; while thinking is "unclosed" because a call has interrupted it; as the "envelope" that
            begins the answer, or the "end" of an answer that began with one.
        then: The channel after the tag.
        markup: The piece for the tag, the same object each time.
        cut: Whether the tag is removed; otherwise it is text on the channel `then`.
        fenced: Whether it is active in a fenced code block of the answer, too.

    """

    tag: str
    at: str
    then: Channel
    markup: Piece
    cut: bool = True
    fenced: bool = False  # it is active in a fenced code block of the answer, too


_Search = Callable[[str, int], re.Match[str] | None]
_Skippables = tuple[SkippableText, ...]  # in the middle of a line, and at its start; and both in a fenced code block
_Switches = dict[str, tuple[Channel, str, str]]  # by tag, the state after it: channel, `_trim` and `_label`
CompiledRules = tuple[
    dict[Channel, list[TagRule]],
    dict[Channel, str],
    dict[Channel, _Switches],
    dict[Channel, _Search],
    dict[Channel, _Skippables],
]


@cache
def compiled_rules(style: ReasoningStyle) -> CompiledRules:
    """Compile a style of thinking into tables by channel.

    Returns:
        The rules; the white space that is stripped at the channel's start; the states after the tags that the fast path
        may report; a search for possible starts of tags; and descriptions of the text that may take the fast path.

    """
    rules = _rules(style)
    trimmed = {ANSWER: _TRIMMED[style.after_closer], REASONING: _TRIMMED[style.after_opener]}
    labels = dict.fromkeys(style.openers, style.label)
    switches = {
        channel: {
            rule.tag: (rule.then, trimmed[rule.then], labels.get(rule.tag, ""))
            for rule in of
            if _may_pass(rule, channel)
        }
        for channel, of in rules.items()
    }
    begins: dict[Channel, _Search] = {
        channel: first_of(tuple(rule.tag for rule in of)) for channel, of in rules.items()
    }
    return rules, trimmed, switches, begins, {channel: _skippables(of, channel) for channel, of in rules.items()}


def _may_pass(rule: TagRule, channel: Channel) -> bool:
    """Return whether the fast path may find the tag: it begins or ends the thinking, and is removed."""
    return rule.cut and rule.then is not channel and rule.at in ("anywhere", "line")


def _skippables(rules: list[TagRule], channel: Channel) -> _Skippables:
    """Return descriptions of the text of a channel that may take the fast path.

    The first is for the middle of a line, the second for a line that has only white space so far. If tags count less in
    fenced code blocks, the same two for those follow.
    """
    in_fence = [rule for rule in rules if rule.fenced]
    ticks = "`" if channel is ANSWER and len(in_fence) < len(rules) else ""
    skippables = []
    for active in (rules, in_fence) if ticks else (rules,):
        until = "".join(sorted({rule.tag[0] for rule in active}))
        passing = [rule for rule in active if _may_pass(rule, channel)]
        anywhere, line = ([rule.tag for rule in passing if rule.at == at] for at in ("anywhere", "line"))
        skippables += [
            SkippableText(until, tags=anywhere, line_tags=line, bare=bare, line_until=ticks) for bare in (False, True)
        ]
    return tuple(skippables)


def _rules(style: ReasoningStyle) -> dict[Channel, list[TagRule]]:
    """Return the active tags of each channel, from a style's tags and policies."""
    if not style.separate:
        tags = style.openers + style.closers + style.wrappers
        rules = [TagRule(tag, "anywhere", ANSWER, markup(tag), fenced=True) for tag in tags]
        return {ANSWER: rules, REASONING: rules}
    answer = [TagRule(tag, style.opens_at, REASONING, markup(tag)) for tag in style.openers]
    if style.unmatched_closer != "keep":
        at = "start" if style.unmatched_closer == "drop_first" else "anywhere"
        answer += [TagRule(tag, at, ANSWER, markup(tag)) for tag in style.closers]
    if (style.enders or style.token_enders) and style.unmatched_closer != "drop":
        answer += [TagRule(tag, "unclosed", ANSWER, markup(tag)) for tag in style.closers]
    answer += [TagRule(tag, "anywhere", ANSWER, markup(tag), fenced=True) for tag in style.wrappers]
    answer += [
        TagRule(tag, at, ANSWER, markup(tag), fenced=True)
        for tag, at in zip(style.envelope, ("envelope", "end"), strict=False)
    ]
    reasoning = [TagRule(tag, "anywhere", ANSWER, markup(tag)) for tag in style.closers]
    reasoning += [TagRule(tag, "call", ANSWER, markup(tag), cut=False) for tag in style.enders]
    reasoning += [TagRule(tag, "anywhere", ANSWER, markup(tag), cut=False) for tag in style.token_enders]
    if style.repeated_opener != "keep":
        at = "start" if style.repeated_opener == "drop_first" else "anywhere"
        reasoning += [TagRule(tag, at, REASONING, markup(tag)) for tag in style.openers]
    return {ANSWER: answer, REASONING: reasoning}
