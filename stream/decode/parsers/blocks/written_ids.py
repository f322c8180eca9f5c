"""Functions named by a call's id, where a model writes the id in place of the name: `functions.get_weather:0`.

Ids that clients have cleaned, and that models learn from their histories, lack the marks or have others:
`functions_get_weather_1`, `functionsexec5`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

MAX_DIGITS = 6
"""Most digits of an id's number."""

_PREFIXES = ("functions.", "functions_", "functions-", "functions", "")
_SEPARATORS = ("_", "-", ".")


def function_of(written: str, functions: Container[str]) -> str:
    """Return the function that a call names, with or without the prefix and the number of an id.

    Args:
        written: The name as the style's header reads it.
        functions: The names of the request's functions.

    Returns:
        The name itself if it is a function's; else the only function that it can stand for; else the name itself.

    """
    if written in functions:
        return written
    found = {name for name in _readings(written) if name in functions}
    return found.pop() if len(found) == 1 else written


def _readings(written: str) -> Iterator[str]:
    for prefix in _PREFIXES:
        if written.startswith(prefix):
            name = written.removeprefix(prefix)
            yield name
            for _ in range(MAX_DIGITS):
                if not name[-1:].isdigit():
                    break
                name = name[:-1]
                yield name
                if name.endswith(_SEPARATORS):
                    yield name[:-1]
