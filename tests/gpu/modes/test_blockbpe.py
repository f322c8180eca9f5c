"""BlockBPE's kernels against the paper's Algorithm 1, and against the CPU form of the same ids.

Texts are short, since each CUDA thread is a fiber here; so blocks are small too, but where the paper's own are tested.
"""

from __future__ import annotations

import random
from itertools import product

import pytest
from blockbpe_reference import BlockBpeReference
from exact_batches import check, check_guards, run
from full_run import share
from small_tokenizers import WORDS, random_merges, small

from tokenweir.encode._core import byte_alphabet
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import (
    NFC,
    AddedToken,
    ByteLevel,
    Metaspace,
    RankBPE,
    TokenizerSpec,
    WordPiece,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.modes.blockbpe import BlockBpeMode, unsplit
from tokenweir.verify.adversarial import strings


def random_texts(pick, letters, count, longest):
    return [bytes(pick.choices(letters, k=pick.randint(0, longest))) for _ in range(count)]


def by_merges(merges, added=()):
    """A tokenizer of these merges, and the reference."""
    tokens = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *(left + right for left, right in merges)])
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tok = small(merges, ignore_merges=True, added_tokens=tuple(added))
    special = {token.content.encode(): token.id for token in tok.added_tokens}
    return tok, BlockBpeReference(vocabulary, merges, special)


@pytest.fixture(params=[False, True], ids=["ours", "literal"])
def literal(request):
    """Whether a pass makes one merge, as Algorithm 1 is printed, or all that can be made at once."""
    return request.param


@pytest.mark.parametrize(("letters", "block", "longest"), [(b"ab", 32, 90), (b"abc", 64, 150), (b"a\xe6\x97 ", 96, 60)])
def test_merges(kernels_on, letters, block, longest, literal):
    pick = random.Random(letters)
    for seed in range(share(8 if literal else 30)):
        device = kernels_on(seed)
        merges = random_merges(pick, letters, pick.randint(0, 25))
        tok, reference = by_merges(merges)
        texts = [*random_texts(pick, letters, 6, longest), letters[:1] * longest]
        batch = BlockBpeMode(tok, device, block=block, literal=literal)
        assert run((batch, device), texts) == ([reference.encode(text) for text in texts], {}), (merges, texts)


@pytest.mark.parametrize(("letters", "block"), [(b"ab", 32), (b"abcd", 64)])
def test_ranks(kernels_on, letters, block, literal):
    """Several pairs may have one rank, and the halves of a token be rarer than the token."""
    pick = random.Random(letters)
    for seed in range(share(8 if literal else 30)):
        device = kernels_on(seed)
        tokens = {left + right for left, right in random_merges(pick, letters, pick.randint(1, 25))}
        tokens = [*sorted(tokens), *(bytes([byte]) for byte in range(256))]
        pick.shuffle(tokens)
        ranks = {token: rank for rank, token in enumerate(tokens)}
        tok = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks)))
        reference = BlockBpeReference(ranks)
        texts = random_texts(pick, letters, 6, 100)
        batch = BlockBpeMode(tok, device, block=block, literal=literal)
        assert run((batch, device), texts) == ([reference.encode(text) for text in texts], {}), (ranks, texts)


def test_every_short_text(device, literal):
    """Of two letters, under merges that overlap themselves and create pairs which go first."""
    merges = [(b"aa", b"b"), (b"b", b"aa"), (b"a", b"a"), (b"b", b"b"), (b"bb", b"bb"), (b"aa", b"aa"), (b"a", b"bb")]
    tok, reference = by_merges(merges)
    texts = ["".join(letters) for n in range(9) for letters in product("ab", repeat=n)]
    expected = [reference.encode(text.encode()) for text in texts]
    assert run((BlockBpeMode(tok, device, block=32, literal=literal), device), texts) == (expected, {})


