r"""Long lookahead and one-character lookbehind: conditions on a place that depend on more than the next character.

`\d{1,3}(?=(?:\d{3})*\b)` cuts a number into groups of three from its end, so the first group depends on all the rest.
A walk cannot look that far ahead. But whether a lookahead matches at a place depends only on the next character and on the
matches one place later. So an automaton that reads the text backwards decides for every place which conditions hold, and
the result becomes part of the symbol that the walk reads. Both passes are linear in the text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.pattern.parser import Lookbehind
from tokenweir.encode.pattern.program import (
    Alphabet,
    Check,
    CheckCondition,
    Instruction,
    Jump,
    Program,
    Split,
    Symbols,
    Take,
)

MAX_CELLS = 100_000
"""The most states of the pass times its symbols; real patterns need 100."""
MAX_STEPS = 2_000_000
"""The most instructions that building the pass may examine."""


@dataclass(frozen=True, eq=False)
class Context:
    """The automaton of the pass from the end of a text to its start.

    At each place it reads a column: the row of the character before times (classes + 1), plus the class at the place. The
    class of the end of the text is the number of classes.

    Attributes:
        behind: uint8 of shape (classes + 1,): the row of each class; the last is for the start of the text.
        transitions: uint16 of shape (states, rows * (classes + 1)): the next state; state 0 is the start.
        symbols: uint8 of the same shape: the resulting symbol of the place.

    """

    behind: NDArray[np.uint8]
    transitions: NDArray[np.uint16]
    symbols: NDArray[np.uint8]

    def __post_init__(self) -> None:
        for array in (self.behind, self.transitions, self.symbols):
            array.flags.writeable = False

    def read(self, classes: list[int]) -> list[int]:
        """Run the pass over a text; return the symbol of each character, followed by that of the text's end.

        `classes` are the classes of the text's characters, in order.
        """
        width = len(self.behind)
        places = [*classes, width - 1]
        state, symbols = 0, []
        for at in reversed(range(len(places))):
            row = int(self.behind[places[at - 1] if at else width - 1])
            number = row * width + places[at]
            symbols.append(int(self.symbols[state, number]))
            state = int(self.transitions[state, number])
        return symbols[::-1]


def build_context(program: Program, alphabet: Alphabet, shown: str) -> tuple[Context, Symbols]:
    """Build the automaton that decides a program's conditions for each place of a text.

    Return it with its output symbols: classes combined with the values of the conditions, for the walk to read.

    Args:
        program: The program, with at least one condition.
        alphabet: The classes of its sets.
        shown: The pattern as errors quote it.

    Raises:
        UnsupportedTokenizerError: The automaton would be too large.

    """
    n_classes = alphabet.members.shape[1]
    members = [[*row, False] for row in alphabet.members.tolist()]
    rows, behind = _rows(program, members, n_classes)
    width = n_classes + 1
    states: dict[tuple[frozenset[int], ...], int] = {(): 0}
    queue = list(states)
    kinds: dict[tuple[int, tuple[bool, ...]], int] = {}
    transitions: list[list[int]] = []
    symbols: list[list[int]] = []
    steps = 0
    for state in queue:
        targets, found = [], []
        for row in rows:
            for symbol in range(width):
                holds: list[bool] = []
                following: list[frozenset[int]] = []
                for number, condition in enumerate(program.conditions):
                    if isinstance(condition, Lookbehind):
                        holds.append(row[number])
                        continue
                    later = state[len(following)] if state else frozenset()
                    alive, looks = _alive(condition, members, symbol, symbol == n_classes, holds, later)
                    steps += looks
                    holds.append(alive[0])
                    entered = (at + 1 for at, each in enumerate(condition) if isinstance(each, Take))
                    following.append(frozenset(at for at in entered if alive[at]))
                key = tuple(following)
                targets.append(states.setdefault(key, len(states)))
                if len(states) > len(queue):
                    queue.append(key)
                found.append(kinds.setdefault((symbol, tuple(holds)), len(kinds)))
                if steps > MAX_STEPS or len(states) * width * len(rows) > MAX_CELLS or len(kinds) > 256:
                    raise UnsupportedTokenizerError(
                        f"pattern {shown}: too large; its lookaheads need {len(states):,} states and {len(kinds):,} symbols"
                        f" after {steps:,} steps and no end (limits: {MAX_CELLS:,} cells, 256 symbols, {MAX_STEPS:,} steps)"
                    )
        transitions.append(targets)
        symbols.append(found)
    # By convention the last symbol is an end of the text.
    order = sorted(kinds, key=lambda kind: kind[0] == n_classes)
    rank = np.empty(len(order), np.uint8)
    rank[[kinds[kind] for kind in order]] = np.arange(len(order))
    context = Context(np.array(behind, np.uint8), np.array(transitions, np.uint16), rank[np.array(symbols)])
    return context, Symbols(
        [[row[symbol] for symbol, _ in order] for row in members],
        [symbol == n_classes for symbol, _ in order],
        [holds for _, holds in order],
    )


def _rows(program: Program, members: list[list[bool]], n_classes: int) -> tuple[list[tuple[bool, ...]], list[int]]:
    """Decide a program's lookbehind conditions for each class of the character before a place.

    Args:
        program: The program.
        members: Whether each set contains a class, by set and class; then False, for the end of the text.
        n_classes: The number of classes.

    Returns:
        The distinct rows, each with the result of every condition (False for a lookahead); and the number of the row for
        each class, followed by that for the start of the text.

    """

    def holds(condition: object, symbol: int) -> bool:
        if not isinstance(condition, Lookbehind):
            return False
        return condition.at_edge if symbol == n_classes else members[program.sets[condition.members]][symbol]

    rows: dict[tuple[bool, ...], int] = {}
    behind = [
        rows.setdefault(tuple(holds(condition, symbol) for condition in program.conditions), len(rows))
        for symbol in range(n_classes + 1)
    ]
    return list(rows), behind


def _alive(
    program: list[Instruction],
    members: list[list[bool]],
    symbol: int,
    at_end: bool,
    holds: list[bool],
    later: frozenset[int],
) -> tuple[list[bool], int]:
    """Decide a lookahead at one place: return for each instruction whether a thread that starts there can match.

    Also return how many instructions were examined.

    Args:
        program: The program of the lookahead.
        members: Whether each set contains a symbol, by set and symbol.
        symbol: The symbol at the place.
        at_end: Whether that is the end of the text.
        holds: The values of the earlier conditions at the place.
        later: The instructions from which a thread can match one place later.

    """
    alive = [False] * len(program)
    looks = 0
    changed = True
    while changed:
        changed = False
        looks += len(program)
        for at in reversed(range(len(program))):
            if alive[at]:
                continue
            match program[at]:
                case Take(index):
                    alive[at] = members[index][symbol] and at + 1 in later
                case Check(index, wanted, holds_at_end):
                    alive[at] = alive[at + 1] and (holds_at_end if at_end else members[index][symbol] == wanted)
                case CheckCondition(condition, wanted):
                    alive[at] = alive[at + 1] and holds[condition] == wanted
                case Split(first, second):
                    alive[at] = alive[first] or alive[second]
                case Jump(target):
                    alive[at] = alive[target]
                case _:
                    alive[at] = True
            changed |= alive[at]
    return alive, looks
