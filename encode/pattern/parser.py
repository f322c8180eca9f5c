"""Parse a pattern into a tree, by the rules of one of the regex dialects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from typing import Literal, TypeVar, assert_never

from tokenweir.encode.pattern.code_points import CodePoints
from tokenweir.encode.pattern.sets import MAX_DEPTH, bracket, escape, fold, named_set
from tokenweir.encode.pattern.source import Dialect, PatternCursor

MAX_LENGTH = 10_000
"""The most characters of a pattern; the longest real one, DeepSeek-LLM's list of letter ranges, has 2,000."""

MAX_REPEAT = 1_000
"""The largest count in braces; the largest real one is 512."""


Mode = Literal["greedy", "lazy", "possessive"]


@dataclass(frozen=True)
class Symbol:
    """One character out of a set.

    Attributes:
        members: The set.
        literal: The letter, lower-cased, if it was an ASCII letter under `(?i:)`; else empty.

    """

    members: CodePoints
    literal: str = ""


@dataclass(frozen=True)
class NextCharacter:
    """A lookahead of one character: a condition on the next character, which is not consumed.

    Attributes:
        members: The characters before which it holds.
        at_edge: Whether it also holds at the end of the text.

    """

    members: CodePoints
    at_edge: bool


@dataclass(frozen=True)
class Lookbehind:
    """A lookbehind at the character before; `at_edge` if it also holds at the start of the text."""

    members: CodePoints
    at_edge: bool


@dataclass(frozen=True)
class Lookahead:
    """A lookahead that reads further than the next character; `wanted` is false for a negative one."""

    body: Node
    wanted: bool


@dataclass(frozen=True)
class Concat:
    """A sequence of nodes."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alternate:
    """An alternation: the first branch that leads to a match wins."""

    branches: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """A repeat of a body, `low` to `high` times; the body of a possessive repeat is a `Symbol`.

    Attributes:
        high: None without a limit.
        mode: Greedy tries more first, lazy tries fewer first, possessive never backtracks.

    """

    body: Node
    low: int
    high: int | None
    mode: Mode


Condition = TypeVar("Condition", NextCharacter, Lookbehind)
Node = Symbol | NextCharacter | Lookbehind | Lookahead | Concat | Alternate | Repeat


def matches_empty(node: Node) -> bool:
    """Return whether a node of a pattern's tree can match the empty string."""
    match node:
        case Symbol():
            return False
        case NextCharacter() | Lookbehind() | Lookahead():
            return True
        case Concat(parts):
            return all(map(matches_empty, parts))
        case Alternate(branches):
            return any(map(matches_empty, branches))
        case Repeat(_, low):  # its body cannot: `_repeat_of` refuses one that does
            return low == 0
        case _:
            assert_never(node)


def as_condition(node: Node, kind: type[Condition]) -> Condition | None:
    """Convert the body of a look-around to a condition on its one character; return None if it reads further.

    A lookahead may have further conditions on that character before it.
    """
    match node:
        case Symbol(members):
            return kind(members, at_edge=False)
        case Alternate(parts):
            conditions = [as_condition(part, kind) for part in parts]
        case Concat((*before, _) as parts) if not before or (
            kind is NextCharacter and all(isinstance(part, NextCharacter) for part in before)
        ):
            conditions = [as_condition(part, kind) for part in parts]
        case _:
            return node if isinstance(node, kind) else None
    found = [condition for condition in conditions if condition is not None]
    if len(found) < len(conditions):
        return None
    if isinstance(node, Alternate):
        return reduce(lambda a, b: kind(a.members | b.members, a.at_edge or b.at_edge), found)
    return reduce(lambda a, b: kind(a.members & b.members, a.at_edge and b.at_edge), found)


def as_symbol(node: Node) -> Symbol | None:
    """Convert a node that unconditionally consumes exactly one character to a set; return None for any other node."""
    match node:
        case Symbol():
            return node
        case Concat((part,)):
            return as_symbol(part)
        case Alternate(branches):
            symbols = [as_symbol(branch) for branch in branches]
            if None in symbols:
                return None
            return reduce(lambda a, b: Symbol(a.members | b.members), filter(None, symbols))
        case NextCharacter() | Lookbehind() | Lookahead() | Concat() | Repeat():
            return None
        case _:
            assert_never(node)


