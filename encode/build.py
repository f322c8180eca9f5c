"""From a `TokenizerSpec` to the compiled core; what the core cannot do exactly is refused here, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tokenweir.encode import _core
from tokenweir.encode.decoders import decoding
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.normalize import normalizer_core
from tokenweir.encode.pattern import Automaton, compile_pattern
from tokenweir.encode.pattern.code_points import CodePoints
from tokenweir.encode.spec import (
    BPE,
    AddedToken,
    ByteLevel,
    Pattern,
    PreTokenizer,
    PreTokenizerSequence,
    Split,
    TokenizerSpec,
)
from tokenweir.encode.unicode.categories import word

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""What `ByteLevel(use_regex=true)` splits by."""

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
    stages, prefix_space = _stages(spec)
    automata = tuple(compile_pattern(split.pattern.Regex or "", split.dialect) for split in stages)
    normalizer = normalizer_core(spec.normalizer)
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
    # What `skip_special_tokens` drops goes by that spelling too.
    control_texts = {t.content for t in added if t.special}
    tokens = _core.TokenBytes(
        vocabulary,
        [(t.id, s, s in control_texts) for t, s in zip(added, spelled, strict=True)],
        size,
        *decoding(spec.decoder, spec.model, byte_level=True),
    )
    encoder = _core.Encoder(
        normalizer,
        _core.PreTokenizer(
            [
                (a.transitions, a.class_index, a.class_pages, a.n_classes, s.unmatched == "keep")
                for a, s in zip(automata, stages, strict=True)
            ],
            prefix_space,
        ),
        model,
        _searchable((t, s) for t, s in zip(added, spelled, strict=True) if not t.normalized),
        _searchable((t, s) for t, s in zip(added, spelled, strict=True) if t.normalized),
        tokens,
    )
    return Core(encoder, tokens, automata)


def _flat(pre_tokenizer: PreTokenizer | None) -> Iterator[Split | ByteLevel]:
    if isinstance(pre_tokenizer, PreTokenizerSequence):
        for part in pre_tokenizer.pretokenizers:
            yield from _flat(part)
    elif pre_tokenizer is not None:
        yield pre_tokenizer


def _stages(spec: TokenizerSpec) -> tuple[list[Split], bool]:
    """The splits, one after the other, and whether text that does not begin with a space gets one."""
    parts = list(_flat(spec.pre_tokenizer))
    if isinstance(spec.model, BPE) and not (parts and isinstance(parts[-1], ByteLevel)):
        raise UnsupportedTokenizerError("a BPE model whose pre_tokenizer does not end in ByteLevel")
    stages: list[Split] = []
    for i, part in enumerate(parts):
        if isinstance(part, Split):
            if part.pattern.Regex is None:
                raise UnsupportedTokenizerError(f"pre_tokenizer: a Split by the string {part.pattern.String!r}")
            if part.behavior != "Isolated" or part.invert:
                raise UnsupportedTokenizerError(
                    f"pre_tokenizer: a Split with behavior {part.behavior!r}" + " inverted" * part.invert
                )
            stages.append(part)
            continue
        if i != len(parts) - 1:
            raise UnsupportedTokenizerError("pre_tokenizer: something after ByteLevel")
        if part.add_prefix_space and stages:
            raise UnsupportedTokenizerError("pre_tokenizer: ByteLevel with add_prefix_space after a Split")
        if part.use_regex:
            stages.append(Split(pattern=Pattern(Regex=GPT2_PATTERN), behavior="Isolated"))
        return stages, part.add_prefix_space
    return stages, False


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
