"""BPE of characters on the device (Llama 2, Mistral, Gemma) against the CPU's encoder."""

from __future__ import annotations

import random
import re
from functools import partial

import numpy as np
import pytest
from exact_batches import check, check_guards, check_what_is_left_out, run
from full_run import share
from small_tokenizers import BYTES, of_pieces

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
from tokenweir.gpu import GpuEncoder, device_pipeline
from tokenweir.gpu.modes import batch
from tokenweir.verify.adversarial import strings

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
    tokens = dict.fromkeys(["<unk>", *BYTES, *characters, *map("".join, merges)])
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


FAMILIES = [f"{family}/tokenizer.json" for family in ("llama-2", "gemma", "mistral-7b-v0.3", "phi-3-mini")]
MODELS = ["llama-2/tokenizer.model", "mistral-7b-v0.3/tokenizer.model", "mistral-common/tokenizer.model.v1"]


@pytest.mark.parametrize("family", [*FAMILIES, *MODELS])
def test_families(mode_of, data, family):
    tok = Tokenizer.from_file(data(f"tokenizers/{family}"))
    special = [token.content for token in tok.added_tokens][:12]
    documents = [text for group in strings(share(1200), seed=family, special_tokens=special).values() for text in group]
    documents += [
        "",
        " ",
        "▁",
        "</s>",
        "a</s>",
        "<s>a<s> b<s><s>",
        "\n\n x",
        "  the",
        " " * 45 + "x" + " " * 300,
        "the " * 90,
        "𠮷野家" * 40,
        "x" * 700,
    ]
    batch = mode_of(tok, len(family))
    for parse_special in (True, False):
        refused = check(batch, documents, parse_special=parse_special)
        signs = {i: SIGN for i, text in enumerate(documents) if "▁" in text}
        assert {i: reason for i, reason in refused.items() if reason != ODD} == {
            i: reason for i, reason in signs.items() if refused.get(i) != ODD
        }
        assert "phi-3-mini" in family or ODD not in refused.values()


@pytest.mark.parametrize("components", COMPONENTS)
def test_any_merges(mode_of, components):
    """By a thread, a warp and a block, which the length decides; some characters are bytes."""
    pick = random.Random(components)
    added = [AddedToken("<x>"), AddedToken("ab"), AddedToken("日")]
    for seed in range(share(10)):
        characters = ["a", "b", "é", "日", "𠮷", "▁", " "]
        letters = [*characters[:5], " ", "c", "ß", "語", "🙂"]
        merges = [*random_merges(pick, characters[:6], pick.randint(1, 40)), ("𠮷", "𠮷"), ("日", "é"), ("é", "日")]
        tok = of_merges(characters, dict.fromkeys(merges), added, **COMPONENTS[components])
        sizes = [0, 1, 2, 3, 8, 20, 33, 60, 120, 300]
        documents = ["".join(pick.choices(letters, k=size)) for size in sizes for _ in range(2)]
        documents += [
            "".join(pick.choices(["<x>", "ab", "日", "a", " ", "é"], k=pick.randint(0, 9))) for _ in range(80)
        ]
        batch = mode_of(tok, seed)
        assert not check(batch, documents)
        assert not check(batch, documents, parse_special=False)


of_scores = partial(of_pieces, "BPE", remove_extra_whitespaces=False)


