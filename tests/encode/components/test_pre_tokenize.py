"""Every pre-tokenizer of HuggingFace's library: the same pieces, with the same offsets."""

from __future__ import annotations

import itertools
import random
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from full_run import share

from tokenweir.encode.components.pre_tokenize import pre_tokenizer_core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import ByteLevel, CharDelimiterSplit, Pattern, PreTokenizerSequence, Split

cases = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("pre_tokenizers.py"))))

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
FALCON = [
    {"type": "Punctuation", "behavior": "Contiguous"},
    BYTE_LEVEL | {"use_regex": True},
    {"type": "Digits", "individual_digits": False},
    {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", "invert": False},
]


def in_a_row(*parts):
    return {"type": "Sequence", "pretokenizers": parts}


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def test_random_pre_tokenizers_on_random_texts():
    pick = random.Random(0)
    for _ in range(share(250)):
        part = cases.random_part(pick)
        huggingface, core, bytes_ = cases.huggingface(part), cases.ours(part).core, cases.ours(part, takes_bytes=True)
        for _ in range(25):
            text = cases.random_text(pick)
            expected = huggingface.pre_tokenize_str(text)
            assert cases.pieces(core, text) == [(piece.encode(), span) for piece, span in expected], (part, text)
            if bytes_.alphabet == "bytes":
                unspelled = [(unspell(piece), span) for piece, span in expected]
                assert cases.pieces(bytes_.core, text) == unspelled, (part, text)


def unspell(piece):
    """The bytes that are spelled in GPT-2's alphabet."""
    printable = [byte for byte in range(256) if chr(byte).isprintable() and byte not in (0x20, 0xA0, 0xAD)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}
    return bytes(letters[c] for c in piece)


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("behavior", cases.BEHAVIORS)
@pytest.mark.parametrize(
    "pattern", [{"Regex": "b+"}, {"Regex": "b"}, {"String": "b"}, {"String": "ab"}, {"String": "."}]
)
def test_a_split_behaves_on_every_short_text(pattern, behavior, invert):
    part = split(pattern, behavior, invert)
    for length in range(1, 7):
        for text in itertools.product("ab.", repeat=length) if length < 5 else itertools.product("ab", repeat=length):
            cases.same(part, "".join(text))


@pytest.mark.parametrize("behavior", cases.BEHAVIORS)
def test_punctuation_behaves(behavior):
    for text in ("a!! b?", "!a", "..", "a", "! !", "$+<=>^`|~", "\u166d\U000111c9\u2e5d\u00a7"):
        cases.same({"type": "Punctuation", "behavior": behavior}, text)


def test_pieces_by_hand():
    assert cases.same({"type": "Whitespace"}, "a! b\u200d") == ["a", "!", "b\u200d"]
    assert cases.same({"type": "WhitespaceSplit"}, " a!\x1c b\u3000") == ["a!\x1c", "b"]
    assert cases.same({"type": "BertPreTokenizer"}, "a, b!!c") == ["a", ",", "b", "!", "!", "c"]
    assert cases.same({"type": "CharDelimiterSplit", "delimiter": "-"}, "-a--b") == ["a", "b"]
    assert cases.same({"type": "Digits", "individual_digits": True}, "12\u00bda3") == ["1", "2", "\u00bd", "a", "3"]
    assert cases.same({"type": "Digits", "individual_digits": False}, "12\u00bda3") == ["12\u00bd", "a", "3"]
    assert cases.same(split({"String": " "}, "MergedWithPrevious"), " a b") == [" ", "a ", "b"]
    assert cases.same(split({"Regex": "b"}, "Contiguous"), "bbab") == ["bb", "a", "b"]


def test_a_prefix_space_for_each_piece():
    part = in_a_row({"type": "WhitespaceSplit"}, BYTE_LEVEL | {"add_prefix_space": True})
    assert cases.same(part, "a\u00e9  b") == ["\u0120a\u00c3\u00a9", "\u0120b"]
    twice = in_a_row(BYTE_LEVEL | {"add_prefix_space": True}, BYTE_LEVEL | {"add_prefix_space": True})
    assert cases.same(twice, "a") == ["\u0120\u00c4\u0142a"]


def test_what_follows_byte_level_sees_spelled_text():
    # U+00BD is spelled as U+00C2 and U+00BD, and the latter is numeric.
    assert cases.same(in_a_row(*FALCON), "a\u00bd! 12345.") == [*"a\u00c2\u00bd!\u0120", "123", "45", "."]


def test_the_alphabet_of_the_pieces():
    byte_level, digits = ByteLevel(add_prefix_space=False), Split(pattern=Pattern(Regex="[0-9]"), behavior="Isolated")
    after, before = PreTokenizerSequence((byte_level, digits)), PreTokenizerSequence((digits, byte_level))
    for part in (byte_level, before):
        assert pre_tokenizer_core(part, takes_bytes=True).alphabet == "bytes"
        assert pre_tokenizer_core(part, takes_bytes=True).core.pieces(" \u00e91") == [b" \xc3\xa9", b"1"]
        assert pre_tokenizer_core(part, takes_bytes=False).alphabet == "letters"
        spelled = ["\u0120\u00c3\u00a9".encode(), b"1"]
        assert pre_tokenizer_core(part, takes_bytes=False).core.pieces(" \u00e91") == spelled
    assert pre_tokenizer_core(after, takes_bytes=True).alphabet == "bytes"
    assert pre_tokenizer_core(after, takes_bytes=True).core.pieces(" \u00e91") == [b" \xc3\xa9", b"1"]
    assert pre_tokenizer_core(digits, takes_bytes=True).alphabet == "text"
    assert pre_tokenizer_core(None, takes_bytes=True).alphabet == "text"


def test_bytes_may_end_inside_a_character():
    part = in_a_row(BYTE_LEVEL, {"type": "Digits", "individual_digits": True})
    assert cases.ours(part, takes_bytes=True).core.pieces("\u00bd\u00bd") == [b"\xc2", b"\xbd", b"\xc2", b"\xbd"]
    assert cases.ours(part, takes_bytes=True).core.split("\u00bd\u00bd").tolist() == [[0, 1], [0, 1], [1, 2], [1, 2]]


def test_text_that_is_changed_word_by_word_outlives_its_buffer():
    words = [f"w\u00e9{i}" for i in range(20_000)]
    part = in_a_row({"type": "WhitespaceSplit"}, BYTE_LEVEL | {"add_prefix_space": True})
    assert cases.ours(part, takes_bytes=True).core.pieces(" ".join(words)) == [f" {word}".encode() for word in words]
    long = ["x" * 100_000, "y", "z" * 200_000, "\u00e9" * 100_000]
    assert cases.ours(part, takes_bytes=True).core.pieces(" ".join(long)) == [f" {word}".encode() for word in long]


@pytest.mark.parametrize("character", " a1\n.\u2581\u00e9")
@pytest.mark.parametrize("seed", range(3))
def test_a_long_run_of_one_character(character, seed):
    part = in_a_row(*(cases.random_part(random.Random(seed * 10 + i), depth=3) for i in range(3)))
    core = cases.ours(part).core
    assert sum(end - start for start, end in core.split(character * 300_000 + "a").tolist()) <= 600_002


def test_trailing_space_is_searched_once():
    core = cases.ours(split({"Regex": r"\s+$"})).core
    assert core.split(" " * 1_000_000 + "a").tolist() == [[0, 1_000_001]]
    assert core.split("a" + " " * 1_000_000).tolist() == [[0, 1], [1, 1_000_001]]
    text = (" " * 1000 + "a") * 1000
    assert core.split(text).tolist() == [[0, len(text)]]
    phases = cases.ours(split({"Regex": r"(?:\s\s\s)+$"})).core
    for count in range(190, 200):
        cases.same(split({"Regex": r"(?:\s\s\s)+$"}), "b" + " " * count + "a" + " " * count)
    assert phases.split(" " * 1_000_000 + "a").tolist() == [[0, 1_000_001]]


def test_a_pattern_that_fails_late_in_too_many_ways_is_refused():
    with pytest.raises(UnsupportedTokenizerError) as error:
        cases.ours(split({"Regex": r"(?:\s{300})+x"}))
    pattern = r"(?:\s{300})+x"
    assert str(error.value) == (
        f"pattern {pattern!r} (oniguruma): its searches can fail late in 300 states; at most 256 are followed"
    )


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (split({"Regex": "a", "String": "a"}), "a Split whose pattern is not one of Regex and String"),
        (split({}), "a Split whose pattern is not one of Regex and String"),
    ],
)
def test_values_that_no_component_can_have(part, message):
    with pytest.raises(TokenizerFileError) as error:
        cases.ours(part)
    assert str(error.value) == f"pre_tokenizer: {message}"


