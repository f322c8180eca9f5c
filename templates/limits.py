"""How much a chat template may do: a budget of work for each render, and a size for each value.

Jinja's sandbox keeps a template from Python's internals, not from the machine's memory and time. Templates come with
model files, which strangers write, so here every loop step and every call is counted, and an operation whose result
would be too long is refused before it runs where its size is known beforehand (`*`, `**`, widths, `replace`, `join`)
and right after it otherwise.

Not bounded: slices, comparisons and searches in long strings and lists, each of which costs its length without being
counted, and the text form of a list that contains itself many times over. A template from a stranger is best tried in
a process with a memory limit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from jinja2.exceptions import SecurityError

MAX_SOURCE = 1 << 18  # characters of a template; the longest in wide use has 40,000
MAX_LENGTH = 1 << 24  # characters or items of any value, the rendered text included
MAX_WORK = 1 << 20  # loop steps and calls of one render, one more for every 256 characters made and 16 items filtered
MAX_WIDTH = 1000  # columns of a padding, an indentation or a number's format
MAX_BITS = 1 << 14  # bits of a whole number

_CHARACTERS_A_STEP = 256
_ITEMS_A_STEP = 16  # few, so that a filter over all messages for each message is nothing
_WIDTHS = frozenset({"batch", "center", "expandtabs", "indent", "ljust", "rjust", "slice", "tojson", "zfill"})
_INSTANT = frozenset({"count", "first", "last", "length", "random"})  # filters that do not go over all items
# Both take time linear in the text; group 1 is what messages show. The first also finds a key with a parenthesis in it,
# after which it could not tell where the width stands.
_WIDE_PERCENT = re.compile(r"(%(?:\([^()]*\))?[-+ #0]*\d*\.?(?:\d{4,}|\*)|%\([^()]*\()")
_WIDE_BRACES = re.compile(r"\{[^{}:]*(:[^{}]*(?:\d{4,}|\{))")
_SIZED = (str, list, tuple, dict)
_work_left: ContextVar[list[int]] = ContextVar("work_left")


T = TypeVar("T")


@contextmanager
def budget() -> Iterator[None]:
    """Give what runs inside a fresh budget of `MAX_WORK`; each thread and task has its own."""
    token = _work_left.set([MAX_WORK])
    try:
        yield
    finally:
        _work_left.reset(token)


def spend(work: int) -> None:
    """Take `work` from the budget.

    Raises:
        SecurityError: The budget is spent.

    """
    left = _work_left.get()
    left[0] -= work
    if left[0] < 0:
        raise SecurityError(f"the template does more than {MAX_WORK} steps of work")


def counted(values: Iterable[object]) -> Iterator[object]:
    """The same values, each of which costs a step."""
    for value in values:
        spend(1)
        yield value


def filtered(name: str, values: object) -> object:
    """What the filter `name` is given, whose items are charged for: now, or one by one where they are not there yet."""
    if isinstance(values, Iterator):
        return _charged(values)
    if isinstance(values, Collection) and not isinstance(values, str) and name not in _INSTANT:
        spend(len(values) // _ITEMS_A_STEP)
    return values


def _charged(values: Iterator[object]) -> Iterator[object]:
    for number, value in enumerate(values):
        if number % _ITEMS_A_STEP == 0:
            spend(1)
        yield value


def join(pieces: Iterable[str]) -> str:
    """Like `"".join(pieces)`, but stops at `MAX_LENGTH` characters instead of collecting more."""
    parts: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        _check_length(length)
        parts.append(piece)
    return "".join(parts)


def result(value: T) -> T:
    """Charge for a value that an operation made, and check its size."""
    if isinstance(value, _SIZED):
        _check_length(len(value))
        spend(1 + len(value) // _CHARACTERS_A_STEP)
    else:
        spend(1)
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            raise SecurityError(f"a number of {value.bit_length()} bits is over the limit of {MAX_BITS}")
    return value


def check_operator(operator: str, left: object, right: object) -> None:
    """Refuse `left operator right` if its result would be too large to make."""
    match operator, left, right:
        case "*", (str() | list() | tuple()) as value, int(times):
            _check_length(len(value) * times)
        case "*", int(times), (str() | list() | tuple()) as value:
            _check_length(len(value) * times)
        case "**", int(base), int(exponent) if base.bit_length() * exponent > MAX_BITS:
            raise SecurityError(f"{base.bit_length()} bits to the power of {exponent} is over the limit of {MAX_BITS}")
        case "%", str(template), _:
            check_format(template, _WIDE_PERCENT)
        case _:  # no other operator makes much of little
            pass


def check_call(name: str, subject: object, arguments: Sequence[object], keywords: Mapping[str, object]) -> None:
    """Refuse a string method or a filter whose result would be too large to make.

    Args:
        name: The method's or filter's name.
        subject: The string, or what stands before the `|`.
        arguments: Positional arguments after it.
        keywords: Keyword arguments.

    """
    values = (*arguments, *keywords.values())
    if name in _WIDTHS:
        width = max((value for value in values if isinstance(value, int)), default=0)
        if width > MAX_WIDTH:
            raise SecurityError(f"{name} with a width of {width} is over the limit of {MAX_WIDTH}")
    match name, subject, values:
        case "replace", str(text), (str(old), str(new), *_):
            _check_length(text.count(old) * len(new))
        case "join", str(separator), (list(items),):
            _check_joined(separator, items)
        case "join", list(items), _:
            _check_joined(next((value for value in values if isinstance(value, str)), ""), items)
        case (("urlize" | "wordwrap"), str(text), _):
            _check_length(len(text) * _widest((value for value in values if isinstance(value, str)), 1))
        case "indent", str(text), _:
            _check_length((text.count("\n") + 1) * _widest(values, 4))
        case "expandtabs", str(text), _:
            _check_length(text.count("\t") * _widest(values, 8))
        case "format", str(template), _:
            check_format(template, _WIDE_PERCENT)
        case "translate", _, _:
            raise SecurityError("str.translate is not available to templates")
        case _:  # nor does any other call
            pass


def check_format(template: str, wide: re.Pattern[str] = _WIDE_BRACES) -> None:
    """Refuse a format string whose width has four digits or more, comes from an argument, or cannot be told."""
    if found := wide.search(template):
        raise SecurityError(f"the width in the format {found[1]!r} is over the limit of {MAX_WIDTH}")


def _widest(values: Iterable[object], otherwise: int) -> int:
    """The longest string or the greatest number among the arguments: what is put in at each place."""
    widths = (len(value) if isinstance(value, str) else value for value in values if isinstance(value, str | int))
    return max(widths, default=otherwise)


def _check_joined(separator: str, items: list[object]) -> None:
    _check_length(len(separator) * len(items) + sum(len(item) for item in items if isinstance(item, str)))


def _check_length(length: int) -> None:
    if length > MAX_LENGTH:
        raise SecurityError(f"a value of {length} characters or items is over the limit of {MAX_LENGTH}")
