"""Giant pieces of byte-level BPE that are cut on the device."""

from __future__ import annotations

import random

import numpy as np
import pytest
from exact_batches import check, run
from full_run import share
from msgspec.structs import replace
from small_tokenizers import SPELLS, random_merges, small

from tokenweir.encode.spec import PreTokenizerSequence, Split
from tokenweir.encode.spec.values import Pattern
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.modes.exact import PieceBatch

LINES = PreTokenizerSequence((Split(pattern=Pattern(Regex=r"[^\n]+|\n"), behavior="Isolated"), SPELLS))
"""A line is a piece."""

LONG_PIECES = 2  # the word of the batch's counters


@pytest.fixture
def merged_pieces(monkeypatch):
    """The sizes of the pieces that blocks merge."""
    sizes = []
    merge = PieceBatch.merge

    def noted(batch, *arguments):
        counters = batch.device.to_host(batch.counters)
        queue = batch.device.to_host(batch.scratch[1])[: 2 * counters[LONG_PIECES]]
        sizes.extend(queue[1::2].tolist())
        merge(batch, *arguments)

    monkeypatch.setattr(PieceBatch, "merge", noted)
    return sizes


def test_any_merges(mode_of, merged_pieces):
    letters = "a日本é語"
    for seed in range(share(12)):
        pick = random.Random(seed)
        merges = random_merges(pick, sorted(set(letters.encode())), 40)
        tok = small(merges, LINES, ignore_merges=seed % 2 == 1)
        sizes = [1000, 1023, 1024, 1500, 2500, 4000]
        documents = ["".join(pick.choices(letters, k=size)) for size in sizes]
        documents += ["日\n" + documents[-1] + "\n日本", "<x>" + "日本" * 900]
        assert not check(mode_of(tok, seed), documents)
    assert merged_pieces


def test_only_the_inside_of_oversized_pieces_is_cut(mode_of, merged_pieces):
    """A merge joins two of the three characters: nothing else does."""
    tok = small([("日".encode()[:1], "日".encode()[1:2])], LINES)
    assert not check(mode_of(tok), ["日本語" * 200])
    assert merged_pieces == [1800]
    merged_pieces.clear()
    assert not check(mode_of(tok), ["日本語" * 2000])
    assert sum(merged_pieces) < 3 * 1024 + 600, "what is left are the two ends"


def test_tokens_that_merging_does_not_make_stay_whole(mode_of):
    """With tokens that merges do not yield, oversized pieces are not cut: their parts would be looked up as pieces."""
    tok = small([("日".encode()[:1], "日".encode()[1:2])], LINES)
    vocab = {**tok.spec.model.vocab, "".join(small([]).id_to_token(b) for b in "本".encode()): 300}
    assert "本" not in vocab
    model = replace(tok.spec.model, vocab=vocab, ignore_merges=True)
    tok = Tokenizer.from_spec(replace(tok.spec, model=model))
    assert tok.encode("本") == [300] and 300 not in tok.encode("日本" * 900)
    assert not check(mode_of(tok), ["日本" * 1500, "本"])


def test_a_vocabulary(mode_of, data, merged_pieces):
    tok = Tokenizer.from_file(data("tokenizers/openai/cl100k_base.tiktoken"))
    text = "".join(c for c in data("corpora/zh-hongloumeng.txt").read_text("utf-8") if "\u4e00" <= c < "\u9fff")[:4000]
    found, refused = run(mode_of(tok), [text, f"红{text[:700]}"])
    assert refused == {}
    assert found == [tok.encode(text), tok.encode(f"红{text[:700]}")]
    assert max(merged_pieces) < 2200 and np.sum(merged_pieces) < 5000
