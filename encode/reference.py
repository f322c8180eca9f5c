r"""Byte-level BPE in plain Python: the whole way from text to ids, to be read first, and the oracle of tests.

    encoder = ReferenceEncoder(Tokenizer.default().spec)
    encoder.encode("a weir holds a river back")

Three steps: a pattern cuts the text into pieces (`find_pieces`), each piece becomes single bytes, and neighbouring tokens are
merged, the pair of lowest priority first (`merge`). The core (`encode/core`) gives the same ids by other means, some thousand
times as fast; docs/explanation/encoding.md describes those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from tokenweir.encode._core import byte_alphabet
from tokenweir.encode.components.pre_tokenize import GPT2_PATTERN
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.pattern import Automaton, compile_pattern
from tokenweir.encode.pattern.determinize import DEAD, GAP, MATCH
from tokenweir.encode.spec import BPE, ByteLevel, RankBPE, Split, TokenizerSpec
from tokenweir.encode.spec.parts import parts
from tokenweir.encode.spec.pre_tokenizers import SinglePreTokenizer

Priority = Callable[[tuple[bytes, bytes]], int | None]
"""Function that returns the priority of merging two neighbouring tokens, the lowest first; None if they do not merge."""


def find_pieces(automaton: Automaton, text: str) -> list[tuple[int, int, bool]]:
    """Cut a text at the matches of a compiled pattern.

    A walk reads one character a step and remembers the last place at which a match could end. When no longer match is
    possible, the piece ends there, and the next walk begins.

    Returns:
        (start, end, is_gap) of every piece, in characters; the pieces cover the text. Adjacent characters that the
        pattern does not match are one gap, as in HuggingFace's `Split` with behavior `isolated`.

    """
    table = automaton.transitions.tolist()
    classes = automaton.classes(text).tolist()
    symbols = [*classes, automaton.n_classes] if automaton.context is None else automaton.context.read(classes)
    pieces: list[tuple[int, int, bool]] = []
    start = 0
    while start < len(text):
        state, at, end, is_gap = 0, start, start, False
        while state != DEAD:
            cell = table[state][symbols[at]]
            if cell & MATCH:
                end, is_gap = at, bool(cell & GAP)
            state = cell & DEAD
            at += 1
        matches_empty = end == start  # an empty match consumes nothing, and splits the gap that it stands in
        if matches_empty:
            end, is_gap = start + 1, True
        if is_gap and pieces and pieces[-1][2] and not matches_empty:
            pieces[-1] = (pieces[-1][0], end, True)
        else:
            pieces.append((start, end, is_gap))
        start = end
    return pieces


def merge(piece: bytes, priority: Priority) -> list[bytes]:
    """Merge the bytes of a piece: the pair of lowest priority, the leftmost of equals, until no pair merges."""
    tokens = [bytes([byte]) for byte in piece]
    while True:
        pairs = [(rank, i) for i, pair in enumerate(pairwise(tokens)) if (rank := priority(pair)) is not None]
        if not pairs:
            return tokens
        _, i = min(pairs)
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]


class ReferenceEncoder:
    """Encoder of one byte-level BPE tokenizer. It matches no added tokens and adds none."""

    def __init__(self, spec: TokenizerSpec) -> None:
        """Read the tokens, the merges and the patterns of a tokenizer.

        Raises:
            UnsupportedTokenizerError: The tokenizer has a normalizer, or is not byte-level BPE.

        """
        if spec.normalizer is not None:
            raise UnsupportedTokenizerError(f"the reference encoder has no normalizer {spec.normalizer}")
        self._cuts = [cut for part in parts(spec.pre_tokenizer) if (cut := _cut(part)) is not None]
        self._ids: Mapping[bytes, int]
        model = spec.model
        match model:
            case BPE(vocab=vocab):
                value = {letter: byte for byte, letter in enumerate(byte_alphabet())}
                spelled = {token: bytes(map(value.get, token)) for token in vocab if value.keys() >= set(token)}  # type: ignore[arg-type]
                self._ids = {content: vocab[token] for token, content in spelled.items()}
                pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in model.merges)
                ranks = {(spelled[left], spelled[right]): rank for rank, (left, right) in enumerate(pairs)}
                self._priority: Priority = ranks.get
            case RankBPE(ranks=ids):
                self._ids = ids
                self._priority = lambda pair: ids.get(pair[0] + pair[1])
            case _:
                raise UnsupportedTokenizerError(f"the reference encoder has no model {type(model).__name__}")
        self._takes_tokens_whole = model.ignore_merges

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, as `Tokenizer.encode` does with `add_special_tokens=False, parse_special=False`."""
        pieces = [text]
        for automaton, keeps_gaps in self._cuts:
            cuts = [(piece, cut) for piece in pieces for cut in find_pieces(automaton, piece)]
            pieces = [piece[start:end] for piece, (start, end, is_gap) in cuts if keeps_gaps or not is_gap]
        return [self._ids[token] for piece in pieces for token in self._tokens(piece.encode())]

    def _tokens(self, piece: bytes) -> list[bytes]:
        if self._takes_tokens_whole and piece in self._ids:
            return [piece]
        return merge(piece, self._priority)


def _cut(part: SinglePreTokenizer) -> tuple[Automaton, bool] | None:
    """Return the pattern of a pre-tokenizer's part, and whether the text between its matches is kept; None if it cuts nowhere."""
    match part:
        case Split(behavior="Isolated", invert=False) if part.pattern.Regex is not None:
            return compile_pattern(part.pattern.Regex, part.dialect), part.unmatched == "keep"
        case ByteLevel(add_prefix_space=False):
            return (compile_pattern(GPT2_PATTERN, "oniguruma"), True) if part.use_regex else None
        case _:
            raise UnsupportedTokenizerError(f"the reference encoder has no pre-tokenizer {part}")
