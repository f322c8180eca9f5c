"""Exact mode's kernels against the CPU's encoder, under the shim.

KERNEL_DOCUMENTS=100000 raises the number of adversarial documents, which all vocabularies share; it takes minutes.
"""

from __future__ import annotations

import os
import random
import unicodedata
from itertools import pairwise, product

import numpy as np
import pytest
from adversarial import strings
from shim_device import ShimDevice

from tokenweir.encode._core import byte_alphabet
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import (
    BPE,
    NFC,
    NFKC,
    AddedToken,
    ByteLevel,
    Digits,
    Metaspace,
    NormalizerSequence,
    PreTokenizerSequence,
    RankBPE,
    Split,
    TokenizerSpec,
    WordPiece,
)
from tokenweir.encode.spec.values import Pattern
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.encoded import SLACK
from tokenweir.gpu.exact import ExactBatch
from tokenweir.gpu.kernels import kernel_sources

DOCUMENTS = int(os.environ.get("KERNEL_DOCUMENTS", "2000"))
SPELLS = ByteLevel(add_prefix_space=False, use_regex=False)
WORDS = ByteLevel(add_prefix_space=False)
FAMILIES = {
    "default": None,
    "gpt2": "gpt2/tokenizer.json",
    "gpt2 by ranks": "openai/gpt2.tiktoken",
    "llama-3.1": "llama-3.1/tokenizer.json",
    "qwen3": "qwen3/tokenizer.json",
    "deepseek": "deepseek-litellm/tokenizer.json",
    "cl100k": "openai/cl100k_base.tiktoken",
    "o200k": "openai/o200k_base.tiktoken",
    "tekken": "mistral-common/tekken_240911.json",
    "llama-3 GGUF": "gguf/ggml-vocab-llama-bpe.gguf",
}


def device_of(seed=1):
    return ShimDevice(kernel_sources(), seed)


def batch_of(tok, seed=1, **options):
    """A batch, and the device that it runs on."""
    device = device_of(seed)
    return ExactBatch(tok, device, **{"workers": 2, **options}), device


def run(batch_and_device, documents, **options):
    """The ids of each document, and the reasons of those that are refused by their numbers."""
    batch, device = batch_and_device
    documents = [d.encode() if isinstance(d, str) else d for d in documents]
    text = np.frombuffer(b"".join(documents) + bytes(SLACK), np.uint8)
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    encoded = batch.encode(device.to_device(text), device.to_device(offsets), **options)
    ids, offsets = device.to_host(encoded.ids), device.to_host(encoded.offsets)
    assert ids.dtype == np.int32 and offsets.dtype == np.int64
    assert len(offsets) == len(documents) + 1 and offsets[0] == 0 and offsets[-1] == len(ids)
    refused = dict(zip(encoded.refused.tolist(), encoded.reasons, strict=True))
    found = [ids[begin:end].tolist() for begin, end in pairwise(offsets.tolist())]
    assert all(found[i] == [] for i in refused)
    return found, refused


def check(batch_and_device, documents, *, parse_special=True):
    """Compares with the CPU; the documents that are refused, by their numbers."""
    found, refused = run(batch_and_device, documents, parse_special=parse_special)
    tok = batch_and_device[0].tokenizer
    expected = tok.encode_batch(documents, add_special_tokens=False, parse_special=parse_special)
    for i, document in enumerate(documents):
        if i not in refused:
            assert found[i] == expected[i].tolist(), (document, parse_special)
    return refused


def spell(token):
    """A token in GPT-2's byte alphabet."""
    return "".join(byte_alphabet()[byte] for byte in token)


def small(merges=(), pre_tokenizer=WORDS, *, ignore_merges=False, **components):
    """A tokenizer of merges, as pairs of bytes."""
    tokens = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *(left + right for left, right in merges)])
    model = BPE(
        vocab={spell(token): i for i, token in enumerate(tokens)},
        merges=[(spell(left), spell(right)) for left, right in merges],
        ignore_merges=ignore_merges,
    )
    return Tokenizer.from_spec(TokenizerSpec(model=model, pre_tokenizer=pre_tokenizer, **components))


def splits(*patterns):
    """A pre-tokenizer that cuts by one pattern after the other, as DeepSeek's does."""
    cuts = [Split(pattern=Pattern(Regex=pattern), behavior="Isolated") for pattern in patterns]
    return PreTokenizerSequence([*cuts, SPELLS])