@pytest.mark.parametrize("delimiter", ["", "ab"])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(TokenizerFileError) as error:
        pre_tokenizer_core(CharDelimiterSplit(delimiter), takes_bytes=False)
    assert str(error.value) == f"pre_tokenizer: CharDelimiterSplit's delimiter is {delimiter!r}, not one character"


def test_dropping_goes_with_no_other_behavior():
    dropping = Split(pattern=Pattern(Regex="a"), behavior="Removed", invert=True, unmatched="drop")
    with pytest.raises(UnsupportedTokenizerError) as error:
        pre_tokenizer_core(dropping, takes_bytes=True)
    assert str(error.value) == (
        "pre_tokenizer: a Split with behavior 'Removed' inverted that drops what it does not match"
    )


@pytest.mark.parametrize(
    "part",
    [
        in_a_row(*FALCON),
        in_a_row({"type": "Digits", "individual_digits": True}, BYTE_LEVEL | {"use_regex": True}),
        in_a_row(split({"String": " "}, "MergedWithNext"), BYTE_LEVEL | {"add_prefix_space": True}),
        in_a_row({"type": "WhitespaceSplit"}, BYTE_LEVEL | {"add_prefix_space": True}),
        in_a_row(split({"Regex": r"\d{1,3}(?=(?:\d{3})*\b)"}), BYTE_LEVEL | {"use_regex": True}),
        in_a_row(BYTE_LEVEL, BYTE_LEVEL, {"type": "Punctuation", "behavior": "Contiguous"}),
    ],
)
@pytest.mark.parametrize("normalizer", [None, {"type": "NFC"}])
def test_whole_byte_level_tokenizers(both, part, normalizer):
    ours, reference = both(pre_tokenizer=part, normalizer=normalizer)
    pick = random.Random(0)
    for text in (cases.random_text(pick) for _ in range(400)):
        expected, found = reference.encode(text), ours.encode_with_offsets(text)
        assert found.ids == expected.ids, text
        assert list(map(tuple, found.offsets)) == expected.offsets, text
        assert ours.encode(text) == expected.ids, text
