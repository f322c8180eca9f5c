r"""Build the core's pre-tokenizer from the spec's.

The core runs stages. A stage splits text, by an automaton and one of HuggingFace's behaviors, or it changes text. Each
component of HuggingFace's library becomes one to three stages. Components without a pattern of their own get one here, in
the dialect "tokenizers". Patterns without gaps are preferred, because a gap is walked character by character.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple, assert_never

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.pattern import Automaton, check_all, compile_pattern
from tokenweir.encode.pattern.families import recognized
from tokenweir.encode.pattern.source import Dialect
from tokenweir.encode.spec import (
    BertPreTokenizer,
    ByteLevel,
    CharDelimiterSplit,
    Digits,
    Metaspace,
    PreTokenizer,
    Punctuation,
    Split,
    SplitBehavior,
    Whitespace,
    WhitespaceSplit,
)
from tokenweir.encode.spec.parts import parts
from tokenweir.encode.spec.pre_tokenizers import SinglePreTokenizer

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern of `ByteLevel(use_regex=true)`."""

MAX_STAGES = 32
"""The most stages of a pre-tokenizer; real ones have up to 8."""

MAX_GROWTH = 256
"""The greatest factor by which all stages may lengthen a text; real ones have 4."""

Alphabet = Literal["bytes", "letters", "text"]


class PreTokenization(NamedTuple):
    """The stages of a pre-tokenizer, and the form of its pieces.

    Attributes:
        core: The core's pre-tokenizer, which runs the stages.
        automata: The automata of the stages that split, in order.
        alphabet: `bytes`: pieces are bytes, and a byte-level model applies GPT-2's byte alphabet itself (pieces may then
            begin and end inside a character). `letters`: pieces are spelled in the alphabet. `text`: without `ByteLevel`.
        by_characters: Each single character decides whether there is a cut beside it: white space and, for BERT,
            punctuation.
        isolates: The stages only split, and every match and gap is a piece: the concatenated pieces are the text.

    """

    core: _core.PreTokenizer
    automata: tuple[Automaton, ...]
    alphabet: Alphabet
    by_characters: bool
    isolates: bool


class _Cut(NamedTuple):
    pattern: str
    dialect: Dialect
    behavior: SplitBehavior = "Isolated"
    inverted: bool = False


_MATCHES_ONLY: tuple[SplitBehavior, bool] = ("Removed", True)

_Stage = _Cut | _core.PreTokenizerStage


def pre_tokenizer_core(pre_tokenizer: PreTokenizer | None, *, takes_bytes: bool) -> PreTokenization:
    """Build the stages of a pre-tokenizer.

    Args:
        pre_tokenizer: The pre-tokenizer of the spec; None keeps the text in one piece.
        takes_bytes: Whether the model can encode bytes, so that pieces need not be spelled in GPT-2's byte alphabet.

    Raises:
        UnsupportedTokenizerError: A construct is not reproduced exactly.
        TokenizerFileError: A component has an invalid value.

    """
    first, second, *more = (*islice(parts(pre_tokenizer), 3), None, None)
    by_characters = isinstance(first, WhitespaceSplit | BertPreTokenizer) and isinstance(second, Metaspace | None)
    stages = _checked(parts(pre_tokenizer))
    spelled = [i for i, stage in enumerate(stages) if isinstance(stage, _core.Spell)]
    alphabet: Alphabet = "letters" if spelled else "text"
    if takes_bytes and spelled and all(isinstance(stage, _Cut) for stage in stages[spelled[-1] + 1 :]):
        alphabet = "bytes"
        if spelled[-1] == len(stages) - 1:
            stages.pop()
        else:
            stages.append(_core.Unspell())
    automata: list[Automaton] = []
    core: list[_core.PreTokenizerStage] = []
    isolates = True
    for stage in stages:
        if isinstance(stage, _Cut):
            automaton = compile_pattern(stage.pattern, stage.dialect)
            automata.append(automaton)
            check_all(automata)
            drops_nothing = (stage.behavior, stage.inverted) == _MATCHES_ONLY and not automaton.has_gaps
            keeps_all = stage.behavior == "Isolated" or drops_nothing
            isolates &= keeps_all
            family = recognized(automaton) if keeps_all and os.environ.get("TOKENWEIR_SCANNER") != "none" else None
            stage = _core.Split(automaton.in_core(), stage.behavior, stage.inverted, family)
        else:
            isolates = False
        core.append(stage)
    return PreTokenization(
        _core.PreTokenizer(core), tuple(automata), alphabet, by_characters and not any(more), isolates
    )


