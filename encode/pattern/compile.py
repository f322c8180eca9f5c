"""Compile a pattern, through a cache on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from tokenweir.encode.base.cache import cache_folder, make_room, read_own, store
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.pattern.automaton import Automaton
from tokenweir.encode.pattern.code_points import N_CODE_POINTS
from tokenweir.encode.pattern.context import Context, build_context
from tokenweir.encode.pattern.determinize import MATCH, determinize
from tokenweir.encode.pattern.minimize import minimize, sync_pairs
from tokenweir.encode.pattern.parser import parse
from tokenweir.encode.pattern.program import compile_program, compress_alphabet, plain_symbols
from tokenweir.encode.pattern.source import DIALECTS, Dialect, shown
from tokenweir.encode.unicode import categories

COMPILER_VERSION = 4
"""A part of every cache key. Raise it with any change that may alter the tables of a pattern, or their form in a file."""

MAX_KEPT = 128
"""The most cache files; the oldest are removed first. A tokenizer has one pattern, or a few."""

MAX_CLASSES = 255

MAX_ALL_CELLS = 100_000
"""The most cells of all patterns of a normalizer or pre-tokenizer together; real ones have 20,000."""


def compile_pattern(pattern: str, dialect: Dialect) -> Automaton:
    """Compile a pre-tokenizer pattern, through a cache on disk.

    The cache (`encode/base/cache.py`) only saves time: a missing, damaged or foreign file, or a read-only folder, does not change
    the result.

    Args:
        pattern: The regular expression.
        dialect: The regex dialect: "oniguruma" for HuggingFace's engine (tokenizer.json), "fancy-regex" for tiktoken's.

    Raises:
        UnsupportedTokenizerError: The pattern has a construct that cannot be compiled exactly, can match the empty string
            in another dialect than Oniguruma's, or is too large; the message names the construct and its place.
        TokenizerFileError: The pattern is not a regular expression.

    """
    path = cache_folder() / f"{_key(pattern, dialect)}.automaton"
    try:
        automaton = Automaton.from_bytes(read_own(path))
        if (automaton.pattern, automaton.dialect) == (pattern, dialect):
            return automaton
    except (OSError, TokenizerFileError):
        pass
    automaton = build(pattern, dialect)
    with suppress(OSError):
        make_room(path.parent, "*.automaton", MAX_KEPT)
        store(path, automaton.to_bytes())
    return automaton


def check_all(automata: Iterable[Automaton]) -> None:
    """Raise `UnsupportedTokenizerError` if the tables of all automata of a normalizer or pre-tokenizer are too large."""
    cells = sum(automaton.cells for automaton in automata)
    if cells > MAX_ALL_CELLS:
        raise UnsupportedTokenizerError(f"patterns that need {cells:,} cells in total, more than {MAX_ALL_CELLS:,}")


def build(pattern: str, dialect: Dialect) -> Automaton:
    """Compile a pattern without the cache; arguments and errors are those of `compile_pattern`."""
    if dialect not in DIALECTS:
        raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}, not {dialect!r}")
    quoted = f"{shown(pattern)} ({dialect})"
    program = compile_program(parse(pattern, dialect), quoted)
    alphabet = compress_alphabet(list(program.sets))
    context, symbols = (
        build_context(program, alphabet, quoted) if program.conditions else (None, plain_symbols(alphabet))
    )
    table, merged = minimize(determinize(program, symbols, quoted))
    matches_empty = bool((table[0] & MATCH).any())
    if matches_empty and dialect != "oniguruma":
        raise UnsupportedTokenizerError(f"pattern {quoted}: it can match the empty string, which is not supported")
    if table.shape[1] - 1 > MAX_CLASSES:
        raise UnsupportedTokenizerError(
            f"pattern {quoted}: it distinguishes {table.shape[1] - 1} classes of characters, more than {MAX_CLASSES}"
        )
    ends = np.append(alphabet.starts[1:], N_CODE_POINTS)
    # With a context, symbols were merged. Classes are unchanged, and fewer.
    if context is not None:
        to_symbol = np.append(merged, table.shape[1] - 1).astype(np.uint8)
        context = Context(context.behind, context.transitions, to_symbol[context.symbols])
    classes_of_runs = alphabet.classes if context is not None else merged[alphabet.classes]
    classes = np.repeat(classes_of_runs.astype(np.uint8), ends - alphabet.starts)
    pages: dict[bytes, int] = {}
    index = [pages.setdefault(page.tobytes(), len(pages)) for page in classes.reshape(-1, 256)]
    return Automaton(
        transitions=table,
        class_index=np.array(index, np.uint16),
        class_pages=np.frombuffer(b"".join(pages), np.uint8).reshape(-1, 256).copy(),
        sync=np.zeros((table.shape[1] - 1,) * 2, np.bool_) if context or matches_empty else sync_pairs(table),
        pattern=pattern,
        dialect=dialect,
        context=context,
    )


def _key(pattern: str, dialect: str) -> str:
    parts = [pattern, dialect, categories.VERSION, COMPILER_VERSION]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