@pytest.mark.parametrize("family", FAMILIES)
def test_families(data, family):
    name = FAMILIES[family]
    tok = Tokenizer.default() if name is None else Tokenizer.from_file(data(f"tokenizers/{name}"))
    batch, device = batch_of(tok)
    special = [token.content for token in tok.added_tokens]
    groups = strings(-(-DOCUMENTS // len(FAMILIES)), seed=family, special_tokens=special).values()
    documents = [text for texts in groups for text in texts] + [""]
    random.Random(family).shuffle(documents)
    refused = set()
    for first in range(0, len(documents), 2000):
        for parse_special in (True, False):
            reasons = check((batch, device), documents[first : first + 2000], parse_special=parse_special)
            refused |= set(reasons.values())
    assert refused <= {"Unicode's form C may change it"}
    assert not refused or family == "qwen3"


SPECIAL_CASES = [
    "",
    " ",
    "a",
    "\0",
    "\0\0a\0 \0",
    " \t\n\r\n  \n x  \n",
    "I'm you'RE it'S we'll 'twas o'clock ''' 's",
    "1 12 123 1234567 ١٢٣ ½ 3.14",
    "红楼梦　第一回，甄士隐梦幻识通灵。",
    "ひらがなカタカナ漢字 한국어 텍스트",
    "e\u0301\u0327 क्षि ผู้ ǅ ſ İ",
    "👨‍👩‍👧‍👦🏳️‍🌈🇩🇪 🙂",
    "<|im_start|>user\n<|im_end|>",
    "<|im_start",
    "|>",
    "=" * 100 + "\n" + "-" * 300,
    "\u00a0\u2028\u3000\ufeff\u0085",
    "supercalifragilisticexpialidocious" * 9,
]


def test_special_cases_in_every_order():
    documents = SPECIAL_CASES * 3
    for seed in range(6):
        batch = batch_of(Tokenizer.default(), seed)
        random.Random(seed).shuffle(documents)
        assert not check(batch, documents, parse_special=seed % 2 == 0)


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 8191, 8192, 8193])
def test_sizes_around_those_of_words_and_blocks(n):
    batch = batch_of(Tokenizer.default())
    pick = random.Random(n)
    letters = "".join(pick.choices("ab c.1\n'", k=n))
    assert not check(batch, [letters])
    assert not check(batch, ["x" * min(n, 300), "", letters[::-1], "", ""])


def test_a_document_over_many_blocks():
    pick = random.Random(7)
    pieces = ["the ", "of", " and", "\n\n", "日本語", "é", "1234", "    ", "!?", "<|im_start|>", "don't", "z" * 70]
    document = "".join(pick.choice(pieces) for _ in range(9000))
    for seed in range(2):
        assert not check(batch_of(Tokenizer.default(), seed), ["a", document, document[5:], ""])


@pytest.mark.parametrize(
    "piece", ["a", "ab", "abcde", " ", "\n", "7", "!", "é", "日本", "👨‍👩‍👧", "\0", "the", "aaab", "x\u0301"]
)
def test_giant_pieces_that_are_still_possible(piece):
    """3,000 bytes each, merged by a block."""
    document = piece * (3000 // len(piece.encode()))
    assert not check(batch_of(Tokenizer.default(), len(piece)), [document, "and " + document])


def random_merges(pick, letters, count):
    """Pairs of tokens of `letters`, in any order: half of the time one that merges first needs another's result."""
    tokens = [bytes([letter]) for letter in letters]
    merges = {}
    for _ in range(count):
        left, right = pick.choice(tokens), pick.choice(tokens)
        if len(left + right) <= 9:
            merges[left, right] = None
            tokens.append(left + right)
    merges = list(merges)
    if pick.random() < 0.5:
        pick.shuffle(merges)
    return merges


@pytest.mark.parametrize("letters", ["ab", "aé", "日本a"])
def test_any_merges(letters):
    """By a thread, a warp and a block, which the length decides."""
    pick = random.Random(letters)
    for seed in range(8):
        merges = random_merges(pick, letters.encode(), pick.randint(1, 30))
        tok = small(merges, ignore_merges=seed % 3 == 0)
        sizes = [1, 2, 3, 8, 20, 33, 60, 120, 250, 270, 600]
        documents = ["".join(pick.choices(letters, k=size)) for size in sizes for _ in range(2)]
        documents += ["".join(word) for word in product(letters, repeat=5)]
        assert not check(batch_of(tok, seed), documents)


@pytest.mark.parametrize("letters", ["ab", "é日"])
def test_any_ranks(letters):
    """Several pairs may have one rank, and the halves of a token be rarer than the token."""
    pick = random.Random(letters)
    pattern = Split(pattern=Pattern(Regex=r"\S+|\s+"), behavior="Isolated", dialect="fancy-regex", unmatched="drop")
    for seed in range(6):
        tokens = {left + right for left, right in random_merges(pick, letters.encode(), pick.randint(1, 25))}
        tokens = [*sorted(tokens), *(bytes([byte]) for byte in range(256))]
        pick.shuffle(tokens)
        ranks = {token: rank for rank, token in enumerate(tokens)}
        tok = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks), pre_tokenizer=pattern))
        documents = ["".join(pick.choices(letters, k=size)) for size in (2, 9, 30, 70, 200, 500) for _ in range(2)]
        assert not check(batch_of(tok, seed), documents)


