r"""Parse the sets of a pattern: escapes such as `\p{Lu}`, and bracket expressions such as `[^\s\p{L}]`.

Only constructs on which both dialects agree, as tested on the engines, are accepted. Others (`--` and `~~` inside brackets,
POSIX brackets, loose property names) are refused.
"""

from __future__ import annotations

import string
from functools import cache

from tokenweir.encode.pattern.code_points import N_CODE_POINTS, CodePoints
from tokenweir.encode.pattern.source import PatternCursor
from tokenweir.encode.unicode import categories

MAX_DEPTH = 50
"""The deepest nesting of groups or brackets; real patterns have three levels."""

_CONTROLS = {"a": 0x07, "e": 0x1B, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}


def named_set(letter: str, dialect: str) -> CodePoints:
    r"""Return the characters that `\s`, `\w` or `\d` matches in a regex dialect; `letter` is "s", "w" or "d".

    The dialect "oniguruma-bracket" is that of Oniguruma inside a bracket expression.
    """
    members = _named(letter, dialect)
    assert members is not None
    return members


@cache
def _named(name: str, dialect: str) -> CodePoints | None:
    if dialect == "tokenizers" and name in categories.COMPONENT_SETS:
        ranges: categories.Ranges | None = categories.component_set(name)
    elif name == "s":
        ranges = categories.white_space()
    elif name == "w":
        ranges = categories.word("fancy-regex" if dialect == "tokenizers" else dialect)
    else:
        ranges = categories.property_ranges("Nd" if name == "d" else name)
    return None if ranges is None else CodePoints.from_ranges(ranges)


def fold(source: PatternCursor, members: CodePoints, at: int) -> CodePoints:
    """Apply `(?i:)` to a set: return it with every character that simple case folding makes equal to a member.

    Oniguruma also folds one character to several (`ss` matches U+00DF), and treats properties differently inside and
    outside brackets. So in its dialect only sets without case and sets of ASCII are accepted. `at` is the place of the set
    in the pattern, for errors.
    """
    if source.dialect == "oniguruma":
        if not members.has_case:
            return members
        if not members.is_ascii:
            source.refuse("a set of more than ASCII letters under (?i:)", at)
    return members.folded()


def escape(source: PatternCursor, ignore_case: bool, bracketed: bool = False) -> int | CodePoints:
    r"""Parse an escape whose backslash has been read.

    Args:
        source: The cursor, behind the backslash.
        ignore_case: Whether the escape is inside `(?i:)`.
        bracketed: Whether it is inside a bracket expression, where Oniguruma's `\w` lacks six characters of Latin-1.

    Returns:
        A code point, not folded, for an escaped character; a set for `\s`, `\d`, `\w`, `\p{..}` and their negations.

    """
    at = source.at - 1
    letter = source.take()
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter in string.punctuation or letter == " ":
        if letter in "<>" and source.dialect == "fancy-regex":
            source.refuse(f"the word boundary \\{letter}", at)
        return ord(letter)
    if letter in "sdwSDW":
        bracket_word = bracketed and source.dialect == "oniguruma"
        members = named_set(letter.lower(), "oniguruma-bracket" if bracket_word else source.dialect)
        members = fold(source, members, at) if ignore_case else members
        return members if letter.islower() else ~members
    if letter in "pP":
        return _property(source, letter == "P", ignore_case, at)
    if letter in "xu":
        return _hexadecimal(source, letter, at)
    source.refuse(f"the escape \\{letter}", at)


def _property(source: PatternCursor, negated: bool, ignore_case: bool, at: int) -> CodePoints:
    if not source.accept("{"):
        source.refuse(r"a property without braces", at)
    if source.accept("^"):
        negated = not negated
    end = source.pattern.find("}", source.at)
    if end < 0:
        source.malformed(r"\p{ without }", at)
    name = source.pattern[source.at : end]
    source.at = end + 1
    members = _named(name, source.dialect) if len(name) > 1 or name.isupper() else None
    if members is None:
        source.refuse(rf"the property \p{{{name}}}", at)
    members = fold(source, members, at) if ignore_case else members
    return ~members if negated else members


