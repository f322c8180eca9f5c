"""The compiled pattern: its tables, and their form on disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.pattern.context import Context
from tokenweir.encode.pattern.determinize import DEAD, GAP, MATCH
from tokenweir.encode.pattern.source import DIALECTS, Dialect, shown
from tokenweir.encode.unicode import categories

FORMAT_VERSION = 2
_MAGIC = b"tokenweir automaton\n"
_N_PAGES = 4352  # pages of 256 code points


class _Stored(msgspec.Struct, array_like=True):
    """The msgpack content of a file after magic and digest; arrays are little-endian and row-major."""

    version: int
    pattern: str
    dialect: str
    unicode_version: str
    n_states: int
    n_classes: int
    transitions: bytes
    class_index: bytes
    class_pages: bytes
    sync: bytes
    context: tuple[bytes, bytes, bytes] | None


@dataclass(frozen=True, eq=False)
class Automaton:
    """A compiled pattern.

    Attributes:
        transitions: uint16 of shape (n_states, n_classes + 1); a row per state, state 0 is the start; a column per class
            of the next character, the last column for the end of the text. Bit 0x8000: a match ends before this symbol.
            Bit 0x4000: that match is a gap, a character that the pattern does not match. Low 14 bits: the next state,
            0x3FFF if no longer match is possible.
        class_index: uint16 of shape (4352,): the page of code point >> 8.
        class_pages: uint8 of shape (n_pages, 256): the class of code point & 255.
        sync: bool of shape (n_classes, n_classes): a character of the second class after one of the first always
            begins a piece, whatever came before.
        pattern: The regular expression.
        dialect: The regex dialect in which it was compiled.
        unicode_version: The Unicode version of the classes.
        context: Unless it is None, walks read its symbols instead of classes, and `transitions` and `sync` are indexed by
            symbols. The last symbol is an end of the text, and others may be.

    """

    transitions: NDArray[np.uint16]
    class_index: NDArray[np.uint16]
    class_pages: NDArray[np.uint8]
    sync: NDArray[np.bool_]
    pattern: str
    dialect: Dialect
    unicode_version: str = categories.VERSION
    context: Context | None = None

    def __post_init__(self) -> None:
        for array in (self.transitions, self.class_index, self.class_pages, self.sync):
            array.flags.writeable = False

    @property
    def n_states(self) -> int:
        """The number of states, without the dead state, in which no longer match is possible."""
        return len(self.transitions)

    @property
    def n_classes(self) -> int:
        """The number of different symbols that a walk reads, without the last one, which is an end of the text.

        Without a context these are the classes of characters.
        """
        return int(self.transitions.shape[1]) - 1

    @property
    def cells(self) -> int:
        """The number of entries in the transition tables, that of the context included; a measure of size."""
        return self.transitions.size + (0 if self.context is None else self.context.transitions.size)

    @property
    def has_gaps(self) -> bool:
        """Whether there is a text with characters that the pattern does not match."""
        return bool((self.transitions & GAP).any())

    @property
    def matches_empty(self) -> bool:
        """Whether the pattern can match the empty string."""
        return bool(((self.transitions[0] & (MATCH | GAP)) == MATCH).any())

    def classes(self, text: str) -> NDArray[np.uint8]:
        """Return the class of each character of a text."""
        code_points = np.frombuffer(text.encode("utf-32-le"), "<u4")
        classes: NDArray[np.uint8] = self.class_pages[self.class_index[code_points >> 8], code_points & 255]
        return classes

    def in_core(self) -> _core.CompiledPattern:
        """Return the automaton as an object of the core.

        Raise `UnsupportedTokenizerError` if the core refuses it, because a walk might not take linear time.
        """
        context = self.context
        try:
            return _core.CompiledPattern(
                self.transitions,
                self.class_index,
                self.class_pages,
                self.n_classes,
                self.sync.astype(np.uint8),
                None if context is None else (context.behind, context.transitions, context.symbols),
            )
        except UnsupportedTokenizerError as error:
            raise UnsupportedTokenizerError(f"pattern {shown(self.pattern)} ({self.dialect}): {error}") from None

    def to_bytes(self) -> bytes:
        """Serialize the automaton: magic, SHA-256 of the rest, then msgpack."""
        stored = _Stored(
            FORMAT_VERSION,
            self.pattern,
            self.dialect,
            self.unicode_version,
            self.n_states,
            self.n_classes,
            self.transitions.astype("<u2").tobytes(),
            self.class_index.astype("<u2").tobytes(),
            self.class_pages.tobytes(),
            self.sync.tobytes(),
            None if self.context is None else self.context.to_bytes(),
        )
        body = msgspec.msgpack.encode(stored)
        return _MAGIC + hashlib.sha256(body).digest() + body

    @staticmethod
    def from_bytes(data: bytes) -> Automaton:
        """Read what `to_bytes` wrote; raise `TokenizerFileError` for damaged data or another version."""
        body = data[len(_MAGIC) + 32 :]
        if not data.startswith(_MAGIC):
            raise TokenizerFileError("not a compiled pattern: the file begins with other bytes")
        if data[len(_MAGIC) : len(_MAGIC) + 32] != hashlib.sha256(body).digest():
            raise TokenizerFileError("a damaged compiled pattern: the digest differs")
        try:
            stored = msgspec.msgpack.decode(body, type=_Stored)
            if stored.version != FORMAT_VERSION:
                raise TokenizerFileError(f"a compiled pattern of version {stored.version}, not {FORMAT_VERSION}")
            dialect = next(dialect for dialect in DIALECTS if dialect == stored.dialect)
            shape = stored.n_states, stored.n_classes + 1
            automaton = Automaton(
                np.frombuffer(stored.transitions, "<u2").reshape(shape).astype(np.uint16),
                np.frombuffer(stored.class_index, "<u2").reshape(_N_PAGES).astype(np.uint16),
                np.frombuffer(stored.class_pages, np.uint8).reshape(-1, 256).copy(),
                np.frombuffer(stored.sync, np.uint8).reshape(stored.n_classes, stored.n_classes) != 0,
                stored.pattern,
                dialect,
                stored.unicode_version,
                None if stored.context is None else Context.from_bytes(*stored.context),
            )
        except (msgspec.MsgspecError, StopIteration, ValueError) as error:
            raise TokenizerFileError(f"a damaged compiled pattern: {error}") from error
        targets = automaton.transitions & DEAD
        context = automaton.context
        n_classes = stored.n_classes if context is None else len(context.behind) - 1
        if (
            not automaton.n_states
            or (targets[targets != DEAD] >= automaton.n_states).any()
            or (targets[:, -1] != DEAD).any()
            or (automaton.class_index >= len(automaton.class_pages)).any()
            or (automaton.class_pages >= n_classes).any()
            or (context is not None and not context.leads_inside(stored.n_classes + 1))
        ):
            raise TokenizerFileError("a damaged compiled pattern: its tables have indices out of range")
        return automaton
