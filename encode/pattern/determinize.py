"""From threads to states: the subset construction on ordered thread lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.pattern.program import Check, CheckCondition, Jump, Program, Split, Symbols, Take

MATCH = 0x8000
GAP = 0x4000
DEAD = 0x3FFF
MAX_STATES = 16_382
MAX_CELLS = 200_000
"""The most states times classes before minimisation; real patterns need 1,000, Jais-2 10,000."""
MAX_STEPS = 1_000_000
"""The most instructions that determinization may run. Real patterns need 20,000, Jais-2 400,000."""


def determinize(program: Program, symbols: Symbols, shown: str) -> NDArray[np.uint16]:
    """Convert a program to a deterministic automaton: compute the transitions of every reachable state for every symbol.

    A state is the list of threads, by priority, that have just consumed a character. Their steps up to the next character
    depend on the next symbol, because of lookahead. So these steps, and matches, happen on the transition.

    Args:
        program: The program of the pattern.
        symbols: The symbols that a walk reads.
        shown: The pattern as errors quote it.

    Returns:
        The table, of shape (states, symbols), whose entries are those of `Automaton.transitions`. It is not minimal.

    Raises:
        UnsupportedTokenizerError: The pattern needs too many states, or too much work to find them.

    """
    instructions = program.instructions
    members, is_end, holds = symbols
    n_symbols = len(is_end)
    states: dict[tuple[int, ...], int] = {(0,): 0}
    queue = list(states)
    rows: list[list[int]] = []
    steps = 0
    for threads in queue:
        row: list[int] = []
        for symbol in range(n_symbols):
            flags, following = 0, []
            seen: set[int] = set()
            stack = list(reversed(threads))
            while stack:
                at = stack.pop()
                if at in seen:
                    continue
                seen.add(at)
                instruction = instructions[at]
                if isinstance(instruction, Take):
                    if members[instruction.members][symbol]:
                        following.append(at + 1)
                elif isinstance(instruction, Split):
                    stack.append(instruction.second)
                    stack.append(instruction.first)
                elif isinstance(instruction, Jump):
                    stack.append(instruction.target)
                elif isinstance(instruction, Check):
                    met = members[instruction.members][symbol] == instruction.wanted
                    if instruction.at_end if is_end[symbol] else met:
                        stack.append(at + 1)
                elif isinstance(instruction, CheckCondition):
                    if holds[symbol][instruction.condition] == instruction.wanted:
                        stack.append(at + 1)
                else:
                    flags = MATCH | (GAP if instruction.gap else 0)
                    break  # threads of lower priority cannot win any more
            steps += len(seen)
            if steps > MAX_STEPS or len(states) > MAX_STATES or len(states) * n_symbols > MAX_CELLS:
                raise UnsupportedTokenizerError(
                    f"pattern {shown}: too large; {len(states):,} states of {n_symbols - 1:,} classes after {steps:,} steps"
                    f" and no end (limits: {MAX_STATES:,} states, {MAX_CELLS:,} cells, {MAX_STEPS:,} steps)"
                )
            target = DEAD
            if following:
                key = tuple(following)
                if key not in states:
                    states[key] = len(states)
                    queue.append(key)
                target = states[key]
            row.append(flags | target)
        rows.append(row)
    return np.array(rows, np.uint16)