@pytest.mark.parametrize(("one_a_pass", "kernel"), [(False, "blockbpe"), (True, "algorithm1")])
def test_each_has_a_kernel_of_its_own(device, monkeypatch, one_a_pass, kernel):
    launched, launch = [], device.launch
    monkeypatch.setattr(device, "launch", lambda name, *args: (launched.append(name), launch(name, *args)))
    run((BlockBpeMode(small(), device, block=32, literal=one_a_pass), device), ["ab"])
    assert launched == [kernel, "count_ids", "collect_ids"]


@pytest.mark.parametrize("block", [32, 256, 512, 1024])
def test_the_blocks_of_the_paper(kernels_on, block, literal):
    """Added tokens between, and more than fits into shared memory."""
    tok, _ = by_merges([(b"a", b"b"), (b"ab", b"ab"), (b"c", b"ab")], [AddedToken("<s>")])
    texts = ["ab<s>abab" * 3, "", "<s>", "x" * 2500 + "cab" * 8, "c" * 2048 + "ab"]
    device = kernels_on(block)
    assert not check((BlockBpeMode(tok, device, block=block, literal=literal), device), texts)


@pytest.mark.parametrize("n", [2047, 2048, 2049, 5000])
def test_strings_that_do_not_fit_into_shared_memory(device, n):
    merges = [(b"a", b"a"), (b"aa", b"aa"), (b"aaaa", b"b"), (b"b", b"b"), (b"aa", b"c"), (b"c", b"aa")]
    tok, _ = by_merges(merges, [AddedToken("<s>")])
    pick = random.Random(n)
    texts = ["a" * n, "".join(pick.choices("aaabc", k=n - 3)) + "<s>", "<s>" + "ab" * (n // 2)]
    batch = BlockBpeMode(tok, device, block=64)
    assert not check((batch, device), texts)


@pytest.mark.parametrize(
    "name", ["gpt2/tokenizer.json", "llama-3.1/tokenizer.json", "openai/cl100k_base.tiktoken", "default"]
)
def test_vocabularies(kernels_on, data, name):
    """Adversarial texts; the plain reference for some, the CPU form for all."""
    tok = Tokenizer.default() if name == "default" else Tokenizer.from_file(data(f"tokenizers/{name}"))
    device = kernels_on(len(name))
    batch = BlockBpeMode(tok, device, block=32)
    groups = strings(share(1000), seed=name, special_tokens=list(tok.special_tokens)).values()
    texts = [text for group in groups for text in group if len(text) < 500]
    assert not check((batch, device), texts)
    assert not check((batch, device), texts[::5], parse_special=False)
    reference = reference_of(tok)
    for text in texts[::7]:
        assert reference.encode(text.encode()) == batch.tokenizer.encode(text, add_special_tokens=False), text


def reference_of(tok):
    special = {token.content.encode(): token.id for token in tok.added_tokens}
    model = tok.spec.model
    if isinstance(model, RankBPE):
        return BlockBpeReference(model.ranks, None, special)
    letters = {ord(letter): byte for byte, letter in enumerate(byte_alphabet())}

    def unspelled(token):
        return bytes(letters[ord(letter)] for letter in token) if all(ord(c) in letters for c in token) else None

    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model.merges]
    plain = {token: unspelled(token) for token in model.vocab}
    return BlockBpeReference(
        {plain[token]: i for token, i in model.vocab.items()},
        [(plain[left], plain[right]) for left, right in merges],
        special,
    )


def test_bytes_that_are_no_text(device):
    tok = Tokenizer.default()
    reference = reference_of(tok)
    pick = random.Random(1)
    texts = [bytes(pick.choices(range(256), k=pick.randint(0, 60))) for _ in range(60)]
    expected = [reference.encode(text) for text in texts]
    assert run((BlockBpeMode(tok, device, block=32), device), texts) == (expected, {})


ADDED = ["<s>", "<s><s>", "<|a|>", "<", "ab<", "<|", "日", "|>x"]


def test_special_tokens_that_overlap(kernels_on):
    """The leftmost counts, and of those that begin there the longest, as in the CPU's search."""
    pick = random.Random(2)
    fragments = [*ADDED, "s>", "a", "b", ">", "日"[:1], " "]
    for seed in range(share(15)):
        device = kernels_on(seed)
        added = [AddedToken(content, special=pick.random() < 0.5) for content in pick.sample(ADDED, 4)]
        tok, reference = by_merges([(b"a", b"b"), (b"<", b"s"), (b"<s", b">")], added)
        texts = ["".join(pick.choices(fragments, k=pick.randint(0, 40))) for _ in range(8)]
        batch = BlockBpeMode(tok, device, block=32)
        expected = [reference.encode(text.encode()) for text in texts]
        assert expected == [batch.tokenizer.encode(text) for text in texts]
        assert run((batch, device), texts) == (expected, {})


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word"])
def test_tokens_that_look_around_are_the_hosts(device, flag):
    tok, _ = by_merges([(b"a", b"b")], [AddedToken("<s>", **{flag: True}), AddedToken("<t>")])
    batch = BlockBpeMode(tok, device, block=32)
    odd = "it has an added token that takes white space along or wants no word beside it"
    assert check((batch, device), ["ab <s>", "ab<t>", "<s", "x<s>x"]) == dict.fromkeys((0, 3), odd)
    assert not check((batch, device), ["ab <s>"], parse_special=False)


def test_tokens_of_normalized_text_come_second(device):
    tok, _ = by_merges([], [AddedToken("b<", normalized=True), AddedToken("<s>"), AddedToken("x", normalized=True)])
    batch = BlockBpeMode(tok, device, block=32)
    texts = ["ab<s>", "<s>a", "xb<x"]
    assert not check((batch, device), texts)


def test_guarded_characters(kernels_on):
    """No special token covers one, and a string that has one yields no control token."""
    pick = random.Random(3)
    added = [AddedToken(content, special=True) for content in ("<s>", "<s>!", "ab", "日")]
    merges = [(b"a", b"b"), (b"ab", b"ab"), (b"<", b"s"), (b"<s", b">")]
    tok, _ = by_merges(merges, added)
    for seed in range(share(15)):
        device = kernels_on(seed)
        batch = BlockBpeMode(tok, device, block=32)
        texts = ["".join(pick.choices(["<s>", "!", "ab", "日", "x"], k=pick.randint(0, 12))) for _ in range(8)]
        assert not check_guards((batch, device), texts, pick)


def test_long_strings_are_the_hosts(device):
    batch = BlockBpeMode(Tokenizer.default(), device, block=32, max_bytes=5)
    refused = dict.fromkeys((1, 3), "longer than 5 bytes")
    assert check((batch, device), ["hello", "hello!", "", "日本"]) == refused


def test_many_strings(device):
    """More than a block has threads."""
    tok = Tokenizer.default()
    texts = [str(i) for i in range(1100)]
    assert not check((BlockBpeMode(tok, device, block=32), device), texts)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"normalizer": NFC()}, "^blockbpe: the normalizer NFC$"),
        (
            {"pre_tokenizer": ByteLevel(add_prefix_space=True)},
            r"^blockbpe: the pre-tokenizer ByteLevel\(add_prefix_space",
        ),
        ({"pre_tokenizer": Metaspace()}, r"^blockbpe: the pre-tokenizer Metaspace\("),
        ({"pre_tokenizer": None}, "^blockbpe: BPE without a ByteLevel pre-tokenizer$"),
        ({"model": WordPiece(vocab={"[UNK]": 0})}, "^blockbpe: WordPiece; only byte-level BPE is possible$"),
    ],
)
def test_what_is_refused(change, error):
    spec = TokenizerSpec(**{"model": Tokenizer.default().spec.model, "pre_tokenizer": WORDS, **change})
    with pytest.raises(UnsupportedTokenizerError, match=error):
        unsplit(Tokenizer.from_spec(spec))


@pytest.mark.parametrize(
    ("options", "error"), [({"block": 100}, "block must be"), ({"max_bytes": -1}, "max_bytes must be")]
)
def test_bad_options(device, options, error):
    with pytest.raises(ValueError, match=f"^{error}"):
        BlockBpeMode(Tokenizer.default(), device, **options)
