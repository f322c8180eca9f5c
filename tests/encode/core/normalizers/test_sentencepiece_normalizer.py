"""SentencePiece's normalizer against sentencepiece: the text, and where each character comes from."""

from __future__ import annotations

import random
import struct

import pytest
import sentencepiece
from case_tables import cases
from full_run import share
from sentencepiece_files import USER, USER_DEFINED, charsmap, edited, piece, small_model, train

from tokenweir.encode import _core
from tokenweir.encode.components.normalize import normalizer_core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats.sentencepiece import read

CASES = cases(__file__)

NO_ESCAPE, ADD_DUMMY_PREFIX, REMOVE_EXTRA, ESCAPE = {5: 0}, 3, 4, 5  # of the normalizer's message
MODELS = {
    "nmt_nfkc": lambda: train(normalization_rule_name="nmt_nfkc"),
    "nfkc_cf, unigram": lambda: train(normalization_rule_name="nfkc_cf", model_type="unigram", vocab_size=90),
    "identity": lambda: train(normalization_rule_name="identity"),
    "suffix": lambda: train(treat_whitespace_as_suffix=True),
    "no dummy prefix": lambda: train(add_dummy_prefix=False),
    "all spaces stay": lambda: train(remove_extra_whitespaces=False),
    "all spaces stay, suffix": lambda: train(remove_extra_whitespaces=False, treat_whitespace_as_suffix=True),
    "user-defined": lambda: train(user_defined_symbols=USER_DEFINED),
    "user-defined, identity, all spaces stay": lambda: train(
        user_defined_symbols=USER_DEFINED, normalization_rule_name="identity", remove_extra_whitespaces=False
    ),
    "user-defined, suffix, no escape": lambda: edited(
        train(user_defined_symbols=USER_DEFINED, treat_whitespace_as_suffix=True), 3, NO_ESCAPE
    ),
    "byte fallback": lambda: train(byte_fallback=True, vocab_size=450),
    "no escape": lambda: edited(train(), 3, NO_ESCAPE),
}
REAL = [
    "llama-2/tokenizer.model",
    "mistral-7b-v0.3/tokenizer.model",
    "sp-test-unigram-en/tokenizer.model",
    "sp-test-unigram-ja/tokenizer.model",
]
PARTS = CASES["parts"]


