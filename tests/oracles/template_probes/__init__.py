"""Small templates about one rule of the language each; transformers' environment says what they render.

No expected text stands here. A probe that fails there must fail in every other engine as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from . import errors, filters, layout, loops, methods, numbers, scopes, sequences, values

VARIABLES: dict[str, Any] = {
    "text": "Hello World",
    "empty": "",
    "nothing": None,
    "yes": True,
    "no": False,
    "one": 1,
    "seven": 7,
    "minus": -7,
    "ratio": 3.25,
    "whole": 1.0,
    "huge": 1e16,
    "tiny": 1e-7,
    "big": 2**70,
    "numbers": [3, 1, 2],
    "words": ["b", "A", "a", "C", "B"],
    "mixed": [1, "a", None, True, 2.5],
    "pairs": [["a", 1], ["b", 2]],
    "rows": [[1, 2, 3], [4, 5, 6]],
    "none_at_all": [],
    "record": {"b": 1, "a": "x", "items": 5, "get": "g"},
    "plain": {"b": 1, "A": 3, "a": 2},
    "nested": {"k": {"x": [1, None, True, "q'"], "y": {}}},
    "schema": {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": ["integer", "null"]}}},
    "people": [{"name": "Ann", "age": 30, "at": {"x": 1}}, {"name": "bob", "age": 5}, {"age": 7, "name": None}],
    "letters": "Straße ǆ İ ﬁ ΑΣ ŉ",
    "blank": "\u00a0 \t x\u2003\u200b",
    "quoted": "a\"b\\c\n\r\t\b\f\u2028<é\U0001f600\x7f\x01/'&",
    "lines": "a\r\n\nb\u2028c\x0bd\x1ce\x85f",
    "markup": "<b>&'\"</b>",
    "jinja": "{{ 1 }}{% if %}{# #}",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.0}}}]},
        {"role": "tool", "content": "<think>a</think>b"},
    ],
}

_TOPICS: Mapping[str, Mapping[str, list[str]]] = {
    module.__name__.rpartition(".")[2]: module.PROBES
    for module in (scopes, loops, values, numbers, sequences, filters, methods, layout, errors)
}


def probes() -> Iterator[tuple[str, str]]:
    """Yield the name and the template source of each probe."""
    for topic, subjects in _TOPICS.items():
        for subject, sources in subjects.items():
            for number, source in enumerate(sources):
                yield f"{topic}: {subject} {number}", source


COUNT = sum(map(len, chain.from_iterable(subjects.values() for subjects in _TOPICS.values())))
