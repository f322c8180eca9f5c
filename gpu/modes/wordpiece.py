"""Exact mode for WordPiece as BERT has it.

`BertNormalizer` and `BertPreTokenizer` look at one character at a time: it is removed, is a space, is a word by itself,
or is replaced by one character of a word. A table of this is computed by normalizing all of Unicode once. Some
characters become several, and some combining marks may be reordered: a document with one of these is left to the CPU.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.components.added_tokens import is_control
from tokenweir.encode.components.normalize import normalizer_core
from tokenweir.encode.components.pre_tokenize import pre_tokenizer_core
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import BertNormalizer, BertPreTokenizer, WordPiece
from tokenweir.encode.tokenizer import Tokenizer, core_of
from tokenweir.gpu.device import Device
from tokenweir.gpu.modes.batch import Batch
from tokenweir.gpu.modes.exact import ExactMode
from tokenweir.gpu.modes.tables import SearchTables, paged
from tokenweir.gpu.shared import constants, fields

_CONSTANTS = constants("wordpiece.cu")
_WORD, _ALONE, _SPACE, _REMOVED, _HOST_ONLY = (
    _CONSTANTS[kind] for kind in ("kWord", "kAlone", "kSpace", "kRemoved", "kHostOnly")
)

CODE_POINTS = 0x110000
_SURROGATES = slice(0xD800, 0xE000)
_MARKS = "\u302e\U0001d165"  # which no normalizer removes; in Unicode's order the second comes first


class WordPieceMode(ExactMode):
    """`ExactMode` for WordPiece with BERT's pre-tokenizer, with or without BERT's normalizer.

    `max_bytes` is the most bytes of a run of characters that normalization removes.
    """

    def _load(self) -> None:
        self._tables = _WordPieceTables(self.tokenizer, self._device)

    def begin(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Batch:
        searches = self._tables.added if parse_special else []
        batch = Batch(self._device, text, offsets, self.max_bytes, bit_maps=3)
        begins = batch.mark()
        batch.find_added(searches, guards)
        blocks = -(-int(batch.n) // _CONSTANTS["kTile"])
        given = self._tables.words, *batch.source, begins, batch.taken, batch.max_bytes
        batch.launch("encode_words", blocks, *given, batch.ids, batch.tokens, *batch.refusing)
        return batch.count()


class _WordPieceTables(SearchTables):
    """The tables of added tokens, of characters, and of the model.

    Attributes:
        words: The struct `WordPieceTables` of wordpiece.cu, on the device: the characters and the model.

    """

    def __init__(self, tokenizer: Tokenizer, device: Device) -> None:
        model, spec = core_of(tokenizer).model, tokenizer.spec.model
        if not isinstance(model, _core.WordPiece) or not isinstance(spec, WordPiece):
            raise UnsupportedTokenizerError(f"exact mode: the model is not WordPiece: {spec!r:.60}")
        super().__init__(tokenizer, device)
        entries = characters(tokenizer)
        _check_control(tokenizer, spec, entries >> _CONSTANTS["kKindShift"])
        pages, index = paged(entries.reshape(-1, 256))
        units, root, below_prefix = _core.device_trie(model)
        self.words = self._struct(
            fields("wordpiece.cu", "WordPieceTables"),
            {
                "index": index,
                "pages": pages,
                "units": units,
                "root": root,
                "below_prefix": below_prefix,
                "unknown": spec.vocab[spec.unk_token],
                "max_chars": min(spec.max_input_chars_per_word, 1 << 30),
            },
        )


def characters(tokenizer: Tokenizer) -> NDArray[np.uint32]:
    """Return what BERT's normalizer and pre-tokenizer do to each code point, as kernels read it.

    An entry has in its low 24 bits the character that replaces the code point, and above them its kind, by the enumeration
    `Kind` of kernels/wordpiece.cu: part of a word, a word by itself, a space, removed, or left to the CPU.

    Raises:
        UnsupportedTokenizerError: The normalizer or the pre-tokenizer is not BERT's.

    """
    spec = tokenizer.spec
    if not isinstance(spec.normalizer, BertNormalizer | None):
        raise UnsupportedTokenizerError(f"exact mode: the normalizer {spec.normalizer!r:.200} before WordPiece")
    if not isinstance(spec.pre_tokenizer, BertPreTokenizer):
        raise UnsupportedTokenizerError(f"exact mode: the pre-tokenizer {spec.pre_tokenizer!r:.200} before WordPiece")
    if core_of(tokenizer).normalized.tokens and spec.normalizer is not None:
        raise UnsupportedTokenizerError("exact mode: added tokens of normalized text before WordPiece")
    return _entries(spec.normalizer)


@lru_cache(maxsize=4)
def _entries(bert: BertNormalizer | None) -> NDArray[np.uint32]:
    """Compute the result of `characters` for a normalizer, or for no normalizer. The result is cached."""
    every = np.delete(np.arange(CODE_POINTS, dtype=np.uint32), _SURROGATES)
    between = np.full(2 * len(every) + 1, ord("a"), np.uint32)  # marks do not compose with an "a", nor move across it
    between[1::2] = every
    normalizer = normalizer_core(bert)
    normal, origin = normalizer.normalize_with_origin(between.tobytes().decode("utf-32-le"))
    made = np.frombuffer(normal.encode("utf-32-le"), np.uint32)
    own = origin[:, 0] % 2 == 1
    made, source = made[own], every[origin[own, 0] // 2]

    kinds = _kinds()[made]
    count = np.bincount(source, minlength=CODE_POINTS)
    solid = np.bincount(source, kinds != _SPACE, minlength=CODE_POINTS).astype(np.int64)
    first = np.zeros(CODE_POINTS, np.int64)
    first[source[::-1]] = np.arange(len(source))[::-1]  # of what a character becomes, in `made`
    alone = (
        (count == 3) & (solid == 1) & (kinds[np.minimum(first + 1, len(kinds) - 1)] != _SPACE)
    )  # spaces on both sides
    place = np.minimum(first + alone, len(made) - 1)
    kind = np.where(alone, _ALONE, np.where(count == 1, kinds[place], _HOST_ONLY))
    kind[solid == 0] = _SPACE
    kind[count == 0] = _REMOVED
    if normalizer.normalize(_MARKS) != _MARKS:  # it decomposes, and so reorders the marks that it keeps
        kind[(_core.combining_ranks() > 0) & (kind != _REMOVED)] = _HOST_ONLY
    kind[_SURROGATES] = _HOST_ONLY
    entries: NDArray[np.uint32] = (kind << _CONSTANTS["kKindShift"] | np.where(kind <= _ALONE, made[place], 0)).astype(
        np.uint32
    )
    entries.flags.writeable = False
    return entries


def _kinds() -> NDArray[np.int64]:
    """Return for each code point what BERT's pre-tokenizer makes of it, as a value of `Kind` of kernels/wordpiece.cu.

    It is part of a word, a word by itself, or a space.
    """
    core, (automaton,), *_ = pre_tokenizer_core(BertPreTokenizer(), takes_bytes=False)
    classes = automaton.class_pages[automaton.class_index].ravel()
    kinds = np.zeros(automaton.n_classes, np.int64)
    for number in range(automaton.n_classes):
        member = np.flatnonzero(np.delete(classes, _SURROGATES) == number)[0]
        member += (member >= _SURROGATES.start) * (_SURROGATES.stop - _SURROGATES.start)
        pieces = core.pieces(f"a{chr(member)}a")
        kinds[number] = {1: _WORD, 2: _SPACE, 3: _ALONE}[len(pieces)]
    return kinds[classes]


def _check_control(tokenizer: Tokenizer, model: WordPiece, kinds: NDArray[Any]) -> None:
    """Raise `UnsupportedTokenizerError` if the model can encode ordinary text to a control token.

    The kernels do not check for this. `kinds` are the kinds of all code points, as in the entries of `characters`.
    """
    for content in (token.content for token in tokenizer.added_tokens if is_control(token)):
        if content not in model.vocab or content == model.unk_token:
            continue
        found = {int(kinds[ord(c)]) for c in content.removeprefix(model.continuing_subword_prefix)}
        if found <= {_WORD} or (len(content) == 1 and found == {_ALONE}):
            raise UnsupportedTokenizerError(f"exact mode: the control token {content!r:.60} may be made of text")
