"""Every normalizer against HuggingFace's `tokenizers`: the text, and the offsets of each character."""

from __future__ import annotations

import random

import pytest
from byte_offsets import ours, theirs
from full_run import FULL, share
from tokenizers import Regex, normalizers
from unicode_scalars import SWEPT

from tokenweir.encode import _core, spec
from tokenweir.encode.components.normalize import normalizer_core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError

BERT_FLAGS = [
    {"clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": accents, "lowercase": lower}
    for clean in (True, False)
    for chinese in (True, False)
    for accents in (None, True, False)
    for lower in (True, False)
]


def bert(step):
    """BertNormalizer with one step alone."""
    none = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return spec.BertNormalizer(**{**none, step: True})


def replace(content, **pattern):
    return spec.Replace(spec.Pattern(**pattern), content)


def sequence(*parts):
    return spec.NormalizerSequence(parts)


def reference(normalizer):
    """The same normalizer of the library."""
    match normalizer:
        case spec.NormalizerSequence(parts):
            return normalizers.Sequence([reference(part) for part in parts])
        case spec.StripSpace(left, right):
            return normalizers.Strip(left, right)
        case spec.Prepend(content):
            return normalizers.Prepend(content)
        case spec.Replace(pattern, content):
            return normalizers.Replace(Regex(pattern.Regex) if pattern.Regex else pattern.String, content)
        case spec.BertNormalizer(clean_text, handle_chinese_chars, strip_accents, lowercase):
            return normalizers.BertNormalizer(
                clean_text=clean_text,
                handle_chinese_chars=handle_chinese_chars,
                strip_accents=strip_accents,
                lowercase=lowercase,
            )
    return getattr(normalizers, type(normalizer).__name__)()


def check(normalizer, texts):
    core, library = normalizer_core(normalizer), reference(normalizer)
    for text in texts:
        assert ours(core, text) == theirs(library, text), (normalizer, ascii(text))


# -- every character ---------------------------------------------------------------------------------------------------

ONE_AT_A_TIME = [
    spec.NFC(),
    spec.NFD(),
    spec.NFKC(),
    spec.NFKD(),
    spec.Lowercase(),
    spec.StripAccents(),
    bert("clean_text"),
    bert("handle_chinese_chars"),
    bert("strip_accents"),
    bert("lowercase"),
    spec.BertNormalizer(),
    spec.BertNormalizer(lowercase=False),
]


@pytest.mark.parametrize(
    ("normalizer", "context"),
    [(step, "{}") for step in ONE_AT_A_TIME]
    + [(form, context) for form in ONE_AT_A_TIME[1:4] for context in ("e{}\u0323", "\uac00{}\u11a8") if FULL],
    ids=str,
)
def test_every_scalar(normalizer, context):
    # The separator is not changed and lets nothing pass; a line feed would be cleaned.
    text = "x".join(context.format(c) for c in SWEPT)
    found, wanted = normalizer_core(normalizer).normalize(text), reference(normalizer).normalize_str(text)
    if found != wanted:
        pairs = zip(found.split("x"), wanted.split("x"), strict=False)
        pytest.fail(f"first {next((ascii(a), ascii(b)) for a, b in pairs if a != b)}")


@pytest.mark.parametrize("normalizer", ONE_AT_A_TIME, ids=str)
def test_offsets_of_every_character_that_changes(normalizer):
    library = reference(normalizer).normalize_str
    blocks = ["x".join(SWEPT[i : i + 64]) for i in range(0, len(SWEPT), 64)]
    changed = [block for block in blocks if library(block) != block]
    random.Random(0).shuffle(changed)
    check(normalizer, changed[:200])
    assert len(changed) > 10


