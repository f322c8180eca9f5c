"""Compile a pattern's tree to a program of Pike's machine, and its sets to symbol classes.

A thread runs `Split`, `Jump`, `Check` and `CheckCondition` without consuming, in order of priority, and stops at `Take` or
`Match`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.pattern import parser
from tokenweir.encode.pattern.code_points import N_CODE_POINTS, CodePoints
from tokenweir.encode.pattern.parser import Alternate, Concat, Lookahead, Lookbehind, NextCharacter, Node, Repeat

MAX_INSTRUCTIONS = 8_192
"""The most instructions. Counted repeats are unrolled; the largest real pattern (Jais-2, `\\s{512}` and smaller) needs 1,100."""


class Take(NamedTuple):
    """Consume a character of a set, given by index, and continue at the next instruction."""

    members: int


class Check(NamedTuple):
    """Continue if the next character is in a set (`wanted`) or is not (not `wanted`), without consuming it.

    At the end of the text, continue if `at_end`. `members` is the index of the set.
    """

    members: int
    wanted: bool
    at_end: bool


class CheckCondition(NamedTuple):
    """Continue if one of the program's conditions, given by index, holds (`wanted`) or does not (not `wanted`)."""

    condition: int
    wanted: bool


class Split(NamedTuple):
    """Fork into two threads; the first has priority."""

    first: int
    second: int


class Jump(NamedTuple):
    """Continue at another instruction."""

    target: int


class Match(NamedTuple):
    """End the thread with a match of the pattern or, as a gap, of one character that the pattern does not match."""

    gap: bool


Instruction = Take | Check | CheckCondition | Split | Jump | Match

Condition = Lookbehind | list[Instruction]
"""A condition on a place in the text: a lookbehind, or the program of a long lookahead."""


@dataclass
class Program:
    """A program: instructions with their sets and conditions.

    Attributes:
        instructions: The instructions; threads start at the first.
        sets: The distinct sets, in order of first use.
        conditions: The lookbehinds and long lookaheads; each depends only on earlier ones.

    """

    instructions: list[Instruction] = field(default_factory=list)
    sets: dict[CodePoints, int] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)

    def emit(self, instruction: Instruction) -> int:
        """Append an instruction; return its index."""
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def index_of(self, members: CodePoints) -> int:
        """Return the index of a set, which is added if it is new."""
        return self.sets.setdefault(members, len(self.sets))

    def add(self, node: Node) -> None:
        """Append the instructions that match a node of a pattern's tree."""
        match node:
            case parser.Symbol(members):
                self.emit(Take(self.index_of(members)))
            case NextCharacter(members, at_end):
                self.emit(Check(self.index_of(members), True, at_end))
            case Lookbehind(members):
                self.index_of(members)
                self._emit_condition(node, True)
            case Lookahead(body, wanted):
                ahead = Program(sets=self.sets, conditions=self.conditions)
                ahead.add(body)
                ahead.emit(Match(gap=False))
                self._emit_condition(ahead.instructions, wanted)
            case Concat(parts):
                for part in parts:
                    self.add(part)
            case Alternate(branches):
                self._add_alternate(branches)
            case Repeat():
                self._add_repeat(node)
            case _:
                assert_never(node)

    def _emit_condition(self, condition: Condition, wanted: bool) -> None:
        if condition not in self.conditions:
            self.conditions.append(condition)
        self.emit(CheckCondition(self.conditions.index(condition), wanted))

    def _add_alternate(self, branches: tuple[Node, ...]) -> None:
        ends: list[int] = []
        for branch in branches[:-1]:
            split = self.emit(Jump(0))
            self.add(branch)
            ends.append(self.emit(Jump(0)))
            self.instructions[split] = Split(split + 1, len(self.instructions))
        self.add(branches[-1])
        for end in ends:
            self.instructions[end] = Jump(len(self.instructions))

    def _add_repeat(self, node: Repeat) -> None:
        """Append the instructions of a repeat: copies of its body.

        Copies beyond the first `low` begin with a choice between the body and the exit.

        A possessive loop never backtracks. So it is a greedy loop that may only be left before a character that it cannot
        consume, except after the maximum count. This is exact because its body is one character.
        """
        for _ in range(node.low):
            self.add(node.body)
        choices: list[int] = []
        for _ in range(1 if node.high is None else node.high - node.low):
            choices.append(self.emit(Jump(0)))
            self.add(node.body)
        if node.high is None:
            self.emit(Jump(choices[0]))
        exit_ = len(self.instructions)
        if node.mode == "possessive" and choices:
            assert isinstance(node.body, parser.Symbol)
            if node.high is not None:
                self.emit(Jump(exit_ + 2))
                exit_ += 1
            self.emit(Check(self.index_of(node.body.members), False, True))
        for choice in choices:
            more_first = node.mode != "lazy"
            self.instructions[choice] = Split(choice + 1, exit_) if more_first else Split(exit_, choice + 1)


