"""Exact mode's kernels against the CPU's encoder."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from case_tables import cases
from exact_batches import check, check_guards, run
from full_run import FULL, share
from small_tokenizers import random_merges, small, splits

from tokenweir.encode.spec import AddedToken, RankBPE, Split, TokenizerSpec
from tokenweir.encode.spec.values import Pattern
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.encoded import SLACK
from tokenweir.gpu.modes.exact import WALK_BYTES, ByteLevelMode
from tokenweir.verify.adversarial import strings

CASES = cases(__file__)

DOCUMENTS = 100_000 if FULL else 500  # adversarial ones, which all vocabularies share
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


@pytest.mark.parametrize("family", FAMILIES)
def test_families(mode_of, data, family):
    name = FAMILIES[family]
    tok = Tokenizer.default() if name is None else Tokenizer.from_file(data(f"tokenizers/{name}"))
    batch, device = mode_of(tok, max_bytes=1 << 16)
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


TILE = 8192  # the bytes of a block of cut_pieces and of encode_pieces


@pytest.mark.parametrize("family", ["default", "o200k"])
def test_all_blocks_share_one_document(mode_of, data, family):
    name = FAMILIES[family]
    tok = Tokenizer.default() if name is None else Tokenizer.from_file(data(f"tokenizers/{name}"))
    texts = [text for group in strings(600, seed=f"long {family}").values() for text in group]
    random.Random(family).shuffle(texts)
    document = "".join(texts)
    whole = document * (1 + 6 * TILE // len(document.encode()))  # with its repeats across tiles at other places
    assert len(whole.encode()) > 6 * TILE
    for seed in range(2):
        assert not check(mode_of(tok, seed), [whole])


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


def test_special_cases_in_every_order(mode_of):
    documents = SPECIAL_CASES * 3
    for seed in range(6):
        batch = mode_of(Tokenizer.default(), seed)
        random.Random(seed).shuffle(documents)
        assert not check(batch, documents, parse_special=seed % 2 == 0)


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 8191, 8192, 8193])
def test_sizes_around_those_of_words_and_blocks(mode_of, n):
    batch = mode_of(Tokenizer.default())
    pick = random.Random(n)
    letters = "".join(pick.choices("ab c.1\n'", k=n))
    assert not check(batch, [letters])
    assert not check(batch, ["x" * min(n, 300), "", letters[::-1], "", ""])


def test_a_document_over_many_blocks(mode_of):
    pick = random.Random(7)
    pieces = ["the ", "of", " and", "\n\n", "日本語", "é", "1234", "    ", "!?", "<|im_start|>", "don't", "z" * 70]
    document = "".join(pick.choice(pieces) for _ in range(9000))
    for seed in range(2):
        assert not check(mode_of(Tokenizer.default(), seed), ["a", document, document[5:], ""])


@pytest.mark.parametrize(
    "piece", ["a", "ab", "abcde", " ", "\n", "7", "!", "é", "日本", "👨‍👩‍👧", "\0", "the", "aaab", "x\u0301"]
)
def test_the_largest_pieces_that_fit(mode_of, piece):
    """3,000 bytes each, merged by a block."""
    document = piece * (3000 // len(piece.encode()))
    assert not check(mode_of(Tokenizer.default(), len(piece), max_bytes=3004), [document, "and " + document])


@pytest.mark.parametrize("letters", ["ab", "aé", "日本a"])
def test_any_merges(mode_of, letters):
    """By a thread, a warp and a block, which the length decides."""
    pick = random.Random(letters)
    for seed in range(share(8)):
        merges = random_merges(pick, letters.encode(), pick.randint(1, 30))
        tok = small(merges, ignore_merges=seed % 3 == 0)
        sizes = [1, 2, 3, 8, 20, 33, 60, 120, 250, 270, 600]
        documents = ["".join(pick.choices(letters, k=size)) for size in sizes for _ in range(2)]
        documents += ["".join(word) for word in product(letters, repeat=5)]
        assert not check(mode_of(tok, seed, max_bytes=2000), documents)


@pytest.mark.parametrize("letters", ["ab", "é日"])
def test_any_ranks(mode_of, letters):
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
        assert not check(mode_of(tok, seed, max_bytes=2000), documents)


def test_a_merge_that_creates_a_pair_which_goes_first(mode_of):
    merges = [(b"ab", b"a"), (b"a", b"b")]
    assert not check(mode_of(small(merges)), ["ab" * n for n in (1, 2, 3, 17, 100, 400)])


@pytest.mark.parametrize("patterns", CASES["stages_and_what_they_leave_over"])
def test_stages_and_what_they_leave_over(mode_of, patterns):
    """Neighbouring characters that a pattern does not match are one piece, however many; each stage cuts within pieces."""
    merges = [(b"a", b"b"), (b" ", b"a"), (b"1", b"2"), (b"ab", b"ab"), (b"c", b"a"), (b"-", b"-"), (b"--", b"--")]
    tok = small(merges, splits(*patterns))
    pick = random.Random(patterns[0])
    documents = ["".join(pick.choices("aaabbbccx  \n12-一日é", k=pick.randint(0, 60))) for _ in range(share(600))]
    documents += ["-" * 9000 + "ab" + "-" * 50, "a" * 100, "é" * 300 + "12" * 30, "abab" * 50]
    for seed in range(2):
        assert not check(mode_of(tok, seed, max_bytes=20000), documents)


def test_added_tokens_that_overlap(mode_of):
    """The leftmost counts, then the longest, and whatever is inside a match does not."""
    contents = ["aa", "aaa", "ab", "bca", "  ", "   ", "<x>", "<x><y>", "y><", "é", "日本", "本"]
    added = [AddedToken(content) for content in contents]
    tok = small([(b"a", b"b")], added_tokens=added)
    pick = random.Random(3)
    parts = ["a", "b", "c", " ", "<x>", "<y>", "<", ">", "é", "日", "本"]
    documents = ["".join(pick.choices(parts, k=pick.randint(0, 25))) for _ in range(500)]
    for seed in range(3):
        assert not check(mode_of(tok, seed), documents)
    assert check(mode_of(tok), [" " * 40, " " * (WALK_BYTES + 40), "x"]) == {1: "oversized piece"}


def test_tokens_of_normalized_text_go_between_the_others(mode_of):
    added = [
        AddedToken("<a>", normalized=False),
        AddedToken("b<", normalized=True),
        AddedToken(">c", normalized=True),
        AddedToken("<a>c", normalized=True),
    ]
    tok = small(added_tokens=added)
    pick = random.Random(4)
    documents = ["".join(pick.choices("b<a>c", k=pick.randint(0, 12))) for _ in range(400)] + ["b<a>c", "<a><a>c"]
    assert not check(mode_of(tok), documents)


def test_what_an_added_token_takes_along_is_left_to_the_cpu(mode_of):
    added = [
        AddedToken("<l>", lstrip=True),
        AddedToken("<r>", rstrip=True),
        AddedToken("word", single_word=True),
        AddedToken("<n>"),
    ]
    tok = small(added_tokens=added)
    odd = "it has an added token that takes white space along or wants no word beside it"
    documents = ["a <l> b", "<n>", "a<r>  b", "words", "lr", "<", "wor"]
    assert check(mode_of(tok), documents) == {0: odd, 2: odd, 3: odd}
    assert check(mode_of(tok), documents, parse_special=False) == {}


def test_guards(mode_of):
    """No added token covers a guarded character; a shorter one before it may."""
    added = [AddedToken("<a>"), AddedToken("<a>bb"), AddedToken("<"), AddedToken("é>")]
    tok = small([(b"a", b"b")], added_tokens=added)
    pick = random.Random(5)
    documents = ["".join(pick.choices(["<a>", "bb", "<", "é>", "a", "b"], k=pick.randint(0, 12))) for _ in range(200)]
    for seed in range(2):
        assert not check_guards(mode_of(tok, seed), documents, pick)


def test_control_tokens_that_the_vocabulary_has(mode_of):
    """The model must not make one of text; where they are matched they are found before it could."""
    merges = [(b"<", b"s"), (b"<s", b">"), (b"a", b"<s>")]
    added = [AddedToken("<s>", special=True)]
    tok = small(merges, splits(r"\S+|\s+"), ignore_merges=True, added_tokens=added)
    documents = ["<s>", "a<s>", "<s", "x <s> y", "<<s>>"]
    for parse_special in (True, False):
        assert not check(mode_of(tok), documents, parse_special=parse_special)
    guards = np.array([0], np.int64)
    found, _ = run(mode_of(tok), documents, guards=guards)
    assert found[0] == tok.encode("<s>", add_special_tokens=False, guarded=[0])


class Recorder:
    """A device that keeps what it is asked for: kernels by their names, the rest by that of the method."""

    def __init__(self, device):
        self.device = device
        self.calls = []

    def __getattr__(self, name):
        def call(*args, **options):
            self.calls.append(args[0] if name == "launch" else name)
            return getattr(self.device, name)(*args, **options)

        return call


def test_a_batch_takes_few_launches_and_one_wait(device):
    recorder = Recorder(device)
    batch = ByteLevelMode(Tokenizer.default(), recorder)
    text = np.frombuffer(b"a " * 4500 + bytes(SLACK), np.uint8)
    text, offsets = device.to_device(text), device.to_device(np.array([0, 3, 9000]))
    recorder.calls.clear()
    batch.encode(text, offsets)
    kernels = "mark_documents find_added_tokens cut_pieces encode_pieces merge_short_pieces merge_pieces count_ids"
    assert recorder.calls == f"address words words {kernels} to_host empty empty collect_ids".split()