def _hexadecimal(source: PatternCursor, letter: str, at: int) -> int:
    braced = letter == "x" and source.accept("{")
    if braced:
        end = source.pattern.find("}", source.at)
        digits = source.pattern[source.at : max(end, source.at)]
        source.at += len(digits) + 1
    else:
        digits = source.peek(2 if letter == "x" else 4)
        source.at += len(digits)
    if not set(digits) <= set(string.hexdigits) or not (1 <= len(digits) <= 8 if braced else len(digits) in (2, 4)):
        source.refuse(f"the escape \\{letter} without its hexadecimal digits", at)
    code_point = int(digits, 16)
    if code_point >= N_CODE_POINTS or 0xD800 <= code_point < 0xE000:
        source.malformed(f"no such character U+{code_point:04X}", at)
    if letter == "x" and not braced and code_point >= 0x80 and source.dialect == "oniguruma":
        source.refuse(f"the byte \\x{digits}", at)  # there it is a byte of UTF-8, not a code point
    return code_point


def bracket(source: PatternCursor, ignore_case: bool, depth: int = 1) -> CodePoints:
    """Parse a bracket expression whose opening bracket has been read; return its set of characters.

    It may have ranges, nested brackets, and `&&`, which has the lowest precedence.

    Args:
        source: The cursor, behind the opening bracket.
        ignore_case: Whether the expression is inside `(?i:)`.
        depth: The number of brackets around the content; deeper nesting than `MAX_DEPTH` is refused.

    """
    at = source.at - 1
    if depth > MAX_DEPTH:
        source.refuse(f"more than {MAX_DEPTH} brackets inside one another", at)
    negated = source.accept("^")
    if source.peek() == "]":
        source.refuse("a bracket expression that begins with ]", source.at)
    intersection: CodePoints | None = None
    ranges: categories.Ranges = []
    members: list[CodePoints] = []
    while True:
        here = source.at
        closed = source.accept("]")
        if closed or source.accept("&&"):
            if not ranges and not members:
                source.refuse("an empty side of &&", here)
            literals = CodePoints.from_ranges(ranges)
            side = fold(source, literals, at) if ignore_case else literals
            for each in members:
                side |= each
            intersection = side if intersection is None else intersection & side
            ranges, members = [], []
            if closed:
                break
        elif source.accept("["):
            if source.peek() == ":":
                source.refuse("the POSIX bracket [:", here)
            members.append(bracket(source, ignore_case, depth + 1))
        else:
            item = _item(source, ignore_case)
            if isinstance(item, tuple):
                ranges.append(item)
            else:
                members.append(item)
    if negated:
        intersection = ~intersection
        if ignore_case and source.dialect == "oniguruma" and intersection.has_case:
            source.refuse("a negated set under (?i:)", at)
    return intersection


def _item(source: PatternCursor, ignore_case: bool) -> tuple[int, int] | CodePoints:
    """Parse one item of a bracket expression.

    Returns:
        The first and the last code point of a character or a range; or the set of an escaped class.

    """
    at = source.at
    first = _character(source, ignore_case)
    if source.peek() != "-" or source.peek(2) == "-]":
        return first if isinstance(first, CodePoints) else (first, first)
    if source.peek(2) in ("--", "-[") or source.peek(3) == "-&&" or isinstance(first, CodePoints):
        source.refuse("a range that begins or ends in a class or an operator", at)
    source.at += 1
    last = _character(source, ignore_case)
    if isinstance(last, CodePoints):
        source.refuse("a range that begins or ends in a class or an operator", at)
    if last < first:
        source.malformed(f"the range U+{first:04X}-U+{last:04X} is empty", at)
    if source.peek() == "-" and source.peek(2) != "-]":
        source.refuse("a hyphen after a range", source.at)
    return first, last


def _character(source: PatternCursor, ignore_case: bool) -> int | CodePoints:
    at = source.at
    for operator in ("--", "~~"):  # fancy-regex: difference and symmetric difference
        if source.peek(2) == operator:
            source.refuse(f"the set operator {operator}", at)
    character = source.take()
    if character == "\\":
        return escape(source, ignore_case, bracketed=True)
    if character == "-" and source.pattern[at - 1] not in "[^" and source.peek() != "]":
        source.refuse("a hyphen that is neither a range nor at an end", at)
    return ord(character)
