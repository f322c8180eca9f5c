"""Ends of tagged values: the closing tag, or, if the model forgot it, text that can only follow a value."""

from __future__ import annotations

from tokenweir.templates.styles.grammars import ParameterStyle


def value_end(style: ParameterStyle, closer: str, text: str, place: int) -> tuple[int, str]:
    """Find the end, or a possible end, of a value from a place on; `closer` is the closing tag of this value.

    Return the place, and the text that ends the value, or an empty text if that has not come.
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
    """Return where a cut-off text that ends a value may begin, or the end of the text."""
    ends = [closer, *stops]
    if trims:
        ends += ["\n" + closer, "\r\n" + closer, *("\r" + stop for stop in stops)]
    longest = max(map(len, ends)) - 1
    for at in range(max(place, len(text) - longest), len(text)):
        rest = text[at:]
        if any(end.startswith(rest) for end in ends):
            return at
    return len(text)