@pytest.mark.parametrize("dummy", [True, False])
@pytest.mark.parametrize("ties", [1, 3, 1000])
def test_any_scores(mode_of, dummy, ties):
    """`ties` pieces each have the same score; some characters are bytes, some pieces are user-defined."""
    pick = random.Random(ties)
    added = [AddedToken("<x>"), AddedToken("ab", special=True)]
    for seed in range(share(8)):
        characters = ["a", "b", "é", "日", "▁"]
        made = [left + right for left, right in random_merges(pick, characters, pick.randint(1, 40))]
        user_defined = pick.sample(["ba", "▁▁", "日b", "aab", "▁b", "🙂"], pick.randint(0, 4))
        pieces = dict.fromkeys(piece for piece in [*characters, *made] if piece not in (*user_defined, "ab"))
        scores = {piece: -float(i // ties) for i, piece in enumerate(pieces)}
        tok = of_scores(scores, added=added, add_dummy_prefix=dummy, user_defined=user_defined, byte_fallback=True)
        letters = ["a", "b", "é", "日", " ", " ", "ß", "🙂"]
        sizes = [0, 1, 2, 3, 8, 20, 33, 60, 120, 300]
        documents = ["".join(pick.choices(letters, k=size)) for size in sizes for _ in range(2)]
        documents += [" " * n + "a" * n for n in (3, 17, 40, 290)]
        documents += ["".join(pick.choices(["<x>", "ab", "日", "a", " "], k=pick.randint(0, 9))) for _ in range(60)]
        batch = mode_of(tok, seed)
        assert not check(batch, documents)
        assert not check(batch, documents, parse_special=False)


@pytest.mark.parametrize(("place", "dummy"), [(3, True), (0, False)])
def test_user_text_beside_control_pieces_of_the_model(mode_of, place, dummy):
    tok = of_scores({"▁": 0.0, "a": -1.0}, user_defined=["<turn>"], add_dummy_prefix=dummy, byte_fallback=True)
    documents = ["a<turn>", "a <turn>a", "<turn>"]
    guards = np.array([len(documents[0]) + place], np.int64)
    found, refused = run(mode_of(tok), documents, guards=guards)
    assert refused == {1: "it has user text, and the model has control tokens of its own"}
    assert [found[i] for i in (0, 2)] == [tok.encode(documents[i]) for i in (0, 2)]


@pytest.mark.parametrize("components", ["no prefix", "before each", "before the first"])
@pytest.mark.parametrize("n", [30, 31, 32, 33, 63, 64, 8191, 8192])
def test_sizes_around_those_of_words_and_blocks(mode_of, components, n):
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
    assert not check(mode_of(tok, n, max_bytes=8200), documents)


@pytest.mark.parametrize("components", COMPONENTS)
def test_guards(mode_of, components):
    added = [AddedToken("<x>", special=True), AddedToken("<x>a", special=True), AddedToken("é>", special=True)]
    tok = of_merges("abé▁ <x>", [("a", "b"), ("▁", "a"), ("<", "x")], added, **COMPONENTS[components])
    pick = random.Random(components)
    documents = ["".join(pick.choices(["<x>", "a", " ", "é>", "b"], k=pick.randint(0, 9))) for _ in range(60)]
    assert not check_guards(mode_of(tok), documents, pick)


@pytest.mark.parametrize("components", ["no prefix", "before each"])
def test_documents_that_are_left_out(mode_of, components):
    tok = of_merges("ab▁", [("a", "b"), ("a", "a"), ("aa", "aa")], **COMPONENTS[components])
    check_what_is_left_out(mode_of(tok, max_bytes=64))


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


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"unused": ["ab"]}, "unused pieces, or pieces with a character that is none"),
        (
            {"byte_fallback": False},
            "unused pieces that merging may make, or a model in which an unknown character becomes no bytes",
        ),
        ({"user_defined": ["a b"]}, "a user-defined piece with a space"),
        ({"added": [AddedToken("aa", special=True)]}, "control tokens that text may become"),
    ],
)
def test_models_of_scores_that_are_refused(device, options, error):
    tok = of_scores({"▁": 0.0, "a": -1.0, "b": -2.0, "aa": -3.0}, **{"byte_fallback": True} | options)
    with pytest.raises(UnsupportedTokenizerError, match=f"^exact mode: {error}$"):
        GpuEncoder(tok, device=device)


def test_vocabularies_that_are_refused(device):
    with pytest.raises(UnsupportedTokenizerError, match=r"^exact mode: a vocabulary without U\+2581$"):
        GpuEncoder(of_merges("ab", **COMPONENTS["no prefix"]), device=device)
    merges = [("<", "0"), ("<0", "x"), ("<0x", "4"), ("<0x4", "1"), ("<0x41", ">")]
    with pytest.raises(UnsupportedTokenizerError, match="^exact mode: text that becomes a token of a byte$"):
        GpuEncoder(of_merges("<0x41>", merges), device=device)


def test_the_longest_text_has_room_for_the_space_before_it(kernels_on, monkeypatch):
    for module in (batch, device_pipeline):
        monkeypatch.setattr(module, "MAX_BYTES", 64)
    tok = of_merges("ab▁", **COMPONENTS["before each"])
    gpu = GpuEncoder(tok, device=kernels_on())
    for text in ("a" * 64, "b" * 63):
        assert [ids.tolist() for ids in gpu.encode_batch([text]).to_host()] == [tok.encode(text)]
    assert gpu.stats.on_cpu == {"longer than 63 bytes": 1}