def _checked(parts: Iterable[SinglePreTokenizer]) -> list[_Stage]:
    """Return the stages of all parts of a pre-tokenizer.

    Raise `UnsupportedTokenizerError` if they are too many, or may lengthen a text too much.
    """
    stages: list[_Stage] = []
    growth = 1
    for part in parts:
        stages += _stages(part)
        if len(stages) > MAX_STAGES:
            raise UnsupportedTokenizerError(f"pre_tokenizer: a Sequence of more than {MAX_STAGES} stages")
        growth *= _growth(part)
        if growth > MAX_GROWTH:
            raise UnsupportedTokenizerError(
                f"pre_tokenizer: it may make a text {growth} times as long; at most {MAX_GROWTH} times is possible"
            )
    return stages


def _growth(part: SinglePreTokenizer) -> int:
    """Return the greatest factor by which a part of a pre-tokenizer may lengthen a text, in bytes."""
    match part:
        case ByteLevel(add_prefix_space=add_prefix_space):  # two bytes for one, and a space before each piece
            return 4 if add_prefix_space else 2
        case Metaspace(replacement=replacement, prepend_scheme=scheme):
            return len(replacement.encode()) + (scheme == "always")
        case Split() | Digits() | Punctuation() | Whitespace() | WhitespaceSplit():
            return 1
        case BertPreTokenizer() | CharDelimiterSplit():
            return 1
        case _:
            assert_never(part)


def _stages(part: SinglePreTokenizer) -> Iterator[_Stage]:
    match part:
        case Split():
            yield _split(part)
        case ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex):
            if add_prefix_space:
                yield _core.Spaces(" ", "always")
            if use_regex:
                yield _Cut(GPT2_PATTERN, "oniguruma")
            yield _core.Spell()
        case Metaspace():
            yield from _metaspace(part)
        case Digits(individual_digits=individual):
            yield _Cut(r"[^\p{numeric}]+|\p{numeric}" + "+" * (not individual), "tokenizers")
        case Punctuation(behavior=behavior):
            yield _punctuation(behavior)
        case Whitespace():
            yield _Cut(r"\w+|[^\w\s]+", "fancy-regex", *_MATCHES_ONLY)
        case WhitespaceSplit():
            yield _Cut(r"\S+", "fancy-regex", *_MATCHES_ONLY)
        case BertPreTokenizer():
            yield _Cut(r"[^\s\p{punctuation}]+|\p{punctuation}", "tokenizers", *_MATCHES_ONLY)
        case CharDelimiterSplit(delimiter=delimiter):
            yield _Cut(_others(_character(delimiter, "CharDelimiterSplit's delimiter")), "tokenizers", *_MATCHES_ONLY)
        case _:
            assert_never(part)


def _split(part: Split) -> _Cut:
    regex, string = part.pattern.Regex, part.pattern.String
    if (regex is None) == (string is None):
        raise TokenizerFileError("pre_tokenizer: a Split whose pattern is not one of Regex and String")
    pattern = regex if regex is not None else _literal(string or "")
    if part.unmatched == "keep":
        return _Cut(pattern, part.dialect, part.behavior, part.invert)
    if part.behavior != "Isolated" or part.invert:
        raise UnsupportedTokenizerError(
            f"pre_tokenizer: a Split with behavior {part.behavior!r}{' inverted' * part.invert} that drops what it does"
            " not match"
        )
    return _Cut(pattern, part.dialect, *_MATCHES_ONLY)


def _punctuation(behavior: SplitBehavior) -> _Cut:
    match behavior:
        case "Isolated":
            return _Cut(r"[^\p{punctuation}]+|\p{punctuation}", "tokenizers")
        case "Contiguous":
            return _Cut(r"[^\p{punctuation}]+|\p{punctuation}+", "tokenizers")
        case "Removed":
            return _Cut(r"[^\p{punctuation}]+", "tokenizers", *_MATCHES_ONLY)
        case "MergedWithPrevious" | "MergedWithNext":
            return _Cut(r"\p{punctuation}", "tokenizers", behavior)
        case _:
            assert_never(behavior)


def _metaspace(part: Metaspace) -> Iterator[_Stage]:
    replacement = _character(part.replacement, "Metaspace's replacement")
    if part.add_prefix_space is False and part.prepend_scheme != "never":  # the library refuses it, too
        raise TokenizerFileError(
            f"pre_tokenizer: Metaspace with add_prefix_space = False and prepend_scheme = {part.prepend_scheme!r}"
        )
    yield _core.Spaces(replacement, part.prepend_scheme)
    if part.split:  # cut before each replacement
        yield _Cut(f"{_literal(replacement)}?{_others(replacement)}|{_literal(replacement)}", "tokenizers")


def _character(value: str, what: str) -> str:
    if len(value) != 1:
        raise TokenizerFileError(f"pre_tokenizer: {what} is {value!r:.60}, not one character")
    return value


def _literal(text: str) -> str:
    """Escape a text: return the regular expression that matches exactly this text."""
    return "".join("\\" + c if c in r"\.+*?()|[]{}^$" else c for c in text)


def _others(character: str) -> str:
    """Return the regular expression that matches a run of characters other than this one."""
    return f"[^{_literal(character)}]+"
