"""BPE of characters on the device (Llama 2, Mistral, Gemma) against the CPU's encoder."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from adversarial import strings
from exact_batches import check, run

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import (
    BPE,
    AddedToken,
    Metaspace,
    NormalizerSequence,
    Pattern,
    Prepend,
    Replace,
    TokenizerSpec,
    WhitespaceSplit,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import GpuEncoder
from tokenweir.gpu.characters import CharacterBatch

SIGN = "it has a U+2581"
ODD = "it has an added token that takes white space along or wants no word beside it"
SPACES = Replace(pattern=Pattern(String=" "), content="▁")
COMPONENTS = {
    "plain": {},
    "no prefix": {"normalizer": SPACES},
    "before each": {"normalizer": NormalizerSequence((Prepend("▁"), SPACES))},
    "before the first": {"pre_tokenizer": Metaspace(replacement="▁", prepend_scheme="first", split=False)},
    "metaspace without": {"pre_tokenizer": Metaspace(replacement="▁", prepend_scheme="never", split=False)},
}


def of_merges(characters, merges=(), added=(), **components):
    """A tokenizer of these characters, of bytes, and of merges."""
    tokens = dict.fromkeys(["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *characters, *map("".join, merges)])
    model = BPE(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=list(merges),
        unk_token="<unk>",
        byte_fallback=True,
        fuse_unk=True,
    )
    return Tokenizer.from_spec(TokenizerSpec(model=model, added_tokens=tuple(added), **components))


def random_merges(pick, characters, count):
    tokens, merges = [*characters], {}
    for _ in range(count):
        left, right = pick.choice(tokens), pick.choice(tokens)
        if len(left + right) <= 7:
            merges[left, right] = None
            tokens.append(left + right)
    return [*merges]


@pytest.fixture(scope="module")
def batch_of(kernels_on):
    def batch_of(tok, seed=1, **options):
        device = kernels_on(seed)
        return CharacterBatch(tok, device, **{"workers": 2, **options}), device

    return batch_of


@pytest.mark.parametrize("family", ["llama-2", "gemma", "mistral-7b-v0.3", "phi-3-mini"])
def test_families(batch_of, data, family):
    tok = Tokenizer.from_file(data(f"tokenizers/{family}/tokenizer.json"))
    special = [token.content for token in tok.added_tokens][:12]
    documents = [text for group in strings(400, seed=family, special_tokens=special).values() for text in group]
    documents += [
        "",
        " ",
        "▁",
        "</s>",
        "a</s>",
        "<s>a<s> b<s><s>",
        "\n\n x",
        "  the",
        "the " * 90,
        "𠮷野家" * 40,
        "x" * 700,
    ]
    batch = batch_of(tok, len(family))
    for parse_special in (True, False):
        refused = check(batch, documents, parse_special=parse_special)
        signs = {i: SIGN for i, text in enumerate(documents) if "▁" in text}
        assert {i: reason for i, reason in refused.items() if reason != ODD} == {
            i: reason for i, reason in signs.items() if refused.get(i) != ODD
        }
        assert family == "phi-3-mini" or ODD not in refused.values()


@pytest.mark.parametrize("components", COMPONENTS)
def test_any_merges(batch_of, components):
    """By a thread, a warp and a block, which the length decides; some characters are bytes."""
    pick = random.Random(components)
    added = [AddedToken("<x>"), AddedToken("ab"), AddedToken("日")]
    for seed in range(10):
        characters = ["a", "b", "é", "日", "𠮷", "▁", " "]
        letters = [*characters[:5], " ", "c", "ß", "語", "🙂"]
        merges = [*random_merges(pick, characters[:6], pick.randint(1, 40)), ("𠮷", "𠮷"), ("日", "é"), ("é", "日")]
        tok = of_merges(characters, dict.fromkeys(merges), added, **COMPONENTS[components])
        sizes = [0, 1, 2, 3, 8, 20, 33, 60, 120, 300]
        documents = ["".join(pick.choices(letters, k=size)) for size in sizes for _ in range(2)]
        documents += [
            "".join(pick.choices(["<x>", "ab", "日", "a", " ", "é"], k=pick.randint(0, 9))) for _ in range(80)
        ]
        batch = batch_of(tok, seed)
        assert not check(batch, documents)
        assert not check(batch, documents, parse_special=False)


@pytest.mark.parametrize("components", ["no prefix", "before each", "before the first"])
@pytest.mark.parametrize("n", [30, 31, 32, 33, 63, 64, 8191, 8192])
def test_sizes_around_those_of_words_and_blocks(batch_of, components, n):
    added = [AddedToken("<x>"), AddedToken("<y>", special=True)]
    tok = of_merges("ab▁", [("a", "b"), ("▁", "a"), ("▁", "▁")], added, **COMPONENTS[components])
    documents = [
        "ab" * n,
        "",
        "a" * (n - 3) + "<x>",
        "<y>" + "b" * (n - 3),
        " " * n,
        "<x>a<y>" * (n // 7),
        "x" + "a" * n,
    ]
    assert not check(batch_of(tok, n), documents)


@pytest.mark.parametrize("components", COMPONENTS)
def test_guards(batch_of, components):
    added = [AddedToken("<x>", special=True), AddedToken("<x>a", special=True), AddedToken("é>", special=True)]
    tok = of_merges("abé▁ <x>", [("a", "b"), ("▁", "a"), ("<", "x")], added, **COMPONENTS[components])
    pick = random.Random(components)
    documents = ["".join(pick.choices(["<x>", "a", " ", "é>", "b"], k=pick.randint(0, 9))) for _ in range(60)]
    guarded = [sorted(pick.sample(range(len(d)), pick.randint(0, len(d) // 3))) for d in documents]
    places, begin = [], 0
    for document, characters in zip(documents, guarded, strict=True):
        places += [begin + len(document[:c].encode()) for c in characters]
        begin += len(document.encode())
    found, refused = run(batch_of(tok), documents, guards=np.array(places, np.int64))
    assert refused == {}
    expected = [
        tok.encode(document, add_special_tokens=False, guarded=characters)
        for document, characters in zip(documents, guarded, strict=True)
    ]
    assert found == expected


@pytest.mark.parametrize("components", ["no prefix", "before each"])
def test_documents_that_are_left_out(batch_of, components):
    tok = of_merges("ab▁", [("a", "b"), ("a", "a"), ("aa", "aa")], **COMPONENTS[components])
    documents = ["ab", b"\xff", b"\xe6\x97", "a▁", "a" * 200, b"\x97a", "", "ba"]
    found, refused = run(batch_of(tok, max_bytes=64), documents)
    invalid = "it is not UTF-8"
    assert refused == {1: invalid, 2: invalid, 3: SIGN, 4: "giant piece", 5: invalid}
    assert [found[i] for i in (0, 6, 7)] == [tok.encode(documents[i]) for i in (0, 6, 7)]


def test_the_encoder(device, data):
    tok = Tokenizer.from_file(data("tokenizers/llama-2/tokenizer.json"))
    encoder = GpuEncoder(tok, device=device)
    texts = ["The weir holds the river back.", "", "a ▁ b", "水<s>水", b"b\xff"]
    wanted = [tok.encode(text if isinstance(text, str) else text.decode("utf-8", "replace")) for text in texts]
    assert [ids.tolist() for ids in encoder.encode_batch(texts).to_host()] == wanted
    assert encoder.stats.on_cpu == {SIGN: 1, "it is not UTF-8": 1}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"pre_tokenizer": WhitespaceSplit()}, "exact mode: None and WhitespaceSplit() before BPE of characters"),
        (
            {"added_tokens": (AddedToken("A", normalized=True),)},
            "exact mode: added tokens of normalized text before BPE of characters",
        ),
        (
            {**COMPONENTS["before each"], "added_tokens": (AddedToken("x"),)},
            "exact mode: an added token of one byte, where a space follows it",
        ),
        (
            {**COMPONENTS["before the first"], "added_tokens": (AddedToken(" x"),)},
            "exact mode: an added token that begins with the space before a text",
        ),
        ({"added_tokens": (AddedToken("ab", special=True),)}, "exact mode: control tokens that text may become"),
        (
            {"model": BPE(vocab={"<unk>": 0, "a": 1}, merges=[], unk_token="<unk>")},
            "exact mode: a model of characters that looks at their places, or in which an unknown one becomes no bytes",
        ),
        (
            {"model": BPE(vocab={"a": 0, "a</w>": 1}, merges=[], end_of_word_suffix="</w>")},
            "exact mode: a model of characters that looks at their places, or in which an unknown one becomes no bytes",
        ),
    ],
)
def test_what_is_refused(device, change, error):
    tok = of_merges("ab▁", [("a", "b")])
    tok = Tokenizer.from_spec(TokenizerSpec(**{"model": tok.spec.model, **change}))
    with pytest.raises(UnsupportedTokenizerError, match=f"^{re.escape(error)}$"):
        GpuEncoder(tok, device=device)


def test_vocabularies_that_are_refused(device):
    with pytest.raises(UnsupportedTokenizerError, match=r"^exact mode: a vocabulary without U\+2581$"):
        GpuEncoder(of_merges("ab", **COMPONENTS["no prefix"]), device=device)
    merges = [("<", "0"), ("<0", "x"), ("<0x", "4"), ("<0x4", "1"), ("<0x41", ">")]
    with pytest.raises(UnsupportedTokenizerError, match="^exact mode: text that becomes a token of a byte$"):
        GpuEncoder(of_merges("<0x41>", merges), device=device)
