"""The compiled pattern: its tables, and their form on disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.pattern.context import Context
from tokenweir.encode.pattern.determinize import GAP, MATCH
from tokenweir.encode.pattern.source import Dialect, shown

_MAGIC = b"tokenweir automaton\n"


class _Array(NamedTuple):
    """An array in a file, row-major."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class _Stored(NamedTuple):
    """The msgpack content of a file after magic and digest: the tables, and those of the context if there is one."""

    pattern: str
    dialect: Dialect
    arrays: tuple[_Array, ...]


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
        context: Unless it is None, walks read its symbols instead of classes, and `transitions` and `sync` are indexed by
            symbols. The last symbol is an end of the text, and others may be.

    """

    transitions: NDArray[np.uint16]
    class_index: NDArray[np.uint16]
    class_pages: NDArray[np.uint8]
    sync: NDArray[np.bool_]
    pattern: str
    dialect: Dialect
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
        arrays: list[NDArray[Any]] = [self.transitions, self.class_index, self.class_pages, self.sync]
        if self.context is not None:
            arrays += [self.context.behind, self.context.transitions, self.context.symbols]
        packed = (_Array(array.dtype.str, array.shape, array.tobytes()) for array in arrays)
        body = msgspec.msgpack.encode(_Stored(self.pattern, self.dialect, tuple(packed)))
        return _MAGIC + hashlib.sha256(body).digest() + body

    @staticmethod
    def from_bytes(data: bytes) -> Automaton:
        """Read what `to_bytes` wrote; raise `TokenizerFileError` for damaged data. The core checks what tables hold."""
        body = data[len(_MAGIC) + 32 :]
        if data != _MAGIC + hashlib.sha256(body).digest() + body:
            raise TokenizerFileError("a damaged compiled pattern: it begins with other bytes, or the digest differs")
        stored = msgspec.msgpack.decode(body, type=_Stored)
        arrays = (np.frombuffer(data, dtype).reshape(shape) for dtype, shape, data in stored.arrays)
        transitions, class_index, class_pages, sync, *rest = arrays
        context = Context(*rest) if rest else None
        return Automaton(transitions, class_index, class_pages, sync, stored.pattern, stored.dialect, context)
