"""Build the core's normalizer from the spec's."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterator
from typing import assert_never

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.pattern import Automaton, check_all, compile_pattern
from tokenweir.encode.spec import (
    NFC,
    NFD,
    NFKC,
    NFKD,
    BertNormalizer,
    Lowercase,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    SentencePieceNormalizer,
    StripAccents,
    StripSpace,
)
from tokenweir.encode.spec.normalizers import SingleNormalizer
from tokenweir.encode.spec.parts import parts

MAX_STEPS = 32
"""The most steps of a normalizer; real ones have up to 8."""

TEXT_BEGINS = (r"(?<!\n)^", r"\A")
"""The expressions that match the beginning of a text only: to replace it is to prepend. (Alone, Oniguruma's `^` is that of a
line.)"""


def normalizer_core(normalizer: Normalizer | None) -> _core.Normalizer:
    """Build the core's normalizer from a spec's; None builds one that changes nothing.

    Raises:
        UnsupportedTokenizerError: A normalizer, or its pattern, is not reproduced exactly.
        TokenizerFileError: A pattern is not a regular expression.

    """
    steps: list[_core.NormalizerStep] = []
    automata: list[Automaton] = []
    unaligned = False  # behind a Replace of TEXT_BEGINS most steps of the library fail, and Strip misplaces offsets
    part: SingleNormalizer
    for part in parts(normalizer):
        if unaligned and not isinstance(part, Replace | Prepend):
            raise UnsupportedTokenizerError(
                f"normalizer: {type(part).__name__} after a Replace of the beginning of a text"
            )
        unaligned = unaligned or (isinstance(part, Replace) and part.pattern.Regex in TEXT_BEGINS)
        steps += _steps(part, automata)
        if len(steps) > MAX_STEPS:
            raise UnsupportedTokenizerError(f"normalizer: a Sequence of more than {MAX_STEPS} steps")
    return _core.Normalizer(steps)


def _steps(normalizer: SingleNormalizer, automata: list[Automaton]) -> Iterator[_core.NormalizerStep]:
    step = _core.NormalizerStep
    match normalizer:
        case NFC() | NFD() | NFKC() | NFKD():
            yield step.normal_form(type(normalizer).__name__)
        case Lowercase():
            yield step.character_map(["lowercase"])
        case StripAccents():
            yield step.character_map(["strip_accents"])
        case StripSpace(left, right):
            yield step.strip(left, right)
        case Prepend(content):
            if not content:  # the library's alignment fails, and with it any later step
                raise UnsupportedTokenizerError("normalizer: a Prepend of the empty string")
            yield step.prepend(content)
        case Replace():
            yield _replace(normalizer, automata)
        case BertNormalizer():
            yield from _bert(normalizer)
        case Precompiled(charsmap):
            yield _core.Precompiled(charsmap_of(charsmap))
        case SentencePieceNormalizer():
            yield _core.SentencePieceText(
                normalizer.charsmap,
                normalizer.user_defined,
                add_dummy_prefix=normalizer.add_dummy_prefix,
                remove_extra_whitespaces=normalizer.remove_extra_whitespaces,
                escape_whitespaces=normalizer.escape_whitespaces,
                suffix=normalizer.suffix,
            )
        case _:
            assert_never(normalizer)


def charsmap_of(charsmap: str) -> bytes:
    """Decode the base64 character map of a `Precompiled` normalizer; raise `TokenizerFileError` for invalid base64."""
    try:
        return a2b_base64(charsmap, strict_mode=True)
    except ValueError as error:
        raise TokenizerFileError(f"normalizer: precompiled_charsmap: {error}") from error


def _replace(replace: Replace, automata: list[Automaton]) -> _core.NormalizerStep:
    if replace.pattern.String is not None:
        if not replace.pattern.String:
            raise UnsupportedTokenizerError("normalizer: a Replace of the empty string")
        return _core.NormalizerStep.replace_string(replace.pattern.String, replace.content)
    if replace.pattern.Regex in TEXT_BEGINS and replace.content:
        return _core.NormalizerStep.prepend(replace.content, aligned=False)
    # Other empty matches make the library's alignment fail, and with it any later step.
    automaton = compile_pattern(replace.pattern.Regex or "", "oniguruma")
    automata.append(automaton)
    check_all(automata)
    if automaton.matches_empty:
        raise UnsupportedTokenizerError(
            f"normalizer: a Replace of {replace.pattern.Regex!r:.60}, which can match the empty string"
        )
    return _core.NormalizerStep.replace_pattern(automaton.in_core(), replace.content)


def _bert(bert: BertNormalizer) -> Iterator[_core.NormalizerStep]:
    """Yield the steps of BERT's normalizer that are on.

    In order: remove control characters, put spaces around Chinese characters, remove accents (after decomposing the text),
    lower the case.
    """
    strip_accents = bert.lowercase if bert.strip_accents is None else bert.strip_accents
    before = ["bert_clean_text"] * bert.clean_text + ["bert_chinese_chars"] * bert.handle_chinese_chars
    after = ["lowercase"] * bert.lowercase
    if strip_accents:
        yield _core.NormalizerStep.character_map(before)
        yield _core.NormalizerStep.normal_form("NFD")
        after.append("bert_strip_accents")
        before = []
    yield _core.NormalizerStep.character_map(before + after)