def parse(pattern: str, dialect: Dialect) -> Node:
    """Parse a pattern; return the root of its tree.

    Raises:
        UnsupportedTokenizerError: A construct is outside the subset; the message names it and its place.
        TokenizerFileError: The pattern is not a regular expression.

    """
    source = PatternCursor(pattern, dialect)
    if len(pattern) > MAX_LENGTH:
        source.refuse(f"a pattern of more than {MAX_LENGTH:,} characters", MAX_LENGTH)
    node = _alternate(source, ignore_case=False, depth=0)
    if source.at < len(pattern):
        source.malformed("an unmatched )", source.at)
    return node


def _alternate(source: PatternCursor, ignore_case: bool, depth: int) -> Node:
    if depth > MAX_DEPTH:
        source.refuse(f"more than {MAX_DEPTH} groups inside one another", source.at)
    branches = [_concat(source, ignore_case, depth)]
    while source.accept("|"):
        branches.append(_concat(source, ignore_case, depth))
    return branches[0] if len(branches) == 1 else Alternate(tuple(branches))


def _concat(source: PatternCursor, ignore_case: bool, depth: int) -> Node:
    start = source.at
    parts: list[Node] = []
    while source.peek() not in ("", "|", ")"):
        node = _repeat(source, ignore_case, depth)
        parts.extend(node.parts if isinstance(node, Concat) else [node])
    if ignore_case and source.dialect == "oniguruma":
        letters = "".join(part.literal if isinstance(part, Symbol) and part.literal else " " for part in parts)
        for several in ("ss", "st", "ff", "fi", "fl"):
            if several in letters:
                source.refuse(f"{several!r} under (?i:), which one character folds to", start)
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def _repeat(source: PatternCursor, ignore_case: bool, depth: int) -> Node:
    at = source.at
    node = _atom(source, ignore_case, depth)
    quantifier = _quantifier(source)
    if quantifier is None:
        return node
    low, high, braces = quantifier
    if source.dialect == "oniguruma" and braces and source.peek() == "+":  # a nested repeat, not a possessive one
        node = _repeat_of(source, node, low, high, "greedy", at)
        low, high = 1, None
        source.at += 1
    elif source.accept("+"):
        body = as_symbol(node)
        if body is None:
            source.refuse("a possessive repeat of more than one character", at)
        node = _repeat_of(source, body, low, high, "possessive", at)
        return _unquantified(source, node)
    elif source.accept("?"):
        if source.dialect == "oniguruma" and low == high:
            source.refuse("a fixed count made lazy", at)  # there it means optional
        return _unquantified(source, _repeat_of(source, node, low, high, "lazy", at))
    return _unquantified(source, _repeat_of(source, node, low, high, "greedy", at))


def _quantifier(source: PatternCursor) -> tuple[int, int | None, bool] | None:
    """Parse a quantifier such as `+` or `{1,3}`, if the next characters are one; otherwise return None.

    Returns:
        The minimum; the maximum, or None without a limit; and whether it is written in braces.

    """
    at = source.at
    simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
    if source.peek() in simple:
        return *simple[source.take()], False
    if source.peek() != "{":
        return None
    braces = re.compile(r"\{([0-9]{1,9})(,([0-9]{0,9}))?\}").match(source.pattern, at)
    if braces is None:
        source.refuse("an opening brace that begins no count", at)
    source.at = braces.end()
    low = int(braces[1])
    high = low if braces[2] is None else int(braces[3]) if braces[3] else None
    if max(low, high or 0) > MAX_REPEAT:
        source.refuse(f"the repeat {braces[0]} of more than {MAX_REPEAT:,} times", at)
    if high is not None and not low <= high or high == 0:
        source.refuse(f"the count {braces[0]}", at)
    return low, high, True


def _repeat_of(source: PatternCursor, body: Node, low: int, high: int | None, mode: Mode, at: int) -> Repeat:
    # Engines differ in how they leave a loop whose body matched the empty string, so such loops are refused.
    if matches_empty(body):
        source.refuse("a repeat of what can match the empty string", at)
    return Repeat(body, low, high, mode)


def _unquantified(source: PatternCursor, node: Node) -> Node:
    if source.peek() in ("*", "+", "?", "{"):
        source.refuse(f"the quantifier {source.peek()} on a quantifier", source.at)
    return node


