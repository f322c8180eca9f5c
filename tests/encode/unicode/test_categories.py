"""The committed Unicode classes, derived again from the regex engines inside `tokenizers` and `tiktoken`.

Every one of the 1,112,064 scalars is looked up. A category is checked by one match: the string of all its members is a
single match of `\\p{..}+`. Since categories partition the scalars in the table and in the engine alike, that is equality.
"""

from __future__ import annotations

import string

import pytest
import tiktoken
from tokenizers import Regex, pre_tokenizers
from unicode_scalars import SCALARS, SWEPT

from tokenweir.encode.pattern.code_points import CodePoints
from tokenweir.encode.unicode import categories

CATEGORIES = sorted(name[3:] for name in categories._lines() if name.startswith("gc=") and name != "gc=Cs")
SCRIPTS = sorted(name[7:] for name in categories._lines() if name.startswith("script="))


def characters(ranges: categories.Ranges) -> str:
    return "".join(chr(c) for first, last in ranges for c in range(first, last + 1))


def without(*groups: str) -> str:
    """All scalars but these."""
    return SCALARS.translate(dict.fromkeys(map(ord, "".join(groups))))


def is_one_match(pattern: str, text: str) -> bool:
    """Whether Oniguruma matches the whole text at once; `removed` leaves nothing of it then."""
    return not pre_tokenizers.Split(Regex(rf"\A(?:{pattern})+\z"), "removed").pre_tokenize_str(text)


