"""Tags that count only as ids of the vocabulary: the option `markup="ids"`.

Splitters find tags in text. For them, the first character of each tag is exchanged for a mark, in the style and in the text of
the tag's id. Marks are the last private-use characters of Unicode; in other text they become U+10FFFF before the splitter sees
it. So text of ordinary tokens has no tags, however a model came to write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import ReasoningStyle

_FIRST = 0x10FFC0
"""The first mark. There is one for each first character of a tag."""

_TAG_FIELDS = ("openers", "closers", "enders", "token_enders", "wrappers", "opens")
"""Fields of styles whose texts begin or end thinking, or begin a block of calls. Texts that are no ids are left out."""


class TagIds(NamedTuple):
    """Ids of tags, and the texts by which the splitter knows them.

    Attributes:
        marked: The text for the splitter, by id.
        shown: The text of the core's decoder, by id.
        back: A table for `str.translate` that gives tags their own first characters.
        ordinary: A table that exchanges the marks in other text.

    """

    marked: Mapping[int, str]
    shown: Mapping[int, str]
    back: Mapping[int, str]
    ordinary: Mapping[int, str]

    @property
    def spellings(self) -> dict[str, str]:
        """The marked text of each tag, by the tag."""
        return {marked.translate(self.back): marked for marked in self.marked.values()}


NO_TAGS = TagIds({}, {}, {}, {})
"""Tags count as text."""


def tags_of(tok: Tokenizer, texts: Iterable[str], *, shown: bool = True) -> TagIds:
    """Return the ids of those of `texts` that are tokens of the vocabulary; `shown`: the core decodes them as marked texts."""
    ids = {i: text for text in dict.fromkeys(texts) if text and (i := tok.token_to_id(text)) is not None}
    marks = {first: chr(_FIRST + place) for place, first in enumerate(sorted({text[0] for text in ids.values()}))}
    marked = {i: marks[text[0]] + text[1:] for i, text in ids.items()}
    back = {ord(mark): first for first, mark in marks.items()}
    return TagIds(marked, marked if shown else ids, back, dict.fromkeys(back, "\U0010ffff"))


def tags_of_styles(tok: Tokenizer, thinking: ReasoningStyle | None, calls: ToolStyle | None) -> TagIds:
    """Return the ids of the tags of two styles.

    Raises:
        ValueError: No opening or no closing tag of the thinking, or no opening text of calls, is a token of the
            vocabulary; the message names the style.

    """
    texts = [] if thinking is None else [*thinking.marks, *thinking.enders, *thinking.token_enders]
    texts += [] if calls is None else [*calls.opens, calls.closes, calls.call_opens, calls.call_closes, *calls.strays]
    tags = tags_of(tok, texts)
    if thinking is not None:
        _check(thinking.name, "reasoning", (thinking.openers, thinking.closers), tags.spellings)
    if calls is not None:
        _check(calls.name, "tool", (calls.opens,), tags.spellings)
    return tags


def spelled_styles(
    thinking: ReasoningStyle | None, calls: ToolStyle | None, tags: TagIds
) -> tuple[ReasoningStyle | None, ToolStyle | None]:
    """Return two styles with their tags as the splitter knows them.

    Markup inside a block of calls that is no token of the vocabulary stays text. A block begins with a tag only.
    """
    spellings = tags.spellings
    if thinking is not None:
        thinking = _spelled(thinking, spellings, envelope=_kept(thinking.envelope, spellings, whole=True))
    if calls is not None:
        calls = _spelled(calls, spellings, bare="", strewn=False)
    return thinking, calls


def _check(name: str, kind: str, groups: Iterable[tuple[str, ...]], spellings: Mapping[str, str]) -> None:
    for texts in groups:
        if not any(text in spellings for text in texts):
            listed = ", ".join(map(repr, texts))
            raise ValueError(
                f"markup='ids': none of the tags {listed} of {kind} style {name!r} is a token of the vocabulary; use 'text'"
            )


def _spelled(style: Any, spellings: Mapping[str, str], **changed: Any) -> Any:
    """Return a style with its tags spelled anew, and without those of `_TAG_FIELDS` that have no new spelling."""
    fields: dict[str, Any] = {}
    for field in style.__struct_fields__:
        value = getattr(style, field)
        if isinstance(value, tuple) and field in _TAG_FIELDS:
            fields[field] = _kept(value, spellings)
        elif isinstance(value, tuple):
            fields[field] = tuple(spellings.get(part, part) if isinstance(part, str) else part for part in value)
        elif isinstance(value, str) and field != "name":
            fields[field] = spellings.get(value, value)
    return replace(style, **fields | changed)


def _kept(texts: tuple[str, ...], spellings: Mapping[str, str], *, whole: bool = False) -> tuple[str, ...]:
    """Return the new spellings of those texts that have one; with `whole`, of all texts or of none."""
    found = tuple(spellings[text] for text in texts if text in spellings)
    return () if whole and len(found) < len(texts) else found