def test_a_merge_that_creates_a_pair_which_goes_first():
    merges = [(b"ab", b"a"), (b"a", b"b")]
    assert not check(batch_of(small(merges)), ["ab" * n for n in (1, 2, 3, 17, 100, 400)])


@pytest.mark.parametrize(
    "patterns",
    [
        [r"\p{N}{1,3}", r"[一-龥]+", r"[a-z]+|\s+(?!\S)|\s+"],
        [r"\d\d", r"x"],
        [r"[ab]c|bb"],
        [r"ab|abab"],
        [r"\n+", r"b a|.b"],
        [r" ?[a-z]+|\s+(?!\S)|\s+|[^\sa-z]+"],
    ],
)
def test_stages_and_what_they_leave_over(patterns):
    """Neighbouring characters that a pattern does not match are one piece, however many; each stage cuts within pieces."""
    merges = [(b"a", b"b"), (b" ", b"a"), (b"1", b"2"), (b"ab", b"ab"), (b"c", b"a"), (b"-", b"-"), (b"--", b"--")]
    tok = small(merges, splits(*patterns))
    pick = random.Random(patterns[0])
    documents = ["".join(pick.choices("aaabbbccx  \n12-一日é", k=pick.randint(0, 60))) for _ in range(300)]
    documents += ["-" * 9000 + "ab" + "-" * 50, "a" * 100, "é" * 300 + "12" * 30, "abab" * 50]
    for seed in range(2):
        check(batch_of(tok, seed), documents)
        refused = check(batch_of(tok, seed, most=20000), documents)
        assert refused == {}


def test_added_tokens_that_overlap():
    """The leftmost counts, then the longest, and whatever is inside a match does not."""
    contents = ["aa", "aaa", "ab", "bca", "  ", "   ", "<x>", "<x><y>", "y><", "é", "日本", "本"]
    added = [AddedToken(content) for content in contents]
    tok = small([(b"a", b"b")], added_tokens=added)
    pick = random.Random(3)
    parts = ["a", "b", "c", " ", "<x>", "<y>", "<", ">", "é", "日", "本"]
    documents = ["".join(pick.choices(parts, k=pick.randint(0, 25))) for _ in range(500)]
    for seed in range(3):
        assert not check(batch_of(tok, seed), documents)
    assert check(batch_of(tok, most=50), [" " * 40, " " * 400, "x"]) == {1: "giant piece"}


def test_tokens_of_normalized_text_go_between_the_others():
    added = [
        AddedToken("<a>", normalized=False),
        AddedToken("b<", normalized=True),
        AddedToken(">c", normalized=True),
        AddedToken("<a>c", normalized=True),
    ]
    tok = small(added_tokens=added)
    pick = random.Random(4)
    documents = ["".join(pick.choices("b<a>c", k=pick.randint(0, 12))) for _ in range(400)] + ["b<a>c", "<a><a>c"]
    assert not check(batch_of(tok), documents)


def test_what_an_added_token_takes_along_is_left_to_the_cpu():
    added = [
        AddedToken("<l>", lstrip=True),
        AddedToken("<r>", rstrip=True),
        AddedToken("word", single_word=True),
        AddedToken("<n>"),
    ]
    tok = small(added_tokens=added)
    odd = "it has an added token that takes white space along or wants no word beside it"
    documents = ["a <l> b", "<n>", "a<r>  b", "words", "lr", "<", "wor"]
    assert check(batch_of(tok), documents) == {0: odd, 2: odd, 3: odd}
    assert check(batch_of(tok), documents, parse_special=False) == {}


