"""Pre-tokenizers at random, their pieces as HuggingFace's library and as the core has them, and texts that are hard on
them."""

from __future__ import annotations

import json

import msgspec
import tokenizers

from tokenweir.encode.components.pre_tokenize import pre_tokenizer_core
from tokenweir.encode.spec import PreTokenizer

BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
REGEXES = [
    *(" ", "a", "b+", "[ab]", "ab|b", r"\s+", r"\s", r"\d", "[0-9][0-9][0-9]", "\u2581", r"\s+$", "\u0120", "[\r\n]"),
    r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"\p{N}{1,3}",
    r"\s?\p{P}+",
    r" ?[^(\s|[.,!?\u2026\u3002\uff0c])]+",
]
STRINGS = [" ", "a", "ab", ".", "\u2581", "-", "[", "a b", "\\", "  ", "^$", "\u0120"]
ALPHABET = [
    *" \t\n\r\x0b\x85\u00a0\u2003\u2028\u3000'''sStabXY019\u0663\u00bd\u2167\u00b2./,!?-_([]$^|+=&*\\~",
    *"\u00e9\u01c5\u05d0\u4e2d\u56fd\u306e\ud55c\u2581\u2581\u0120\u010a\u0301\u0e31\u093f\u200d\u200c\ufeff\ufffd\x00",
    *"\x7f\ue000\U0001f600\U0001f1e6\U0010ffff\u0378\u1100\u1161\u11a8\U000111c9\u166d\u2e5d\U00011de0\u3021",
]
NARROW = ["  \n", "  \t\nA'", " ab", "ab-", "a1 ", "\u2581 a", "\u2581\u2581a ", "\u00e9 \u4e2d1", "  !a", "123 ,", "b"]


def random_text(pick):
    """Return a random text of runs and mixtures of characters, from a large or a small alphabet."""
    letters = ALPHABET if pick.random() < 0.5 else pick.choice(NARROW)
    longest = pick.choice([1, 1, 1, 2, 7, 20])
    return "".join(pick.choice(letters) * pick.randint(1, longest) for _ in range(pick.randint(1, 14)))


def random_part(pick, depth=0):
    """Return a random pre-tokenizer, or a sequence of them, in the form of tokenizer.json."""
    split = {"type": "Split", "behavior": pick.choice(BEHAVIORS), "invert": pick.random() < 0.4}
    byte_level = {"type": "ByteLevel", "add_prefix_space": pick.random() < 0.5, "use_regex": pick.random() < 0.5}
    metaspace = {"type": "Metaspace", "replacement": pick.choice("\u2581\u2581\u2581_ a\u00e9-\U0001f600]^&\\")}
    schemes = {"prepend_scheme": pick.choice(["always", "first", "never"]), "split": pick.random() < 0.6}
    kinds = [
        split | {"pattern": {"Regex": pick.choice(REGEXES)}},
        split | {"pattern": {"String": pick.choice(STRINGS)}},
        byte_level | {"trim_offsets": True},
        metaspace | schemes,
        {"type": "Digits", "individual_digits": pick.random() < 0.5},
        {"type": "Punctuation", "behavior": pick.choice(BEHAVIORS)},
        {"type": "Whitespace"},
        {"type": "WhitespaceSplit"},
        {"type": "BertPreTokenizer"},
        {"type": "CharDelimiterSplit", "delimiter": pick.choice(" -a\u2581\u00e9\U0001f600^]&~[\\")},
    ]
    if depth < 3 and pick.random() < 0.4:
        parts = [random_part(pick, depth + 1) for _ in range(pick.choice([0, 1, 2, 2, 3, 3, 4]))]
        return {"type": "Sequence", "pretokenizers": parts}
    return pick.choice(kinds)


def huggingface(part):
    """Build HuggingFace's pre-tokenizer of a part of tokenizer.json."""
    components = dict.fromkeys(["truncation", "padding", "normalizer", "post_processor", "decoder"])
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    source = {"version": "1.0", "added_tokens": [], **components, "pre_tokenizer": part, "model": model}
    return tokenizers.Tokenizer.from_str(json.dumps(source)).pre_tokenizer


def ours(part, takes_bytes=False):
    """Build the core's pre-tokenizer of a part of tokenizer.json."""
    return pre_tokenizer_core(msgspec.convert(part, PreTokenizer), takes_bytes=takes_bytes)


def pieces(core, text):
    """Return (piece as bytes, offsets) of each piece that the core's pre-tokenizer finds in a text."""
    offsets = [tuple(offset) for offset in core.split(text).tolist()]
    return list(zip(core.pieces(text), offsets, strict=True))


def same(part, text):
    """Assert that both libraries find the same pieces in a text."""
    expected = [(piece.encode(), offsets) for piece, offsets in huggingface(part).pre_tokenize_str(text)]
    assert pieces(ours(part).core, text) == expected, (part, text)
    return [piece.decode() for piece, _ in expected]