def pair(model):
    """Ours and sentencepiece's: text to (text, where each character begins)."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    normalizer = normalizer_core(read(model).normalizer)

    def ours(text):
        normal, origin = normalizer.normalize_with_origin(text)
        assert normalizer.normalize(text) == normal
        starts, ends = origin.T.tolist()
        assert starts[1:] == ends[:-1]
        return normal, [*starts, *ends[-1:]]

    def theirs(text):
        normal, starts = processor.normalize(text, with_offsets=True)
        return normal, list(starts) if normal else []

    return ours, theirs


def random_text(pick):
    match pick.randrange(10):
        case 0:
            return pick.choice(PARTS) * pick.randint(1, 60)
        case 1:
            ranges = [(0x250,), (0x3400,), (0xE000, 0x10000), (0x10000, 0x110000), (0x20, 0x21)]
            return "".join(chr(pick.randrange(*pick.choice(ranges))) for _ in range(pick.randint(1, 8)))
    return "".join(pick.choices(PARTS, k=pick.randint(0, 12)))


@pytest.mark.parametrize("name", [*MODELS, *REAL])
def test_random_text(data, name):
    ours, theirs = pair(MODELS[name]() if name in MODELS else data(f"tokenizers/{name}").read_bytes())
    pick = random.Random(name)
    for _ in range(share(6000)):
        text = random_text(pick)
        assert ours(text) == theirs(text), ascii(text)


def test_every_character():
    for model in (train(normalization_rule_name="nmt_nfkc_cf"), train(remove_extra_whitespaces=False)):
        ours, theirs = pair(model)
        for plane in range(0, 0x110000, 0x10000):
            text = "".join(f"{chr(c)}x" for c in range(plane, plane + 0x10000) if not 0xD800 <= c < 0xE000)
            assert ours(text) == theirs(text)


def rules_of(pick):
    """Rules, pieces and texts of a few characters each, so that they meet."""
    alphabet = pick.sample(["a", "b", " ", "  ", "▁", "é", "e\u0301", "ﬁ", "日", "😀", "\n", "c", "क", "\u094d"], 7)

    def word(longest):
        return "".join(pick.choices(alphabet, k=pick.randint(1, longest)))

    rules = {word(4): word(4)[1:] for _ in range(pick.randint(1, 12))}
    taken = {"▁", "a", "b", "▁a", "ab", "▁ab"}
    return rules, {word(3) for _ in range(pick.randint(0, 4))} - taken, alphabet


def test_random_rules():
    pick = random.Random(8)
    for _ in range(150):
        rules, pieces, alphabet = rules_of(pick)
        flags = {flag: pick.randrange(2) for flag in (ADD_DUMMY_PREFIX, REMOVE_EXTRA, ESCAPE)}
        more = [piece(text, 0.0, USER) for text in sorted(pieces)]
        ours, theirs = pair(
            small_model(*more, trainer={24: pick.randrange(2)}, normalizer={2: charsmap(rules), **flags})
        )
        for _ in range(30):
            text = "".join(pick.choices([*alphabet, "\0"], k=pick.choice([0, 1, 2, 3, 5, 8, 13, 100])))
            assert ours(text) == theirs(text), (rules, pieces, flags, text)


@pytest.mark.parametrize("length", [1, 31, 32, 33, 40, 44, 45, 63, 64, 65, 80, 88, 89, 100])
def test_only_so_many_prefixes_are_looked_at(length):
    """32 rules (a sentencepiece trainer makes no more) and 64 pieces; longer ones are never found."""
    rules = charsmap({"a" * n: chr(0x100 + n) for n in range(1, 45)})
    pieces = [piece("b" * n, 0.0, USER) for n in range(2, 90)]
    ours, theirs = pair(small_model(*pieces, normalizer={2: rules}))
    for text in ("a" * length, "b" * length, "b" * length + "a" * length):
        assert ours(text) == theirs(text)
    assert ours("a" * 32)[0] == "▁\u0120"
    assert ours("a" * 33)[0] == "▁\u0120\u0101"


def test_rules_may_take_a_part_of_a_character():
    model = small_model(normalizer={2: charsmap({b"\xc3": "x", b"\xe6\x97": " ", b"\xf0\x9f\x98\x80": "y"})})
    normalize = normalizer_core(read(model).normalizer).normalize
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for text in ("é", "日", "本日 日", "😀é😀"):
        assert normalize(text) == processor.normalize(text)
    assert normalize("é") == "▁x\ufffd"


@pytest.mark.parametrize(("text", "normal", "starts"), CASES["where_characters_come_from"])
def test_where_characters_come_from(text, normal, starts):
    ours, theirs = pair(train(normalization_rule_name="nmt_nfkc"))
    assert ours(text) == theirs(text) == (normal, starts)


def test_rules_that_are_not_compiled_are_ignored():
    ours, theirs = pair(small_model(normalizer={6: "61\t62"}))
    assert ours("a a") == theirs("a a") == ("▁a▁a", [0, 0, 1, 2, 3])


@pytest.mark.parametrize("unit", ["a", " ", "▁", "\u0301", "ﬁ", "①", "日", "a ", "\u200b"])
def test_long_runs(unit):
    ours, theirs = pair(train())
    text = unit * 100_000
    assert ours(text) == theirs(text)


def test_an_empty_piece_is_refused():
    with pytest.raises(TokenizerFileError, match=r"^an empty user-defined piece$"):
        _core.SentencePieceText(
            b"", [""], add_dummy_prefix=True, remove_extra_whitespaces=True, escape_whitespaces=True, suffix=False
        )


def test_a_rule_that_is_too_long():
    ours, theirs = pair(small_model(normalizer={2: long_chain(1024)}))
    for text in ("a" * 1023, "a" * 1025, "a" * 1023 + "b"):
        assert ours(text) == theirs(text)
    assert ours("a" * 1025)[0] == "▁xa"
    with pytest.raises(UnsupportedTokenizerError, match=r"^precompiled_charsmap: a rule of more than 1024 bytes$"):
        _core.Precompiled(long_chain(1025))


def long_chain(length):
    """A map with the one rule `aaa...`, its trie written down without the recursion of `charsmap`."""
    bases = [256 * (n + 1) for n in range(length + 1)]  # of the node that n characters lead to
    units = [1 << 31] * (bases[-1] + 256)
    node = 0
    units[0] = 0
    for n, base in enumerate(bases):
        units[node] |= (node ^ base) << 10 | (n == length) << 8
        node = base ^ ord("a")
        if n < length:
            units[node] = ord("a")
    units[bases[-1]] = 1 << 31
    trie = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(trie)) + trie + b"x\0"