def test_the_irregularities_of_the_library_are_kept():
    assert normalizer_core(spec.Lowercase()).normalize("\u0130\u039f\u03a3") == "i\u0307\u03bf\u03c3"  # no final sigma
    assert normalizer_core(spec.NFKC()).normalize("\u32ff\ufb01") == "\u32fffi"  # U+32FF is of Unicode 12.1
    chinese = normalizer_core(bert("handle_chinese_chars"))
    assert chinese.normalize("\U0002b820\U0002b91f\U0002b920") == "\U0002b820\U0002b91f \U0002b920 "
    clean = normalizer_core(bert("clean_text"))
    assert clean.normalize("a\0\ufffd\u200d\x0b\t\n\x85\u3000\u0378b") == "a   \u0378b"
    assert normalizer_core(spec.StripAccents()).normalize("e\u0301\u0d00") == "e\u0d00"


# -- offsets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("normalizer", "text", "expected"),
    [
        (spec.NFD(), "\u00e9a", ("e\u0301a", [(0, 1), (0, 1), (1, 2)])),
        (spec.NFD(), "\u00e9\u0323a", ("e\u0323\u0301a", [(0, 1), (1, 2), (1, 2), (2, 3)])),  # by position
        (spec.NFKD(), "x\ufb01\u0301", ("xfi\u0301", [(0, 1), (1, 2), (1, 2), (2, 3)])),
        (spec.NFKC(), "\uff76\uff9e!", ("\u30ac!", [(0, 1), (2, 3)])),
        (spec.Lowercase(), "a\u0130b", ("ai\u0307b", [(0, 1), (1, 2), (1, 2), (2, 3)])),
        (spec.StripAccents(), "\u0301e\u0301\u0323x", ("ex", [(1, 2), (4, 5)])),
        (spec.StripSpace(), " \u3000a b\n", ("a b", [(2, 3), (3, 4), (4, 5)])),
        (spec.StripSpace(strip_left=False), " a ", (" a", [(0, 1), (1, 2)])),
        (spec.StripSpace(strip_right=False), " a ", ("a ", [(1, 2), (2, 3)])),
        (spec.StripSpace(), " \n ", ("", [])),
        (spec.Prepend("xy"), "\u00e9b", ("xy\u00e9b", [(0, 1), (0, 1), (0, 1), (1, 2)])),
        (spec.Prepend("xy"), "", ("", [])),
        (replace("\u2581", String=" "), "a b", ("a\u2581b", [(0, 1), (1, 2), (2, 3)])),
        (replace("XY", String="aba"), "zababa", ("zXYba", [(0, 1), (3, 4), (3, 4), (4, 5), (5, 6)])),
        (replace("", String="a"), "aba", ("b", [(1, 2)])),
        (replace(" ", Regex=" {2,}"), "   a b  ", (" a b ", [(2, 3), (3, 4), (4, 5), (5, 6), (7, 8)])),
        (
            spec.BertNormalizer(),
            "\u4e2d\u00c9\n\0",
            (" \u4e2d e ", [(0, 1), (0, 1), (0, 1), (1, 2), (2, 3)]),
        ),
        (
            sequence(spec.Prepend("\u00c9"), spec.NFD(), spec.Lowercase()),
            "ab",
            ("e\u0301ab", [(0, 1), (0, 1), (0, 1), (1, 2)]),
        ),
        (sequence(replace("", String="a"), spec.Prepend("y")), "ab", ("yb", [(1, 2), (1, 2)])),
        (sequence(), "ab", ("ab", [(0, 1), (1, 2)])),
    ],
    ids=str,
)
def test_offsets(normalizer, text, expected):
    assert theirs(reference(normalizer), text) == expected
    assert ours(normalizer_core(normalizer), text) == expected


# -- random text -------------------------------------------------------------------------------------------------------