def fancy_regex(pattern: str, text: str = SCALARS) -> str:
    """The characters that fancy-regex matches: tiktoken drops the others."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("probe", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return bytes(encoding.encode_ordinary(text)).decode()


def test_the_probes_can_fail():
    assert is_one_match(r"\p{Lu}", "ABC")
    assert not is_one_match(r"\p{Lu}", "ABc")
    assert fancy_regex(r"\p{Lu}", "ABc") == "AB"


def test_categories_partition_the_scalars():
    members = [characters(categories.property_ranges(name)) for name in CATEGORIES]
    assert sum(map(len, members)) == len(SCALARS) == 1_112_064
    assert without(*members) == ""
    assert categories.property_ranges("Cs") == [(0xD800, 0xDFFF)]


@pytest.mark.parametrize("name", CATEGORIES)
def test_general_categories_are_those_of_both_engines(name):
    members = characters(categories.property_ranges(name))
    assert is_one_match(rf"\p{{{name}}}", members)
    assert fancy_regex(rf"\p{{{name}}}") == members


@pytest.mark.parametrize("name", "LMNPSZ")
def test_one_letter_groups_are_those_of_both_engines(name):
    members = "".join(sorted(characters(categories.property_ranges(name))))
    assert fancy_regex(rf"\p{{{name}}}") == members
    assert is_one_match(rf"\p{{{name}}}", members)
    assert is_one_match(rf"[\p{{{name}}}]", members)
    assert not any(is_one_match(rf"\p{{{name}}}", c) for c in "aA1!+ \u0301" if c not in members)


def test_scripts_partition_what_has_a_script():
    members = [characters(categories.property_ranges(name)) for name in SCRIPTS]
    assert len(SCRIPTS) == 170
    assert sum(map(len, members)) == len(set().union(*members))
    assert is_one_match(r"\p{Unknown}", without(*members))


def test_scripts_are_those_of_both_engines():
    for name in SCRIPTS:
        members = characters(categories.property_ranges(name))
        assert is_one_match(rf"\p{{{name}}}", members), name
        assert fancy_regex(rf"\p{{{name}}}", members) == members, name


def test_names_that_are_no_class():
    assert categories.property_ranges("l") is None
    assert categories.property_ranges("Latn") is None
    assert categories.property_ranges("") is None


def test_white_space_digits_and_word_characters_are_those_of_each_dialect():
    space, digits = characters(categories.white_space()), characters(categories.property_ranges("Nd"))
    fancy, oniguruma = characters(categories.word("fancy-regex")), characters(categories.word("oniguruma"))
    assert (fancy_regex(r"\s"), fancy_regex(r"\d"), fancy_regex(r"\w")) == (space, digits, fancy)
    assert (len(space), len(fancy)) == (25, 144_667)
    assert set(fancy) ^ set(oniguruma) == set("\u00b2\u00b3\u00b9\u00bc\u00bd\u00be\u200c\u200d")
    bracketed = characters(categories.word("oniguruma-bracket"))
    assert set(oniguruma) - set(bracketed) == set("\u00b2\u00b3\u00b9\u00bc\u00bd\u00be")
    assert set(bracketed) < set(oniguruma)
    assert is_one_match(r"[\s&&\W&&\D]", space)
    assert is_one_match(r"[\d&&\w&&\S]", digits)
    assert is_one_match(r"[\w&&\D&&\S]", "".join(sorted(set(bracketed).difference(digits))))
    assert is_one_match(r"\w", oniguruma)
    assert is_one_match(r"\W", space)
    assert is_one_match(r"(?=\W)[^\s\d\w]", without(space, oniguruma))


def test_case_folding_is_that_of_fancy_regex():
    mates: dict[str, set[str]] = {}
    for a, b in categories.fold_pairs().tolist():
        mates.setdefault(chr(a), {chr(a)}).add(chr(b))
    text = "".join(sorted(mates))
    for c in text:
        if min(mates[c]) == c:
            assert set(fancy_regex(f"(?i:{c})", text)) == mates[c], hex(ord(c))
    assert fancy_regex(f"(?i:[{text}])") == text  # nothing else folds to one of these


def test_ascii_letters_fold_in_oniguruma_as_in_fancy_regex():
    for c in string.ascii_lowercase:
        folded = characters_of(CodePoints.of(ord(c)).folded())
        assert is_one_match(f"(?i:{c})", folded)
        assert is_one_match(f"(?i:[{c}])", folded)
        assert is_one_match(f"(?i:[^{c}])", SCALARS[:0x3000].translate(dict.fromkeys(map(ord, folded))))
    assert characters_of(CodePoints.of(*b"sk").folded()) == "KSks\u017f\u212a"


def characters_of(members: CodePoints) -> str:
    bounds = members.flips.reshape(-1, 2).tolist()
    return characters([(first, after - 1) for first, after in bounds])


def test_folding_leaves_perl_classes_alone():
    # fancy-regex folds \p{..} under (?i:) but not \s, \d and \w; that makes no difference while these are closed.
    for ranges in (categories.white_space(), categories.property_ranges("Nd"), categories.word("fancy-regex")):
        members = CodePoints.from_ranges(ranges)
        assert members.folded() == members


def test_characters_that_fold_to_several_and_what_they_fold_to():
    members = characters(categories.full_folds())
    assert set(members) == {part for c in SCALARS if len(c.casefold()) > 1 for part in c + c.casefold()}
    for c in members:
        if len(c.casefold()) > 1:
            assert is_one_match(f"(?i:{c})", c.casefold())
    assert CodePoints.of(ord("\u0149")).has_case and CodePoints.of(ord("a")).has_case
    assert not CodePoints.from_ranges(categories.white_space()).has_case


@pytest.mark.parametrize(
    ("name", "pre_tokenizer", "size"),
    [
        ("numeric", pre_tokenizers.Digits(individual_digits=True), 1_924),
        ("punctuation", pre_tokenizers.Punctuation("isolated"), 726),
        ("punctuation", pre_tokenizers.BertPreTokenizer(), 726),
    ],
)
def test_the_sets_of_components_are_those_of_the_library(name, pre_tokenizer, size):
    members = set(characters(categories.component_set(name)))
    assert len(members) == size
    members.intersection_update(SWEPT)

    def alone(text):
        return {piece for piece, _ in pre_tokenizer.pre_tokenize_str(text) if len(piece) == 1}

    # What stands alone among all characters may do so for its neighbours only.
    assert alone("".join("a" + c for c in sorted(alone(SWEPT)))) - {"a"} == members