def _size(node: Node) -> int:
    match node:
        case Lookahead(body):
            return 2 + _size(body)
        case Concat(parts):
            return sum(map(_size, parts))
        case Alternate(branches):
            return sum(2 + _size(branch) for branch in branches)
        case Repeat(body, low, high):
            return 2 + (1 + _size(body)) * (low + 1 if high is None else high)
        case parser.Symbol() | NextCharacter() | Lookbehind():
            return 1
        case _:
            assert_never(node)


def compile_program(node: Node, shown: str) -> Program:
    """Compile the tree of a pattern to a program.

    Below all alternatives of the pattern stands a gap: any one character that the pattern does not match.

    Args:
        node: The root of the tree.
        shown: The pattern as errors quote it.

    Raises:
        UnsupportedTokenizerError: The program would be too long.

    """
    if (size := _size(node)) > MAX_INSTRUCTIONS:
        raise UnsupportedTokenizerError(
            f"pattern {shown}: it needs {size:,} instructions, repeats written out, more than {MAX_INSTRUCTIONS:,}"
        )
    program = Program()
    split = program.emit(Jump(0))
    program.add(node)
    program.emit(Match(gap=False))
    program.instructions[split] = Split(split + 1, len(program.instructions))
    program.emit(Take(program.index_of(~CodePoints.of())))
    program.emit(Match(gap=True))
    return program


class Alphabet(NamedTuple):
    """The classes of code points that no set of a program distinguishes.

    Attributes:
        starts: The first code point of each run of one class, int32; the first is 0.
        classes: The class of each run; classes are numbered by their first code point. Surrogates, which no text has,
            are in the class of the run before them.
        members: Shape (sets, classes): whether a set contains a class.

    """

    starts: NDArray[np.int32]
    classes: NDArray[np.int64]
    members: NDArray[np.bool_]


def compress_alphabet(sets: list[CodePoints]) -> Alphabet:
    """Partition the code points into as few classes as possible, so that each set either contains a class or does not."""
    surrogates = np.array([0, 0xD800, 0xE000], np.int32)
    starts = np.unique(np.concatenate([surrogates, *(each.flips for each in sets)]))
    starts = starts[(starts < 0xD800) | (starts >= 0xE000) & (starts < N_CODE_POINTS)]
    signatures = np.stack([each.contains(starts) for each in sets], axis=1)
    distinct, first, classes = np.unique(
        np.packbits(signatures, axis=1), axis=0, return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    rank = np.empty(len(distinct), np.int64)
    rank[order] = np.arange(len(distinct))
    return Alphabet(starts, rank[classes.reshape(-1)], signatures[first[order]].T)


class Symbols(NamedTuple):
    """The symbols that a walk reads: a class or the end of the text, combined with the values of conditions.

    Attributes:
        members: By set and symbol: whether the set contains the character. The end is in no set.
        is_end: By symbol: whether it is an end of the text; the last symbol is one.
        holds: By symbol and condition: whether the condition holds.

    """

    members: list[list[bool]]
    is_end: list[bool]
    holds: list[tuple[bool, ...]]


def plain_symbols(alphabet: Alphabet) -> Symbols:
    """Return the symbols of a program without conditions: the classes of an alphabet, then the end of the text."""
    n_classes = alphabet.members.shape[1]
    members = [[*row, False] for row in alphabet.members.tolist()]
    return Symbols(members, [False] * n_classes + [True], [()] * (n_classes + 1))