FORMS = [spec.NFC(), spec.NFD(), spec.NFKC(), spec.NFKD()]
STRINGS = [" ", "  ", "a", "aa", "aba", "abab", "aab", "\u2581", "\u00e9", "e\u0301", "\n", "\0", "\u4e2d", "``"]
PATTERNS = [" {2,}", r"\s+", "[ab]+", "a+b|ab*", "a|ab|aba", r"\p{L}+", r"\p{M}", r"[^\p{L}]", r"\s+(?=a)", "(?i:ab)"]
CONTENTS = ["", " ", "b", "\u2581", "ab", "\u00e9\u4e2d", "\u0301"]
ALPHABETS = [
    list("abcxyzABCXYZ 0.\n"),
    list("ab "),
    list("\u00e9\u00c9\u0130\u017f\u212a\u212b\ufb01\u2460\u337f\u1e9b\uff21\uff76\uff9e\u0344\u0958"),
    list(" \t\n\r\x0b\x1c\x85\xa0\u1680\u2003\u2028\u3000\u200b\ufeff"),
    ["\u0301", "\u0323", "\u0345", "\u0f71", "\u0f73", "\u0334", "\u200d", "\U0001f600", "\0", "\ufffd", "\u2581"],
    [chr(c) for first, last in [(0x1100, 0x1114), (0x1161, 0x1176), (0x11A7, 0x11C4)] for c in range(first, last)],
    [chr(c) for c in range(0xAC00, 0xD7A4, 14)],
    list("\u4e2d\u6587\uff0c\u3001\u3002\u3072\u304b\u30ab\U0002b820\U0002b920\uf900"),
    SWEPT,
]


def random_text(rng):
    alphabets = rng.choices(ALPHABETS, k=rng.randint(1, 4))
    text = "".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.choice((0, 1, 2, 3, 4, 6, 8, 12, 20, 40))))
    return rng.choice(("", "", "", "the quick brown fox ", "Hello, World! ")) + text


def random_normalizer(rng):
    match rng.randrange(8):
        case 0 | 1:
            return rng.choice(FORMS)
        case 2:
            return rng.choice([spec.Lowercase(), spec.StripAccents()])
        case 3:
            return spec.StripSpace(rng.random() < 0.7, rng.random() < 0.7)
        case 4:
            return spec.Prepend(rng.choice(CONTENTS[1:]))
        case 5:
            return replace(rng.choice(CONTENTS), String=rng.choice(STRINGS))
        case 6:
            return replace(rng.choice(CONTENTS), Regex=rng.choice(PATTERNS))
    return spec.BertNormalizer(**rng.choice(BERT_FLAGS))


def test_random_text_by_each_normalizer():
    rng = random.Random(1)
    each = [*FORMS, spec.Lowercase(), spec.StripAccents(), spec.StripSpace(), spec.Prepend("\u2581")]
    each += [spec.BertNormalizer(**flags) for flags in BERT_FLAGS]
    each += [replace(rng.choice(CONTENTS), String=string) for string in STRINGS]
    each += [replace(rng.choice(CONTENTS), Regex=pattern) for pattern in PATTERNS]
    for normalizer in each:
        check(normalizer, (random_text(rng) for _ in range(share(900))))


def test_random_sequences_of_normalizers():
    rng = random.Random(2)
    for _ in range(share(300)):
        normalizer = sequence(*(random_normalizer(rng) for _ in range(rng.randint(2, 5))))
        check(normalizer, (random_text(rng) for _ in range(25)))


@pytest.mark.parametrize("begin", [r"(?<!\n)^", r"\A"])
def test_the_beginning_of_a_text_is_replaced(begin):
    """As LLM-jp's converter writes its dummy prefix."""
    rng = random.Random(3)
    texts = ["", "a", "\n", "\na", "a\nb", "\r\n", "\u2581a", " a", "\u2028a", "\u00e9", "\u4e2d\n\n"]
    texts += [random_text(rng) for _ in range(share(1200))]
    for content in ("\u2581", "xy", "\n"):
        prefix = replace(content, Regex=begin)
        check(prefix, texts)
        check(sequence(prefix, replace("\u2581", Regex=" ")), texts)
        check(sequence(spec.NFKC(), prefix, replace("", String="a"), replace("bcd", Regex="[0-9]"), prefix), texts)
        check(sequence(spec.StripSpace(), prefix, replace("", String=content), spec.Prepend("z")), texts)
    message = "^normalizer: Lowercase after a Replace of the beginning of a text$"  # the library panics
    with pytest.raises(UnsupportedTokenizerError, match=message):
        normalizer_core(sequence(prefix, spec.Lowercase()))


