"""Pieces of byte-level BPE that are cut between characters that no token joins."""

from __future__ import annotations

import random

import pytest
from exact_batches import check, run
from full_run import share
from msgspec.structs import replace
from small_tokenizers import SPELLS, random_merges, small, spell

from tokenweir.encode.spec import PreTokenizerSequence, Split
from tokenweir.encode.spec.values import Pattern
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.modes import batch
from tokenweir.gpu.modes.exact import PieceBatch
from tokenweir.gpu.shared import constants
from tokenweir.verify.adversarial import strings

LINES = PreTokenizerSequence((Split(pattern=Pattern(Regex=r"[^\n]+|\n"), behavior="Isolated"), SPELLS))
"""A line is a piece."""

QUEUES = ("kTinyPieces", "kSmallPieces", "kShortPieces", "kMediumPieces", "kLongPieces")
COUNTERS = constants("common/documents.cuh")


@pytest.fixture
def queued(monkeypatch):
    """For each batch the number of pieces in each queue for merging."""
    batches = []
    merge = PieceBatch.merge

    def noted(batch, *arguments):
        counters = batch.device.to_host(batch.counters)
        batches.append([int(counters[COUNTERS[queue]]) for queue in QUEUES])
        merge(batch, *arguments)

    monkeypatch.setattr(PieceBatch, "merge", noted)
    return batches


def test_any_merges(mode_of, queued, monkeypatch):
    letters = "a日本é語 "
    for seed in range(share(12)):
        monkeypatch.setattr(batch, "SMALL_BYTES", (0, 1 << 20)[seed % 2])
        pick = random.Random(seed)
        merges = random_merges(pick, sorted(set(letters.encode())), 40)
        tok = small(merges, LINES, ignore_merges=seed % 2 == 1)
        sizes = [1, 2, 3, 4, 7, 12, 25, 90, 300, 1000, 2500]
        documents = ["".join(pick.choices(letters, k=size)) for size in sizes]
        documents += ["".join(pick.choices("a ", k=size)) for size in (5, 12, 30, 100, 300)]
        documents += ["日\n" + documents[-1] + "\n日本", "<x>" + "日本" * 900]
        assert not check(mode_of(tok, seed), documents)
    assert all(map(sum, zip(*queued, strict=True))), "every queue was used"


def test_characters_alone_are_not_merged(mode_of, queued):
    """Their ids, here one to three of each character, are in a table."""
    one, two, three = "日", "本", "語"
    merges = [
        (one.encode()[:1], one.encode()[1:2]),
        (one.encode()[:2], one.encode()[2:]),
        (two.encode()[1:2], two.encode()[2:]),
        (b"\xc3", b"\xa9"),
    ]
    tok = small(merges, LINES)
    assert [len(tok.encode(c)) for c in (one, two, three, "é", "ß")] == [1, 2, 3, 1, 2]
    document = (one + two + three + "éß") * 200
    assert not check(mode_of(tok), [document, one, two, "\n" + three, "é", "ß"])
    assert queued == [[0, 0, 0, 0, 0]]


def test_a_token_that_merging_does_not_make_is_only_a_whole_piece(mode_of, queued):
    """Of one character or two, or ASCII; parts of pieces are merged."""
    tok = small([("日".encode()[:1], "日".encode()[1:2]), (b"a", b"b")], LINES)
    whole = ["本", "語言", "本語", "xyz", "日a", "日"]
    vocab = {**tok.spec.model.vocab, **{spell(text.encode()): 300 + i for i, text in enumerate(whole)}}
    tok = Tokenizer.from_spec(replace(tok.spec, model=replace(tok.spec.model, vocab=vocab, ignore_merges=True)))
    for i, text in enumerate(whole):
        assert tok.encode(text) == [300 + i]
    assert not {*range(300, 306)} & {*tok.encode("日本" * 900), *tok.encode("xyz本")}
    pick = random.Random(1)
    lines = ["".join(pick.choices([*whole, "言", "é", "x", "y", "z"], k=pick.randint(1, 5))) for _ in range(300)]
    for seed in range(2):
        assert not check(mode_of(tok, seed), ["日本" * 1500, *whole, "\n".join(lines)])


@pytest.mark.parametrize("name", ["llama-3.1/tokenizer.json", "openai/o200k_base.tiktoken", "qwen3/tokenizer.json"])
def test_texts_beyond_ascii(mode_of, data, name):
    """Llama 3's vocabulary has tokens that its merges do not make."""
    tok = Tokenizer.from_file(data(f"tokenizers/{name}"))
    texts = [
        data(f"corpora/{corpus}").read_text("utf-8")[2000:5000]
        for corpus in ("zh-hongloumeng.txt", "ja-wagahai-neko.txt")
    ]
    kinds = strings(share(200), seed=f"cuts {name}")
    texts += [text for kind in kinds.values() for text in kind if not text.isascii()]
    refused = check(mode_of(tok), texts)
    assert set(refused.values()) <= {"Unicode's form C may change it"}
    assert 0 not in refused


def test_a_text_of_a_vocabulary_has_few_parts_to_be_merged(mode_of, data, queued):
    tok = Tokenizer.from_file(data("tokenizers/openai/cl100k_base.tiktoken"))
    text = "".join(c for c in data("corpora/zh-hongloumeng.txt").read_text("utf-8") if "\u4e00" <= c < "\u9fff")[:4000]
    found, refused = run(mode_of(tok), [text, f"红{text[:700]}"])
    assert refused == {}
    assert found == [tok.encode(text), tok.encode(f"红{text[:700]}")]
    (tiny, small_ones, *others), *_ = queued
    assert tiny + small_ones < 4700 * 0.06 and others == [0, 0, 0]
