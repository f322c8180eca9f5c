"""How much a chat template may do: a budget of work and of CPU time for each render, and a size for each value.

Jinja's sandbox keeps a template from Python's internals, not from the machine's memory and time. Templates come with
model files, which strangers write, so every loop step, call and filter is charged here, and so is everything whose cost
grows with its operands: text that is made, searched or compared, and lists that are walked. What cannot be interrupted
is refused beforehand where it would be long; between two such operations the clock is read. A list that holds another
many times over counts as often as it would be written out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from time import thread_time
from typing import TypeVar

from jinja2.exceptions import SecurityError

MAX_SOURCE = 1 << 18  # characters of a template; the longest in wide use has 40,000
MAX_TOKENS = 1 << 14  # words and signs of a template; the largest in wide use has 2,400
MAX_BRANCHES = 1 << 18  # the number of `if` times that of names, of which Jinja's compiler takes the product
MAX_LENGTH = 1 << 24  # characters of any text, the rendered one included
MAX_ITEMS = 1 << 18  # items of any list, those of lists in it included
MAX_SLOW = 1 << 18  # characters that are given to a filter which may take a microsecond for each
MAX_WORK = 1 << 20  # steps of one render; _BYTES_A_STEP bytes that are made or looked through are a step as well
MAX_SECONDS = 1.0  # of CPU time, of one render
MAX_WIDTH = 1000  # columns of a padding, an indentation or a number's format
MAX_BITS = 1 << 14  # bits of a whole number

_BYTES_A_STEP = 256
_ITEMS_A_STEP = 4  # of lists, which may hold as many numbers or short texts
_STEPS_A_LOOK = 2048  # at the clock
_PIECES = 1024  # of a text that are collected before their length is checked; each has been charged for
_WIDTHS = frozenset({"batch", "center", "expandtabs", "indent", "ljust", "rjust", "slice", "tojson", "zfill"})
_BACKWARDS = frozenset({"rfind", "rindex", "rsplit", "rpartition", "strip", "lstrip", "rstrip"})
_SLOW = frozenset({"forceescape", "pprint", "striptags", "title", "truncate", "unescape", "urlencode", "urlize"}) | {
    "wordcount",
    "xmlattr",
}
# Both take time linear in the text; group 1 is what messages show. The first also finds a key with a parenthesis in it,
# after which it could not tell where the width stands.
_WIDE_PERCENT = re.compile(r"(%(?:\([^()]*\))?[-+ #0]*\d*\.?(?:\d{4,}|\*)|%\([^()]*\()")
_WIDE_BRACES = re.compile(r"\{[^{}:]*(:[^{}]*(?:\d{4,}|\{))")

T = TypeVar("T")


class _Meter:
    """What is left of a render's budget."""

    __slots__ = ("end", "left", "look")

    def __init__(self) -> None:
        self.left = MAX_WORK
        self.look = MAX_WORK - _STEPS_A_LOOK  # the clock is read when less than that is left
        self.end = thread_time() + MAX_SECONDS

    def check(self) -> None:
        if self.left < 0:
            raise SecurityError(f"the template does more than {MAX_WORK} steps of work")
        if thread_time() > self.end:
            raise SecurityError(f"the template takes more than {MAX_SECONDS} seconds of CPU time")
        self.look = max(0, self.left - _STEPS_A_LOOK)


_meter: ContextVar[_Meter] = ContextVar("meter")


@contextmanager
def budget() -> Iterator[None]:
    """Give what runs inside a fresh budget of `MAX_WORK` and `MAX_SECONDS`; each thread and task has its own."""
    token = _meter.set(_Meter())
    try:
        yield
    finally:
        _meter.reset(token)


def spend(work: int) -> None:
    """Take `work` from the budget.

    Raises:
        SecurityError: The budget is spent.

    """
    meter = _meter.get()
    meter.left -= work
    if meter.left < meter.look:
        meter.check()


def counted(values: Iterable[object], work: int = 1) -> Iterator[object]:
    """The same values, each of which costs `work`."""
    meter = _meter.get()
    for value in values:
        meter.left -= work
        if meter.left < meter.look:
            meter.check()
        yield value


