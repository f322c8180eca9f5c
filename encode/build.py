"""From a `TokenizerSpec` to the compiled core; what the core cannot do exactly is refused here, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tokenweir.encode import _core
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.pattern import Automaton
from tokenweir.encode.pattern.code_points import CodePoints
from tokenweir.encode.pre_tokenize import pre_tokenizer_core
from tokenweir.encode.spec import (
    BPE,
    NFC,
    AddedToken,
    Normalizer,
    NormalizerSequence,
    TokenizerSpec,
)
from tokenweir.encode.unicode.categories import word

MAX_IDS = (1 << 20) - 1
"""As many as the core's table of pairs can tell apart (core/hash_table.h); the largest vocabulary known has 262,208."""


class Core(NamedTuple):
    """The compiled objects of one tokenizer."""

    encoder: _core.Encoder
    tokens: _core.TokenBytes
    automata: tuple[Automaton, ...]


def build_core(spec: TokenizerSpec, added: tuple[AddedToken, ...]) -> Core:
    """Build the core.

    Args:
        spec: The tokenizer.
        added: Its added tokens with their real ids.

    Raises:
        UnsupportedTokenizerError: For a construct that is not reproduced exactly.
        TokenizerFileError: If the vocabulary or the merges contradict themselves.

    """
    pre_tokenizer = pre_tokenizer_core(spec.pre_tokenizer, takes_bytes=True)
    if isinstance(spec.model, BPE) and pre_tokenizer.alphabet != "bytes":
        raise UnsupportedTokenizerError("a BPE model whose pre_tokenizer does not end in ByteLevel")
    normalizer = _core.Normalizer([_normalizer_step(step) for step in _normalizers(spec.normalizer)])
    vocabulary = _vocabulary(spec)
    size = max([len(vocabulary), spec.vocab_size or 0, *(t.id + 1 for t in added if t.id is not None)])
    if size > MAX_IDS:
        raise UnsupportedTokenizerError(f"{size} ids; at most {MAX_IDS} fit")
    control = [t.id for t in added if t.special and t.id is not None]
    if isinstance(spec.model, BPE):
        model = _core.Bpe.merges(vocabulary, spec.model.merges, spec.model.ignore_merges, control)
    else:
        model = _core.Bpe.ranks(vocabulary, control)
    # A token that is searched in normalized text also decodes to its normalized content (tokenizers 0.23).
    spelled = [normalizer.normalize(t.content) if t.normalized else t.content for t in added]
    tokens = _core.TokenBytes(vocabulary, [(t.id, s, t.special) for t, s in zip(added, spelled, strict=True)], size)
    encoder = _core.Encoder(
        normalizer,
        pre_tokenizer.core,
        model,
        _searchable((t, s) for t, s in zip(added, spelled, strict=True) if not t.normalized),
        _searchable((t, s) for t, s in zip(added, spelled, strict=True) if t.normalized),
        tokens,
    )
    return Core(encoder, tokens, pre_tokenizer.automata)


def _normalizers(normalizer: Normalizer | None) -> Iterator[Normalizer]:
    if isinstance(normalizer, NormalizerSequence):
        for part in normalizer.normalizers:
            yield from _normalizers(part)
    elif normalizer is not None:
        yield normalizer


def _normalizer_step(step: Normalizer) -> _core.NormalizerStep:
    match step:
        case NFC():
            return _core.NormalForm()
    raise UnsupportedTokenizerError(f"normalizer: {type(step).__name__}")


def _vocabulary(spec: TokenizerSpec) -> _core.Vocabulary:
    model = spec.model
    if not isinstance(model, BPE):
        return _core.Vocabulary.ranks(model.ranks)
    # unk_token, fuse_unk and byte_fallback need no check: every byte is a token, or the core refuses the vocabulary.
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
        if value := getattr(model, name):
            raise UnsupportedTokenizerError(f"model: byte-level BPE with {name} = {value!r}")
    return _core.Vocabulary.byte_level(model.vocab)


def _searchable(tokens: Iterable[tuple[AddedToken, str]]) -> _core.AddedTokens:
    """The matcher for tokens, each with what it is spelled like in the text that is searched."""
    found = [(spelled, t.id, t.single_word, t.lstrip, t.rstrip) for t, spelled in tokens]
    flips: list[int] = []
    if any(single_word for _, _, single_word, _, _ in found):  # Rust's regex decides what a word character is
        flips = CodePoints.from_ranges(word("fancy-regex")).flips.tolist()
    return _core.AddedTokens(found, flips)