def _atom(source: PatternCursor, ignore_case: bool, depth: int) -> Node:
    at = source.at
    character = source.take()
    if character == "(":
        return _group(source, ignore_case, depth + 1)
    if character == "[":
        return Symbol(bracket(source, ignore_case))
    if character == ".":
        return Symbol(~CodePoints.of(ord("\n")))
    if character == "$":
        # Oniguruma's Ruby syntax: also before every line feed. fancy-regex: only the end of the text.
        return NextCharacter(CodePoints.of(*([ord("\n")] if source.dialect == "oniguruma" else [])), at_edge=True)
    if character == "^":
        return _line_start(source)
    if character == "\\":
        if source.peek() in ("z", "Z", "A", "b", "B"):
            return _anchor(source, source.take(), at)
        item = escape(source, ignore_case)
        if isinstance(item, CodePoints):
            return Symbol(item)
        character = chr(item)
    elif character in "*+?":
        source.malformed(f"nothing for {character} to repeat", at)
    elif character == "{":
        source.refuse("an opening brace that begins no count", at)
    members = CodePoints.of(ord(character))
    if not ignore_case:
        return Symbol(members)
    return Symbol(fold(source, members, at), character.lower() if character.isascii() and character.isalpha() else "")


def _line_start(source: PatternCursor) -> Node:
    start = Lookbehind(CodePoints.of(), at_edge=True)
    if source.dialect != "oniguruma":
        return start
    # Ruby syntax: also after every line feed, except one that ends the text.
    after_line_feed = Concat(
        (Lookbehind(CodePoints.of(ord("\n")), at_edge=False), NextCharacter(~CodePoints.of(), at_edge=False))
    )
    return Alternate((start, after_line_feed))


def _anchor(source: PatternCursor, letter: str, at: int) -> Node:
    r"""Return the node for the anchor `\A`, `\z`, `\Z`, `\b` or `\B`, whose letter has been read.

    Any other letter is treated as `B`, so the caller checks it. `\Z` is refused in dialects other than Oniguruma; it
    stands for the end of the text or the place before a line feed that ends the text.

    Args:
        source: The pattern; names the dialect, and raises the error for a refused anchor.
        letter: The letter.
        at: The index of the backslash, for errors.

    """
    end = NextCharacter(CodePoints.of(), at_edge=True)
    if letter == "z":
        return end
    if letter == "A":
        return Lookbehind(CodePoints.of(), at_edge=True)
    if letter == "Z":
        if source.dialect != "oniguruma":
            source.refuse("the escape \\Z", at)
        return Alternate((end, Lookahead(Concat((Symbol(CodePoints.of(ord("\n"))), end)), wanted=True)))
    word = named_set("w", source.dialect)
    after, not_after = Lookbehind(word, at_edge=False), Lookbehind(~word, at_edge=True)
    before, not_before = NextCharacter(word, at_edge=False), NextCharacter(~word, at_edge=True)
    if letter == "b":
        return Alternate((Concat((after, not_before)), Concat((not_after, before))))
    return Alternate((Concat((after, before)), Concat((not_after, not_before))))


def _group(source: PatternCursor, ignore_case: bool, depth: int) -> Node:
    at = source.at - 1
    look = next((look for look in ("?!", "?=", "?<!", "?<=") if source.accept(look)), "")
    if look:
        pass
    elif source.accept("?i:"):
        ignore_case = True
    elif source.peek() == "?" and not source.accept("?:"):
        kind = re.compile(r"\(\?(<[=!]|P?<|[^a-zA-Z]|[a-zA-Z-]+:?)?").match(source.pattern, at)
        source.refuse(f"the group {kind[0] if kind else '(?'}", at)
    node = _alternate(source, ignore_case, depth)
    if not source.accept(")"):
        source.malformed("an unclosed (", at)
    if not look:
        return node
    wanted = look.endswith("=")
    if look.startswith("?<"):
        before = as_condition(node, Lookbehind)
        if before is None:
            source.refuse("a lookbehind of more than one character", at)
        return before if wanted else Lookbehind(~before.members, not before.at_edge)
    next_ = as_condition(node, NextCharacter)
    if next_ is None:
        return Lookahead(node, wanted)
    return next_ if wanted else NextCharacter(~next_.members, not next_.at_edge)