def test_guards():
    """No added token covers a guarded character; a shorter one before it may."""
    added = [AddedToken("<a>"), AddedToken("<a>bb"), AddedToken("<"), AddedToken("é>")]
    tok = small([(b"a", b"b")], added_tokens=added)
    pick = random.Random(5)
    documents = ["".join(pick.choices(["<a>", "bb", "<", "é>", "a", "b"], k=pick.randint(0, 12))) for _ in range(200)]
    guarded = [sorted(pick.sample(range(len(d)), pick.randint(0, len(d) // 3))) for d in documents]
    places, begin = [], 0
    for document, characters in zip(documents, guarded, strict=True):
        places += [begin + len(document[:c].encode()) for c in characters]
        begin += len(document.encode())
    for seed in range(2):
        found, refused = run(batch_of(tok, seed), documents, guards=np.array(places, np.int64))
        assert refused == {}
        for document, characters, ids in zip(documents, guarded, found, strict=True):
            assert ids == tok.encode(document, add_special_tokens=False, guarded=characters), (document, characters)


def test_control_tokens_that_the_vocabulary_has():
    """The model must not make one of text; where they are matched they are found before it could."""
    merges = [(b"<", b"s"), (b"<s", b">"), (b"a", b"<s>")]
    added = [AddedToken("<s>", special=True)]
    tok = small(merges, splits(r"\S+|\s+"), ignore_merges=True, added_tokens=added)
    documents = ["<s>", "a<s>", "<s", "x <s> y", "<<s>>"]
    for parse_special in (True, False):
        assert not check(batch_of(tok), documents, parse_special=parse_special)
    guards = np.array([0], np.int64)
    found, _ = run(batch_of(tok), documents, guards=guards)
    assert found[0] == tok.encode("<s>", add_special_tokens=False, guarded=[0])


def invalid(pick):
    """Bytes that are no UTF-8."""
    while True:
        parts = [b"abc ", "é".encode(), "日本".encode(), "👍".encode(), bytes(pick.choices(range(256), k=3))]
        document = b"".join(pick.choices(parts, k=pick.randint(1, 8)))
        document = document[pick.randint(0, 2) : len(document) - pick.randint(0, 2)]
        try:
            document.decode()
        except UnicodeDecodeError:
            return document


def test_invalid_utf8_is_refused_and_harms_no_other_document():
    pick = random.Random(6)
    tok = Tokenizer.default()
    valid = [text.encode() for text in SPECIAL_CASES]
    for seed in range(4):
        bad = [invalid(pick) for _ in range(150)]
        documents = bad + valid * 3
        pick.shuffle(documents)
        found, refused = run(batch_of(tok, seed), documents)
        for i, document in enumerate(documents):
            if i in refused:
                assert document in bad and refused[i] == "it is not UTF-8"
            else:
                assert found[i] == tok.encode(document.decode(), add_special_tokens=False), document
        assert {documents[i] for i in refused} == set(bad)


@pytest.mark.parametrize(
    "document",
    [b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\x80", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf"],
)
def test_overlong_forms_surrogates_and_what_is_past_unicode(document):
    batch = batch_of(Tokenizer.default())
    assert run(batch, [b"a", document, b"b", b"x" + document + b"y"])[1] == dict.fromkeys((1, 3), "it is not UTF-8")


def test_a_character_cut_by_a_document_is_refused_on_both_sides():
    batch = batch_of(Tokenizer.default())
    assert set(run(batch, [b"a\xe6", b"\x97\xa5b", b"c", b"\xe6\x97", b"\xa5", b""])[1]) == {0, 1, 3, 4}


def test_text_that_form_c_may_change():
    tok = small([(b"e", b"\xcc"), (b"\xcc", b"\x81")], normalizer=NormalizerSequence([NFC()]))
    batch = batch_of(tok)
    unchanged = ["", "plain", "é日本한국어", "קִדָּ", "مُحَمَّد", "ผู้", "a\u0315\u0358"]
    changed = ["e\u0301", "a\u0315\u0300", "\u1100\u1161", "\u212b", "\u0344", "क\u093c"]
    refused = check(batch, unchanged + changed)
    assert set(refused.values()) == {"Unicode's form C may change it"}
    assert sorted(refused) == list(range(len(unchanged), len(unchanged + changed)))
    pick = random.Random(8)
    parts = ["a", "e", " ", "é", "\u0301", "\u0323", "\u0327", "\u05b4", "ु", "्", "ผ", "ู", "้", "가", "\u1161", "<x>"]
    documents = ["".join(pick.choices(parts, k=pick.randint(1, 6))) for _ in range(600)]
    refused = check(batch, documents)
    kept = [d for i, d in enumerate(documents) if i not in refused]
    assert len(kept) > 100
    assert all(unicodedata.normalize("NFC", document) == document for document in kept)


def test_form_c_counts_from_an_added_token_on():
    """What is before it is another text to the normalizer."""
    tok = small(normalizer=NFC(), added_tokens=[AddedToken("\u05bc", normalized=False)])
    assert not check(batch_of(tok), ["\u05bc\u05b4", "\u05b4\u05b4"])
    assert check(batch_of(small(normalizer=NFC())), ["\u05bc\u05b4"]) == {0: "Unicode's form C may change it"}


def test_a_giant_piece_is_refused_and_harms_no_other_document():
    batch = batch_of(Tokenizer.default(), most=400)
    documents = [
        "a",
        "b" * 401,
        "c d",
        " " * 500 + "x",
        "\n" * 400,
        "ab " * 300,
        "日" * 134,
        "日" * 133,
        "=" * 20000,
        "z",
    ]
    assert check(batch, documents) == dict.fromkeys((1, 3, 6, 8), "giant piece")
    assert batch[0].most == 400


def test_a_batch_takes_few_launches():
    batch, device = batch_of(Tokenizer.default())
    device.launches.clear()
    run((batch, device), ["some text"] * 1000)
    assert [kernel for kernel, _, _ in device.launches] == [
        "mark_documents",
        "find_added_tokens",
        "cut_pieces",
        "encode_pieces",
        "merge_medium",
        "merge_long",
        "count_ids",
        "collect_ids",
    ]


def test_texts_that_kernels_cannot_read():
    batch, device = batch_of(Tokenizer.default())
    offsets = device.to_device(np.array([0, 1], np.int64))
    with pytest.raises(ValueError, match="a batch of 0 bytes; 1 to 2146435072 are possible"):
        batch.encode(device.zeros(SLACK, np.uint8), offsets)
    with pytest.raises(ValueError, match="the text of a batch must begin at a multiple of 8"):
        batch.encode(device.zeros(SLACK + 9, np.uint8)[1:], offsets)


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ({"model": WordPiece(vocab={"[UNK]": 0, "a": 1})}, "exact mode: the model is not byte-level BPE: WordPiece"),
        ({"normalizer": NormalizerSequence([NFC(), NFKC()])}, r"exact mode: the normalizer NFKC\(\)"),
        ({"pre_tokenizer": ByteLevel(add_prefix_space=True)}, "cut by patterns: ByteLevel.add_prefix_space=True"),
        ({"pre_tokenizer": SPELLS}, "a pre-tokenizer that does more, or less, than to cut by patterns"),
        (
            {"pre_tokenizer": PreTokenizerSequence([Digits(individual_digits=True), Metaspace()])},
            "exact mode: the model is not byte-level BPE: BPE",
        ),
        (
            {
                "pre_tokenizer": PreTokenizerSequence(
                    [Split(pattern=Pattern(Regex=r"\d"), behavior="MergedWithNext"), SPELLS]
                )
            },
            "a pre-tokenizer that does more, or less, than to cut by patterns",
        ),
        ({"pre_tokenizer": splits(r"a(?=bc)|b")}, "a condition that looks further than the next character"),
        ({"pre_tokenizer": splits(r"\s+$")}, "its searches may fail late, again and again"),
        ({"pre_tokenizer": splits("x*")}, "it can match nothing"),
        ({"pre_tokenizer": splits(r"[\s\S]+")}, "no two characters have a sure boundary between them"),
        ({"pre_tokenizer": splits("|".join(a + b for a, b in zip("abcdefghijklmnopqr", "ABCDEFGHIJKLMNOPQR", strict=True)))},
         "37 classes of characters; at most 31 are possible"),
    ],
)  # fmt: skip
def test_what_is_refused_at_once(components, error):
    tok = small()
    spec = TokenizerSpec(**{"model": tok.spec.model, "pre_tokenizer": WORDS, **components})
    with pytest.raises(UnsupportedTokenizerError, match=error):
        ExactBatch(Tokenizer.from_spec(spec), device_of())


def test_a_control_token_that_text_becomes_by_another_spelling():
    """Its name is "<s>Ġ", which is searched for as such; as a token it is "<s> ", which merging makes."""
    merges = [(b"<", b"s"), (b"<s", b">"), (b"<s>", b" ")]
    tok = small(merges, added_tokens=[AddedToken(spell(b"<s> "), special=True)])
    with pytest.raises(UnsupportedTokenizerError, match="control token 258 is made of text that does not spell it"):
        ExactBatch(tok, device_of())