# -- fast paths and long text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filler", ["x", "\u4e2d", "\u00df", "\U0001f600", "\u0436", "x\u4e2d"])
def test_a_change_at_every_position_of_a_register(filler):
    normalizer = [
        (spec.NFD(), "\u00e9"),
        (spec.NFKC(), "\ufb01"),
        (spec.Lowercase(), "A"),
        (spec.Lowercase(), "\u00c9"),
        (spec.StripAccents(), "\u0301"),
        (bert("clean_text"), "\0"),
        (replace("\u2581", String=" "), " "),
        (replace("yy", String="ab"), "ab"),
        (replace("_", Regex=" {2,}"), "  "),
    ]
    for step, what in normalizer:
        check(step, (filler * n + what + filler * m for n in range(20) for m in (0, 1, 17)))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufdfa" * share(50_000), id="each becomes eighteen"),
        pytest.param("\uac01" * share(200_000), id="syllables"),
        pytest.param("\u1100\u1161\u11a8" * share(50_000), id="jamo"),
        pytest.param("a" + "".join(random.Random(1).choices("\u0301\u0316\u0345", k=share(100_000))), id="marks"),
        pytest.param("\u0130" * share(100_000), id="each becomes two"),
        pytest.param("\u4e2d" * share(200_000), id="Chinese"),
        pytest.param(" " * share(1_000_000), id="spaces"),
        pytest.param("A" * share(1_000_000), id="capitals"),
        pytest.param("\0" * share(500_000), id="control characters"),
        pytest.param(
            "".join(random.Random(2).choices("a\u00e9\uac01\ufdfa\u0301\u1100\u1161\u2460", k=share(100_000))), id="all"
        ),
    ],
)
def test_long_runs(text):
    steps = [*FORMS, spec.Lowercase(), spec.StripAccents(), spec.StripSpace(), spec.Prepend("a"), spec.BertNormalizer()]
    for normalizer in [*steps, replace("\u2581", String=" "), replace(" ", Regex=" {2,}")]:
        core = normalizer_core(normalizer)
        expected = reference(normalizer).normalize_str(text)
        assert core.normalize(text) == expected
        assert core.normalize_with_origin(text)[0] == expected


def test_offsets_where_a_long_segment_is_cut():
    rng = random.Random(3)
    for normalizer in FORMS:
        texts = (
            "".join(rng.choices("\u00e9\uac01\ufb01\u0301\u0323\u1100\u1161\u2460\u1e9b", k=700)) for _ in range(5)
        )
        check(normalizer, texts)


def test_a_string_that_almost_occurs_everywhere():
    normalizer = replace("x", String="a" * 5_000 + "b")
    text = "a" * 300_000 + "b"
    assert normalizer_core(normalizer).normalize(text) == "a" * 295_000 + "x"


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("normalizer", "message"),
    [
        (replace("x", String=""), r"^normalizer: a Replace of the empty string$"),
        (spec.Prepend(""), r"^normalizer: a Prepend of the empty string$"),
        (replace("x", Regex=" *"), r"^normalizer: a Replace of ' \*', which can match the empty string$"),
        (replace("", Regex=r"\A"), r"^normalizer: a Replace of '\\\\A', which can match the empty string$"),
        (replace("x", Regex="^"), r"^normalizer: a Replace of '\^', which can match the empty string$"),
        (replace("x", Regex=r"(a)\1"), r"the escape \\1, at character 3, is not supported"),
    ],
    ids=str,
)
def test_what_is_not_exact_is_refused(normalizer, message):
    with pytest.raises(UnsupportedTokenizerError, match=message):
        normalizer_core(normalizer)


def test_a_pattern_that_is_none():
    with pytest.raises(TokenizerFileError, match=r"^pattern '\('"):
        normalizer_core(replace("x", Regex="("))


def test_the_core_checks_names_and_empty_strings():
    with pytest.raises(ValueError, match="no normalization form: NFX"):
        _core.NormalizerStep.normal_form("NFX")
    with pytest.raises(ValueError, match="no rule for characters: upper"):
        _core.NormalizerStep.character_map(["upper"])
    with pytest.raises(UnsupportedTokenizerError, match="a Replace of the empty string"):
        _core.NormalizerStep.replace_string("", "x")