def tokens(values: Iterable[T]) -> Iterator[T]:
    """The tokens of a template's source, up to `MAX_TOKENS`."""
    for number, value in enumerate(values):
        if number == MAX_TOKENS:
            raise SecurityError(f"the template has more than {MAX_TOKENS} words and signs")
        yield value


def check_branches(branches: int, names: int) -> None:
    """Refuse a template that would take long to compile."""
    if branches * names > MAX_BRANCHES:
        raise SecurityError(f"the template has {branches} branches and {names} names, a product over {MAX_BRANCHES}")


def join(pieces: Iterable[str]) -> str:
    """Like `"".join(pieces)`, but stops at `MAX_LENGTH` characters instead of collecting more."""
    if type(pieces) is list and len(pieces) < _PIECES:  # a macro's
        _check_length(sum(map(len, pieces)))
        return text_made("".join(pieces))
    parts: list[str] = []
    length = 0
    ahead = iter(pieces)
    while some := list(islice(ahead, _PIECES)):
        length += sum(map(len, some))
        _check_length(length)
        parts += some
        if len(some) < _PIECES:
            break
        spend(_PIECES // 8)
    return text_made("".join(parts))


def text_made(text: str) -> str:
    """Charge for a text that was made, and check its length."""
    meter = _meter.get()
    length = len(text)
    meter.left -= 1
    if length > _BYTES_A_STEP // 4:
        _check_length(length)
        meter.left -= text.__sizeof__() // _BYTES_A_STEP
    if meter.left < meter.look:
        meter.check()
    return text


def result(value: T) -> T:
    """Charge for a value that an operation made, and check its size."""
    if isinstance(value, str):
        text_made(value)
    elif isinstance(value, int):
        spend(1)
        if value.bit_length() > MAX_BITS:
            raise SecurityError(f"a number of {value.bit_length()} bits is over the limit of {MAX_BITS}")
    elif isinstance(value, list | tuple | dict):
        _check_items(len(value))
        spend(1 + len(value) // _ITEMS_A_STEP)
    else:
        spend(1)
    return value


def looked_through(value: T) -> T:
    """Charge for an operation that goes through all of a value: a text, or all that lists and mappings hold."""
    if isinstance(value, str):
        if len(value) > _BYTES_A_STEP:
            spend(len(value) // _BYTES_A_STEP)
    elif isinstance(value, list | tuple | dict):
        weigh(value)
    return value


def weigh(value: object) -> tuple[int, int]:
    """Charge for all that lists and mappings hold, each as often as it is held.

    Returns:
        How many items and how many characters that is.

    Raises:
        SecurityError: More than a value may have.

    """
    items, characters = 0, len(value) if isinstance(value, str) else 0
    open_values = [value]
    while open_values:
        one = open_values.pop()
        if isinstance(one, dict):
            inner: Collection[object] = (*one, *one.values())
        elif isinstance(one, list | tuple):
            inner = one
        else:
            continue
        items += len(inner)
        spend(1 + len(inner) // 2)
        _check_items(items)
        for item in inner:
            if isinstance(item, str):
                characters += len(item)
            elif type(item) is not int:
                open_values.append(item)
        _check_length(characters)
    _check_length(characters)
    spend(characters // _BYTES_A_STEP)
    return items, characters


def operate(operator: str, left: object, right: object) -> None:
    """Refuse `left operator right` if its result would be too large to make."""
    match operator, left, right:
        case "*", (str() | list() | tuple()) as value, int(times):
            _check_repeated(value, times)
        case "*", int(times), (str() | list() | tuple()) as value:
            _check_repeated(value, times)
        case "**", int(base), int(exponent) if base.bit_length() * exponent > MAX_BITS:
            raise SecurityError(f"{base.bit_length()} bits to the power of {exponent} is over the limit of {MAX_BITS}")
        case "%", str(template), _:
            _check_filled(template, "%", [right])
            check_format(template, _WIDE_PERCENT)
        case _:
            pass


def check_call(name: str, subject: object, arguments: Sequence[object], keywords: Mapping[str, object]) -> None:
    """Charge for a string method or a filter, and refuse it if its result would be too large to make.

    Args:
        name: The method's or filter's name.
        subject: The string, or what stands before the `|`.
        arguments: Positional arguments after it.
        keywords: Keyword arguments.

    """
    values = (*arguments, *keywords.values()) if keywords else arguments
    if isinstance(subject, str) and len(subject) > _BYTES_A_STEP:
        _check_long(name, subject, values)
    if not values:
        if name == "expandtabs":
            _check_length(str(subject).count("\t") * 8)
        return
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
            _check_filled(template, "%", values)
        case (("split" | "rsplit"), str(text), (str(separator), *_)) if separator:
            _check_items(text.count(separator))
        case "tojson", _, _:
            _check_json(subject, values)
        case "sum", _, _ if any(not isinstance(value, int | float | str | None) for value in values):
            raise SecurityError("sum is available to templates for numbers only")
        case "translate", _, _:
            raise SecurityError("str.translate is not available to templates")
        case _:
            pass


def check_format(template: str, wide: re.Pattern[str] = _WIDE_BRACES) -> None:
    """Refuse a format string whose width has four digits or more, comes from an argument, or cannot be told."""
    if found := wide.search(template):
        raise SecurityError(f"the width in the format {found[1]!r} is over the limit of {MAX_WIDTH}")


def check_braces(template: object, arguments: Sequence[object], keywords: Mapping[str, object]) -> None:
    """Refuse what `template.format(...)` would make too long."""
    check_format(str(template))
    _check_filled(str(template), "{", (*arguments, *keywords.values()))


def _check_long(name: str, text: str, values: Sequence[object]) -> None:
    """Charge for what a method or filter does with a text that is not short."""
    length = len(text)
    if name in _SLOW:
        _check_size(length, MAX_SLOW, name)
    spend(length // _BYTES_A_STEP)
    if name in ("split", "rsplit", "splitlines", "list", "wordwrap", "indent") and not values:
        _check_size(length, MAX_ITEMS, name)
    if name == "wordwrap":  # which copies what is left of a long word for every line of it
        width = next((value for value in values if isinstance(value, int)), 79)
        spend(length * length // (_BYTES_A_STEP * 64 * max(1, width)))
    if name in _BACKWARDS and values and isinstance(values[0], str):
        # Python searches backwards, and strips, in a time that is the product of the lengths.
        spend(length * len(values[0]) // (_BYTES_A_STEP * 64))


def _check_filled(template: str, sign: str, values: Iterable[object]) -> None:
    """Check the length of a template in which each `sign` may become any of the values."""
    longest = 0
    for value in values:
        if isinstance(value, list | tuple | dict):
            items, characters = weigh(value)
            longest = max(longest, characters + 32 * items)
        elif isinstance(value, str):
            longest = max(longest, len(value))
    if longest > _BYTES_A_STEP:
        _check_length(template.count(sign) * longest)


def _check_json(value: object, arguments: Sequence[object]) -> None:
    if not isinstance(value, list | tuple | dict):
        return
    items, _ = weigh(value)
    widest = max((len(a) if isinstance(a, str) else a for a in arguments if isinstance(a, str | int)), default=0)
    widest += sum(len(str(part)) for a in arguments if isinstance(a, list | tuple) for part in a)
    if items * widest > MAX_LENGTH // 1024:
        _check_length(items * widest * _depth(value))


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        spend(1 + len(level) // _ITEMS_A_STEP)
        inner = (
            one.values() if isinstance(one, dict) else one for one in level if isinstance(one, list | tuple | dict)
        )
        level = [one for values in inner for one in values]
    return depth


def _widest(values: Iterable[object], otherwise: int) -> int:
    """The longest string or the greatest number among the arguments: what is put in at each place."""
    widths = (len(value) if isinstance(value, str) else value for value in values if isinstance(value, str | int))
    return max(widths, default=otherwise)


def _check_joined(separator: str, items: list[object]) -> None:
    _check_length(len(separator) * len(items) + sum(len(item) for item in items if isinstance(item, str)))


def _check_repeated(value: str | list[object] | tuple[object, ...], times: int) -> None:
    (_check_length if isinstance(value, str) else _check_items)(len(value) * times)


def _check_length(length: int) -> None:
    _check_size(length, MAX_LENGTH)


def _check_items(items: int) -> None:
    _check_size(items, MAX_ITEMS)


def _check_size(size: int, limit: int, what: str = "a value") -> None:
    if size > limit:
        raise SecurityError(f"{what} of {size} characters or items is over the limit of {limit}")
