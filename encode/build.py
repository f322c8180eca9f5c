"""Build the compiled core from a `TokenizerSpec`. A construct without an exact counterpart raises an error with its name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, assert_never

import numpy as np

from tokenweir.encode import _core
from tokenweir.encode.components.added_tokens import is_control
from tokenweir.encode.components.decoders import decoding
from tokenweir.encode.components.normalize import normalizer_core
from tokenweir.encode.components.pre_tokenize import PreTokenization, pre_tokenizer_core
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.pattern.code_points import CodePoints
from tokenweir.encode.spec import BPE, AddedToken, Model, RankBPE, SentencePiece, TokenizerSpec, Unigram, WordPiece
from tokenweir.encode.unicode.categories import word

MAX_IDS = (1 << 20) - 1
"""The most ids that fit into the core's table of pairs (core/vocabulary/hash_table.h); the largest known vocabulary has 262,208."""

MAX_ADDED_CHARACTERS = 1 << 24
"""The most characters of all added tokens together, as spelled in the file and as searched for; real files have a million."""


class Core(NamedTuple):
    """The compiled objects of one tokenizer.

    Attributes:
        encoder: The encoder, which matches all added tokens.
        model: The model.
        tokens: The decoded content of every id.
        pre_tokenizer: The pre-tokenizer.
        raw: The matcher for the added tokens that are searched for in original text.
        normalized: The matcher for those that are searched for in normalized text.
        normalizer: The normalizer.
        own: The matcher for control tokens among the model's own pieces.
        added: The added tokens, each with the spelling by which it is searched for if it is matched in normalized text.

    """

    encoder: _core.Encoder
    model: _core.Model
    tokens: _core.TokenBytes
    pre_tokenizer: PreTokenization
    raw: _core.AddedTokens
    normalized: _core.AddedTokens
    normalizer: _core.Normalizer
    own: _core.AddedTokens
    added: tuple[tuple[AddedToken, str], ...]

    def encoder_of(self, tokens: Collection[str]) -> _core.Encoder:
        """Build an encoder that matches only the added tokens with these texts, and whose model yields no control token."""
        raw, normalized = _matchers((token, s) for token, s in self.added if token.content in tokens)
        own, pieces = self.own, self.pre_tokenizer
        parts = (self.normalizer, pieces.core, self.model, raw, normalized, own, self.tokens, pieces.by_characters)
        return _core.Encoder(*parts, guarded=True)


def build_core(
    spec: TokenizerSpec,
    added: tuple[AddedToken, ...],
    own_controls: tuple[str, ...],
    kept: _core.KeptTables | None,
) -> Core:
    """Build the compiled objects of a tokenizer.

    Args:
        spec: The description of the tokenizer.
        added: Its added tokens, with their effective ids.
        own_controls: The model's own pieces that user text must not become (`added_tokens.own_control_texts`).
        kept: The tables of the same tokenizer from the cache (`table_cache.py`); None builds them from the spec.

    Raises:
        UnsupportedTokenizerError: A construct is not reproduced exactly.
        TokenizerFileError: The vocabulary or the merges are inconsistent.

    """
    normalizer = normalizer_core(spec.normalizer)
    takes_bytes = isinstance(spec.model, RankBPE) or _spells_bytes(spec.model)
    pre_tokenizer = pre_tokenizer_core(spec.pre_tokenizer, takes_bytes=takes_bytes)
    byte_level = isinstance(spec.model, BPE) and pre_tokenizer.alphabet == "bytes"
    control = [t.id for t in added if is_control(t) and t.id is not None]
    spelled = _spelled(added, normalizer, {t.content for t in spec.added_tokens if t.normalized})
    how = decoding(spec.decoder, spec.model)
    if kept is None:
        vocabulary = _vocabulary(spec.model, byte_level=byte_level)
        size = max([len(vocabulary), spec.vocab_size or 0, *(t.id + 1 for t in added if t.id is not None)])
        if size > MAX_IDS:
            raise UnsupportedTokenizerError(f"{size} ids; at most {MAX_IDS} fit")
        model = _model(spec.model, vocabulary, control, byte_level=byte_level)
        # `skip_special_tokens` drops tokens by that spelling too.
        control_texts = {t.content for t in added if t.special}
        names = [(t.id, s, s in control_texts) for t, s in zip(added, spelled, strict=True)]
        names.reverse()  # of two that share an id, the first decodes it: the last in this list holds
        tokens = _core.TokenBytes(vocabulary, names, size, *how)
    else:
        model = kept.model(control)
        tokens = kept.token_bytes(*how[:5])
    searched = tuple(zip(added, spelled, strict=True))
    _check_spellings((t, s) for t, s in searched if t.normalized)
    raw, normalized = _matchers(searched)
    own = _searchable((AddedToken(piece, id=0), piece) for piece in own_controls)
    encoder = _core.Encoder(
        normalizer, pre_tokenizer.core, model, raw, normalized, own, tokens, pre_tokenizer.by_characters
    )
    return Core(encoder, model, tokens, pre_tokenizer, raw, normalized, normalizer, own, searched)


