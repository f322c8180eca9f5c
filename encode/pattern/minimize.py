"""Minimize an automaton: remove dead ends and superfluous flags, merge equivalent states and classes."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.pattern.determinize import DEAD, GAP


def minimize(table: NDArray[np.uint16]) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Minimise an automaton.

    Args:
        table: The transitions, as in `Automaton`; shape (states, classes + 1). Every state is reachable from state 0.

    Returns:
        The table with states numbered in breadth-first order from state 0, so that equal automata have equal tables; and the
        new class of each old one, shape (classes,).

    """
    return _merge_classes(_merge_states(_drop_overridden(_cut_dead_ends(table))))


def _predecessors(table: NDArray[np.uint16]) -> list[list[tuple[int, int]]]:
    """Return for each state the (symbol, state) pairs that lead to it; the last entry is for the dead state."""
    n_states = len(table)
    found: list[list[tuple[int, int]]] = [[] for _ in range(n_states + 1)]
    for state, row in enumerate((table & DEAD).tolist()):
        for symbol, target in enumerate(row):
            found[n_states if target == DEAD else target].append((symbol, state))
    return found


def _cut_dead_ends(table: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the table with every transition after which no match can follow redirected to the dead state.

    A walk stops in that state. States from which no match can be reached are removed.
    """
    before = _predecessors(table)
    alive: NDArray[np.bool_] = np.any(table > DEAD, axis=1)
    queue = np.flatnonzero(alive).tolist()
    for state in queue:
        for _, previous in before[state]:
            if not alive[previous]:
                alive[previous] = True
                queue.append(previous)
    rank = np.append(np.cumsum(alive) - 1, DEAD)
    rank[:-1][~alive] = DEAD
    targets = np.minimum(table & DEAD, len(table))
    cut: NDArray[np.uint16] = (table & ~np.uint16(DEAD)) | rank[targets].astype(np.uint16)
    return cut[alive]


def _drop_overridden(table: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the table without the flags of matches that a longer match always replaces.

    With `\\p{L}+` only the end of the run stays flagged. So equivalent greedy and possessive loops become equal, and a
    pattern that matches every character has no gaps.
    """
    unflagged = table <= DEAD
    may_fail: NDArray[np.bool_] = np.any(table == DEAD, axis=1)  # a walk from here may end without a further match
    queue = np.flatnonzero(may_fail).tolist()
    before = _predecessors(table)
    for state in queue:
        for symbol, previous in before[state]:
            if unflagged[previous, symbol] and not may_fail[previous]:
                may_fail[previous] = True
                queue.append(previous)
    final = np.append(may_fail, True)[np.minimum(table & DEAD, len(table))]
    return np.where(final, table, table & DEAD)


def _merge_classes(table: NDArray[np.uint16]) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Merge classes whose columns are equal; the last column, the end of the text, stays apart.

    Returns:
        The table with a column for each distinct class, in order of first occurrence; and the new class of each old one.

    """
    numbers: dict[bytes, int] = {}
    columns = np.ascontiguousarray(table[:, :-1].T)
    classes = np.array([numbers.setdefault(column.tobytes(), len(numbers)) for column in columns], np.int64)
    _, first = np.unique(classes, return_index=True)
    return np.append(table[:, first], table[:, -1:], axis=1), classes


def _merge_states(table: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the table with equivalent states merged, by Hopcroft's partition refinement."""
    n_states = len(table)
    before = _predecessors(table)
    blocks: list[set[int]] = []
    block_of = [0] * (n_states + 1)
    by_flags: dict[bytes, set[int]] = defaultdict(set)
    for state, row in enumerate(table & ~np.uint16(DEAD)):
        by_flags[row.tobytes()].add(state)
    by_flags[b""].add(n_states)  # the dead state; every other one leads to a match
    for members in by_flags.values():
        for state in members:
            block_of[state] = len(blocks)
        blocks.append(members)
    work = set(range(len(blocks)))
    while work:
        splitter = blocks[work.pop()]
        sources: dict[int, list[int]] = defaultdict(list)
        for state in splitter:
            for symbol, previous in before[state]:
                sources[symbol].append(previous)
        for leading in sources.values():
            touched: dict[int, list[int]] = defaultdict(list)
            for state in leading:
                touched[block_of[state]].append(state)
            for block, inside in touched.items():
                if len(inside) == len(blocks[block]):
                    continue
                moved = set(inside)
                blocks[block] = blocks[block] - moved
                new = len(blocks)
                blocks.append(moved)
                for state in moved:
                    block_of[state] = new
                if block in work or len(moved) <= len(blocks[block]):
                    work.add(new)
                else:
                    work.add(block)
    targets = (table & DEAD).tolist()
    order = {block_of[0]: 0}
    representatives = [0]
    for state in representatives:
        for target in targets[state]:
            if target != DEAD and block_of[target] not in order:
                order[block_of[target]] = len(order)
                representatives.append(target)
    rank = np.array([order.get(block, DEAD) for block in block_of], np.uint16)
    kept = table[representatives]
    merged: NDArray[np.uint16] = (kept & ~np.uint16(DEAD)) | rank[np.minimum(kept & DEAD, n_states)]
    return merged


def boundary_pairs(table: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Return the pairs of classes between which a token always ends.

    No token has `a` directly before `b` if every walk over both dies. (A walk depends on nothing before its start, unless
    the pattern has a context.)

    Args:
        table: The transitions, as in `Automaton`.

    Returns:
        A matrix of shape (classes, classes): whether there is always a boundary between a character of class i and a
        directly following one of class j, at [i, j].

    """
    n_classes = table.shape[1] - 1
    targets = table[:, :-1] & DEAD
    reached = np.zeros((n_classes, len(table) + 1), np.bool_)  # by class: the states a walk can be in after it
    reached[np.arange(n_classes), np.minimum(targets, len(table))] = True
    inside: NDArray[np.bool_] = reached[:, :-1] @ (targets != DEAD)
    return ~inside


def sync_pairs(table: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Return the pairs of classes between which a piece always begins.

    Adjacent gaps (characters that the pattern does not match) are one piece, so boundaries at which two gaps may meet
    are excluded.

    Args:
        table: The transitions, as in `Automaton`.

    Returns:
        A matrix of shape (classes, classes): whether a character of class j directly after one of class i always begins a
        piece, at [i, j].

    """
    after_first = table[table[0, :-1] & DEAD]  # every class can begin a token, at least a gap
    is_gap = (after_first & GAP) != 0
    gaps_meet = is_gap[:, :-1] & is_gap.any(axis=1)
    sync: NDArray[np.bool_] = boundary_pairs(table) & ~gaps_meet
    return sync
