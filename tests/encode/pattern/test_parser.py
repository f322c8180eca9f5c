"""The subset of patterns that is read, checked on the engines, and the errors for the rest."""

from __future__ import annotations

import string

import pytest
import tiktoken
from case_tables import cases
from tokenizers import Regex, pre_tokenizers

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.pattern.compile import build
from tokenweir.encode.reference import find_pieces

CASES = cases(__file__)

DIALECTS = ["oniguruma", "fancy-regex"]
PROBE = (
    "".join(map(chr, range(0x250)))
    + "\u0301\u0345\u0660\u1e9e\u200c\u2028\u212a\u24b6\u3007\u4e00\u9fa5\ufb05\U0001e900"
)
BOTH_READ = r"""
\n \r \t \f \v \a \e \s \S \d \D \w \W . [\s] [\S] [\d] [\D] [\w] [\W] [^\w] [\wa] [^\W]
\x41 \x{4e00} \x{E9} \u4e00 [\u4e00-\u9fa5] [\x00-\x1f] [\n-\r]
\p{L} \P{L} \p{^L} \P{^L} \p{Han} \p{Canadian_Aboriginal} [\p{Lu}\p{Nd}_] [^\P{L}]
] } - & ~ [a-] [-a] [a-c-] [^-] [a^] [a|b()*+?.$] [a&b] [\]\\\-\^] [!-/:-~]
[a[bc]d] [^a[^b]] [a-e&&c-g] [^a-e&&c-g] [a-z&&[^aeiou]&&b-f] [ab&&b-d&&&] [[a-c][x-z]&&[b-y]]
(?i:s) (?i:k) (?i:[a-z]) (?i:x|[0-9]) (?i:\.) (?i:\s) (?i:\d) (?i:[i-k])
"""


def kept_by_oniguruma(pattern, text):
    pieces = pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str(text)
    dropped = "".join(piece for piece, _ in pieces)
    return [c for c in text if c not in dropped]


def kept_by_fancy_regex(pattern, text):
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("probe", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return list(bytes(encoding.encode_ordinary(text)).decode())


ENGINE = {"oniguruma": kept_by_oniguruma, "fancy-regex": kept_by_fancy_regex}


def kept(pattern, dialect, text):
    return [text[start:end] for start, end, is_gap in find_pieces(build(pattern, dialect), text) if not is_gap]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("pattern", BOTH_READ.split())
def test_one_symbol_patterns_mean_what_the_engine_says(pattern, dialect):
    assert kept(pattern, dialect, PROBE) == ENGINE[dialect](pattern, PROBE)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_escaped_punctuation_means_itself(dialect):
    for character in string.punctuation + " ":
        for pattern in ("\\" + character, f"[\\{character}]"):
            if dialect == "fancy-regex" and character in "<>":
                with pytest.raises(UnsupportedTokenizerError, match="the word boundary"):
                    build(pattern, dialect)
            else:
                assert kept(pattern, dialect, string.printable) == [character]
                assert ENGINE[dialect](pattern, string.printable) == [character]


@pytest.mark.parametrize(
    ("pattern", "kept_characters"),
    [
        (r"(?i:\p{Lu})", "aA\u00e9"),
        (r"(?i:[^s])", "t\u00df"),
        (r"(?i:\u00df)", "\u00df\u1e9e"),
        ("(?i:\u00e9)", "\u00e9\u00c9"),
    ],
)
def test_fancy_regex_folds_more_than_oniguruma_is_trusted_with(pattern, kept_characters):
    text = kept_characters + ("sS\u017f" if "^" in pattern else "1!")
    assert kept(pattern, "fancy-regex", text) == ENGINE["fancy-regex"](pattern, text) == list(kept_characters)
    with pytest.raises(UnsupportedTokenizerError, match=r"under \(\?i:\)"):
        build(pattern, "oniguruma")


def test_long_s_is_a_contraction_and_the_kelvin_sign_is_no_letter_of_one():
    automaton = build(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", "oniguruma")
    for text, matches in {"'S": True, "'\u017f": True, "'\u212a": False, "'rE": True, "'l": False}.items():
        assert find_pieces(automaton, text) == [(0, len(text), not matches)]


@pytest.mark.parametrize(("pattern", "message"), CASES["outside_the_subset"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_outside_the_subset_is_refused_by_name_and_place(pattern, message, dialect):
    with pytest.raises(UnsupportedTokenizerError) as error:
        build(pattern, dialect)
    assert str(error.value) == f"pattern {pattern!r} ({dialect}): {message} is not supported"


@pytest.mark.parametrize(("pattern", "message"), CASES["only_oniguruma"])
def test_what_only_oniguruma_reads_in_its_own_way_is_refused_there(pattern, message):
    with pytest.raises(UnsupportedTokenizerError) as error:
        build(pattern, "oniguruma")
    assert str(error.value) == f"pattern {pattern!r} (oniguruma): {message} is not supported"


@pytest.mark.parametrize(("pattern", "message"), CASES["malformed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_no_regular_expression_is_called_malformed(pattern, message, dialect):
    with pytest.raises(TokenizerFileError) as error:
        build(pattern, dialect)
    assert str(error.value) == f"pattern {pattern!r} ({dialect}) is malformed: {message}"


@pytest.mark.parametrize("pattern", ["a*", r"\s*|a", "(?:a|)", r"(?!\S)", "$", "", "a||b", "(?=a)"])
@pytest.mark.parametrize("dialect", ["fancy-regex", "tokenizers"])
def test_a_pattern_that_can_match_nothing_is_refused_but_in_oniguruma(pattern, dialect):
    assert find_pieces(build(pattern, "oniguruma"), "ab")
    with pytest.raises(UnsupportedTokenizerError, match="it can match the empty string, which is not supported"):
        build(pattern, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_conditions_in_a_row_hold_together_at_the_end_of_the_text(dialect):
    automaton = build("x(?=(?!a)(?=b))|y(?=(?!a)(?!b))", dialect)
    for text, matches in {"x": False, "xb": True, "xa": False, "y": True, "yb": False, "ya": False}.items():
        assert find_pieces(automaton, text)[0] == (0, 1 if matches else len(text), not matches), text


def test_a_long_pattern_is_quoted_in_part():
    with pytest.raises(UnsupportedTokenizerError) as error:
        build("ab" * 200 + "\\h", "oniguruma")
    assert str(error.value).startswith(
        f"pattern {'ab' * 100!r}... (402 characters) (oniguruma): the escape \\h, at character 400,"
    )


def test_an_unknown_dialect_is_refused():
    with pytest.raises(ValueError, match="dialect must be one of oniguruma, fancy-regex"):
        build("a", "pcre")