def _matchers(tokens: Iterable[tuple[AddedToken, str]]) -> tuple[_core.AddedTokens, _core.AddedTokens]:
    """Build two matchers: for the added tokens that are matched in original text, and for those in normalized text.

    Each token comes with its spelling in normalized text.
    """
    tokens = tuple(tokens)
    raw = _searchable((t, t.content) for t, _ in tokens if not t.normalized)
    return raw, _searchable((t, s) for t, s in tokens if t.normalized)


def _spelled(added: Iterable[AddedToken], normalizer: _core.Normalizer, once_normalized: Collection[str]) -> list[str]:
    """Return the spelling by which each added token is searched for, and to which it decodes.

    A token that is searched for in normalized text also decodes to its normalized content (tokenizers 0.23). So does one
    that was ever listed with that flag, whatever flags it has later.
    """
    spelled: list[str] = []
    total = 0
    for token in added:
        total += len(token.content)
        if total > MAX_ADDED_CHARACTERS:  # before they are normalized, which may make them longer
            break
        spelled.append(normalizer.normalize(token.content) if token.content in once_normalized else token.content)
        total += len(spelled[-1])
    if total > MAX_ADDED_CHARACTERS:
        raise UnsupportedTokenizerError(f"added tokens of more than {MAX_ADDED_CHARACTERS} characters in total")
    return spelled


def _check_spellings(tokens: Iterable[tuple[AddedToken, str]]) -> None:
    """Raise `UnsupportedTokenizerError` for two added tokens whose normalized contents are equal.

    The library finds either, by the order of a hash map.
    """
    owners: dict[str, AddedToken] = {}
    for token, spelled in tokens:
        if (owner := owners.setdefault(spelled, token)) is not token:
            raise UnsupportedTokenizerError(
                f"added tokens {owner.content!r:.60} and {token.content!r:.60} are one spelling in normalized text,"
                f" {spelled!r:.60}"
            )


def _spells_bytes(model: Model) -> bool:
    """Return whether a model is BPE that can encode bytes.

    Every byte that UTF-8 can contain has a token, and no token depends on its place in a piece (by a prefix or suffix).
    """
    if not isinstance(model, BPE) or model.continuing_subword_prefix or model.end_of_word_suffix:
        return False
    letters = _core.byte_alphabet()
    return all(letters[byte] in model.vocab for byte in _core.utf8_bytes())


def _vocabulary(model: Model, *, byte_level: bool) -> _core.Vocabulary:
    match model:
        case RankBPE():
            return _core.Vocabulary.ranks(model.ranks)
        case BPE():
            return _core.Vocabulary.byte_level(model.vocab) if byte_level else _core.Vocabulary.plain(model.vocab)
        case WordPiece():
            return _core.Vocabulary.plain(model.vocab)
        case SentencePiece():
            return _core.Vocabulary.plain(model.pieces)
        case Unigram():
            return _core.Vocabulary.plain([piece for piece, _ in model.vocab])
        case _:
            assert_never(model)


def _model(model: Model, vocabulary: _core.Vocabulary, control: Sequence[int], *, byte_level: bool) -> _core.Model:
    match model:
        case RankBPE():
            return _core.Bpe.ranks(vocabulary, model.ignore_merges, control)
        case BPE():
            if model.dropout:
                raise UnsupportedTokenizerError(f"model: BPE with dropout = {model.dropout!r}")
            if byte_level:  # every byte of text is a token, so unk_token, fuse_unk and byte_fallback are never needed
                return _core.Bpe.merges(vocabulary, model.merges, model.ignore_merges, control)
            return _core.CharacterBpe(
                vocabulary,
                model.merges,
                unk_token=model.unk_token,
                continuing_subword_prefix=model.continuing_subword_prefix or "",
                end_of_word_suffix=model.end_of_word_suffix or "",
                fuse_unk=model.fuse_unk,
                byte_fallback=model.byte_fallback,
                ignore_merges=model.ignore_merges,
                control=control,
            )
        case WordPiece():
            return _core.WordPiece(
                model.vocab, model.unk_token, model.continuing_subword_prefix, model.max_input_chars_per_word, control
            )
        case Unigram():
            pieces = [piece for piece, _ in model.vocab]
            log_probabilities = np.array([score for _, score in model.vocab], np.float64)
            return _core.HuggingFaceUnigram(pieces, log_probabilities, model.unk_id, model.byte_fallback, control)
        case SentencePiece():
            make: type[_core.SentencePieceBpe | _core.SentencePieceUnigram]
            make = _core.SentencePieceBpe if model.algorithm == "BPE" else _core.SentencePieceUnigram
            scores = np.asarray(model.scores, np.float64)
            return make(list(model.pieces), scores, model.types, model.unk_id, model.byte_fallback, control)
        case _:
            assert_never(model)


def _searchable(tokens: Iterable[tuple[AddedToken, str]]) -> _core.AddedTokens:
    """Build the matcher for added tokens, each given with its spelling in the text that is searched."""
    found = [(spelled, t.id, t.single_word, t.lstrip, t.rstrip) for t, spelled in tokens]
    flips: list[int] = []
    if any(single_word for _, _, single_word, _, _ in found):  # word characters are those of Rust's regex
        flips = CodePoints.from_ranges(word("fancy-regex")).flips.tolist()
    return _core.AddedTokens(found, flips)
