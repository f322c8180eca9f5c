"""Ends of tagged values: the closing tag, or, if the model forgot it, text that can only follow a value."""

from __future__ import annotations

import re
from functools import cache

from tokenweir.stream.decode.parsers.text_search import whole_or_cut
from tokenweir.templates.styles.grammars import ParameterStyle

_LONGEST_KEY = 64  # characters of a parameter's name that shows the end of the value before it
_LINE_ENDS = ("\n", "")


def value_end(style: ParameterStyle, closer: str, text: str, place: int) -> tuple[int, str | None]:
    """Find where a parameter's value ends, from index `place` on: at its closing tag or at text that cannot be in it.

    Args:
        style: The style of the tags.
        closer: The closing tag of this value.
        text: The text so far.
        place: The index from which to search.

    Returns:
        The index of the end, and the markup there that belongs to the value, perhaps none. If the end has not come yet,
        the index where the beginning of it may stand, or the length of the text; and None.

    """
    found = text.find(closer, place)
    before = len(text) if found < 0 else found
    following = _following_tags(style)
    if following and (tags := following.search(text, place)) and tags.start() < before:
        return tags.start(), _LINE_ENDS[tags.lastindex - 1] if tags.lastindex else None
    places = [at for stop in style.value_stops if (at := text.find(stop, place, before)) >= 0]
    if places:
        end = min(places)
        begin = end - (style.trims and text.endswith("\r", place, end))
        return begin, text[begin : end + 1]
    if found < 0:
        return _possible_end(text, place, closer, style.value_stops, style.trims), None
    end = found
    if style.trims and text.endswith("\n", place, found):
        end = found - 1 - text.endswith("\r\n", place, found)
    return end, text[end : found + len(closer)]


def _possible_end(text: str, place: int, closer: str, stops: tuple[str, ...], trims: bool) -> int:
    """Return the index at which a text that ends a value may begin, cut off by the end of `text`; else its length.

    Args:
        closer: The closing tag of the value.
        stops: Other texts that end the value.
        trims: A line end before them belongs to them.

    """
    ends = [closer, *stops]
    if trims:
        ends += ["\n" + closer, "\r\n" + closer, *("\r" + stop for stop in stops)]
    longest = max(map(len, ends)) - 1
    for at in range(max(place, len(text) - longest), len(text)):
        rest = text[at:]
        if any(end.startswith(rest) for end in ends):
            return at
    return len(text)


@cache
def _following_tags(style: ParameterStyle) -> re.Pattern[str] | None:
    """Return a pattern for the tags round the next parameter's name, up to the tag that opens its value.

    A match has the group of one of `_LINE_ENDS`, which precedes the tags, or no group if the text ends within them. None for a
    style whose values have no opening tag.
    """
    if not style.value_opens or style.nests:
        return None
    (key_closes, _), *_ = style.key_closes
    value = rf"\s{{0,8}}(?:\Z|{whole_or_cut(style.value_opens, '()')})"
    key = rf"[^<]{{0,{_LONGEST_KEY}}}(?:\Z|{whole_or_cut(key_closes, value)})"
    return re.compile("|".join(whole_or_cut(line_end + style.key_opens, key) for line_end in _LINE_ENDS))
