"""Where a tagged value ends: at its closing tag, or at what can only follow it where a model forgot that tag."""

from __future__ import annotations

from tokenweir.templates.styles.grammars import ParameterStyle


def value_end(style: ParameterStyle, closer: str, text: str, place: int) -> tuple[int, str]:
    """Find where a value ends, or may end.

    Args:
        style: The tags.
        closer: The closing tag of this value.
        text: What has come.
        place: Where to begin.

    Returns:
        The place, and the text that ends the value, which is empty if that has not come.

    """
    found = text.find(closer, place)
    before = len(text) if found < 0 else found
    places = [at for stop in style.value_stops if (at := text.find(stop, place, before)) >= 0]
    if places:
        end = min(places)
        begin = end - (style.trims and text.endswith("\r", place, end))
        return begin, text[begin : end + 1]
    if found < 0:
        return _possible_end(text, place, closer, style.value_stops, style.trims), ""
    end = found
    if style.trims and text.endswith("\n", place, found):
        end = found - 1 - text.endswith("\r\n", place, found)
    return end, text[end : found + len(closer)]


def _possible_end(text: str, place: int, closer: str, stops: tuple[str, ...], trims: bool) -> int:
    """Find where the text that ends a value may begin, at the end of what has come."""
    ends = [closer, *stops]
    if trims:
        ends += ["\n" + closer, "\r\n" + closer, *("\r" + stop for stop in stops)]
    longest = max(map(len, ends)) - 1
    for at in range(max(place, len(text) - longest), len(text)):
        rest = text[at:]
        if any(end.startswith(rest) for end in ends):
            return at
    return len(text)
