"""Truncation: ids and columns are those of HuggingFace's library, and what the post-processor adds is kept."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
import tokenizers
from case_tables import cases
from full_run import share
from real_tokenizers import real_tokenizer

from tokenweir import Ragged, TextError, Tokenizer

CASES = cases(__file__)

FILES = ["bert-base-uncased", "t5-small", "llama-2", "mistral-7b-v0.3", "qwen3", "phi-3-mini", "gpt2"]
PIECES = CASES["pieces"]
SIDES = ["right", "left"]
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["ab", 262],
    "cls": ["abc", 263],
    "trim_offsets": True,
    "add_prefix_space": True,
}
COLUMNS = ("ids", "offsets", "type_ids", "special_tokens_mask", "word_ids", "sequence_ids")


@pytest.fixture(params=[*FILES, "roberta", "spaces"])
def pair(request, data, both):
    """A tokenizer of either library."""
    if request.param == "roberta":
        return both(post_processor=ROBERTA)
    if request.param == "spaces":
        return both(post_processor={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True})
    path = data(f"tokenizers/{request.param}/tokenizer.json")
    theirs = reference(str(path))
    theirs.no_padding()
    return real_tokenizer(path), theirs


reference = cache(tokenizers.Tokenizer.from_file)


def drawn(seed, n):
    """Texts drawn from the pieces."""
    rng = random.Random(seed)
    return ["".join(rng.choices(PIECES, k=rng.randrange(12))) for _ in range(n)]


def columns(encoding):
    return {name: list(getattr(encoding, name)) for name in COLUMNS}


@pytest.mark.parametrize("side", SIDES)
def test_one_text(pair, side):
    ours, theirs = pair
    added = len(ours.encode(""))
    texts = drawn(1, share(100))
    for length in (added, added + 1, 6, 20):
        theirs.enable_truncation(max(length, 1), direction=side)
        bound = {"max_tokens": max(length, 1), "truncation_side": side}
        wanted = [theirs.encode(text) for text in texts]
        assert [ours.encode(text, **bound) for text in texts] == [each.ids for each in wanted]
        for text, each in zip(texts, wanted, strict=True):
            assert ours.encode_array(text, **bound).tolist() == each.ids
            assert columns(ours.encode_with_offsets(text, **bound)) == columns(each)
        rows = ours.encode_batch(texts, offsets=True, **bound)
        assert [row.tolist() for row in rows] == [each.ids for each in wanted]
        spans = [rows.spans[a:b].tolist() for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]
        assert spans == [[list(span) for span in each.offsets] for each in wanted]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("strategy", ["longest_first", "only_first", "only_second"])
def test_pairs_and_words(pair, side, strategy):
    ours, theirs = pair
    added = len(ours.encode_pair("", "").ids)
    refused = 0
    for first, second in zip(drawn(2, share(60)), drawn(3, share(60)), strict=True):
        for length in (added + 1, added + 4, added + 9):
            theirs.enable_truncation(length, direction=side, strategy=strategy)
            bound = {"max_tokens": length, "truncation_side": side, "truncation": strategy}
            try:
                wanted = theirs.encode(first, second)
            except Exception as error:  # noqa: BLE001 -- tokenizers has no class of its own
                assert str(error).startswith("Truncation error")
                with pytest.raises(ValueError, match="^Truncation error"):
                    ours.encode_pair(first, second, **bound)
                refused += 1
                continue
            assert columns(ours.encode_pair(first, second, **bound)) == columns(wanted)
    assert refused or strategy == "longest_first"


@pytest.mark.parametrize("side", SIDES)
def test_words(pair, side):
    ours, theirs = pair
    added = len(ours.encode(""))
    for text in drawn(4, share(100)):
        words = text.split(" ")
        theirs.enable_truncation(added + 3, direction=side)
        wanted = theirs.encode(words, is_pretokenized=True)
        assert columns(ours.encode_words(words, max_tokens=added + 3, truncation_side=side)) == columns(wanted)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("padding_side", SIDES)
def test_rows_of_a_batch(pair, side, padding_side):
    """`Ragged.padded` cuts as `enable_truncation` does."""
    ours, theirs = pair
    texts = drawn(5, share(200))
    whole = ours.encode_batch(texts)
    for length in (max(sum(whole.added), 1), sum(whole.added) + 1, 7):
        theirs.enable_truncation(length, direction=side)
        theirs.enable_padding(pad_id=7, length=length, direction=padding_side)
        wanted = theirs.encode_batch(texts)
        rows, mask = whole.padded(7, length, side=padding_side, truncation_side=side)
        assert rows.tolist() == [each.ids for each in wanted]
        assert mask.tolist() == [each.attention_mask for each in wanted]
        truncated = ours.encode_batch(texts, max_tokens=length, truncation_side=side)
        assert np.array_equal(truncated.padded(7, length, side=padding_side)[0], rows)


def test_without_added_tokens(pair):
    ours, theirs = pair
    theirs.enable_truncation(3)
    for text in drawn(6, share(100)):
        wanted = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, add_special_tokens=False, max_tokens=3) == wanted
        rows = ours.encode_batch([text], add_special_tokens=False)
        assert rows.padded(0, 3)[0][0, : len(wanted)].tolist() == wanted


def test_options_decide_what_is_added(data):
    tok = real_tokenizer(data("tokenizers/bert-base-uncased/tokenizer.json"))
    text = "one two three four"
    assert tok.encode(text, add_bos=False, max_tokens=3) == [2028, 2048, 102]
    assert tok.encode_batch([text], add_eos=False).padded(0, 3)[0].tolist() == [[101, 2028, 2048]]
    assert tok.encode_pair(text, text, add_bos=False, max_tokens=4).ids == [2028, 102, 2028, 102]
    assert tok.encode_pair(text, text, add_eos=False, max_tokens=4).ids == [101, 2028, 102, 2028]


def test_guarded_and_disallowed_texts():
    tok = Tokenizer.default()
    text = "a b c <|im_end|> d"
    guarded = tok.encode(text, guarded=range(len(text)))
    assert tok.encode(text, guarded=range(len(text)), max_tokens=9) == guarded[:9]
    with pytest.raises(TextError, match="^text spells "):
        tok.encode(text, max_tokens=2, parse_special=(), disallowed_special="all")
    with pytest.raises(TextError, match="^text has a lone surrogate"):
        tok.encode("a\ud800", max_tokens=1)


def test_an_arrow_table(data):
    pyarrow = pytest.importorskip("pyarrow")
    tok = real_tokenizer(data("tokenizers/bert-base-uncased/tokenizer.json"))
    table = tok.encode_table(pyarrow.table({"text": ["one two three", "one"]}), "text", max_tokens=4)
    assert table["input_ids"].to_pylist() == [[101, 2028, 2048, 102], [101, 2028, 102]]


def test_no_room(data):
    tok = real_tokenizer(data("tokenizers/bert-base-uncased/tokenizer.json"))
    said = r"^max_tokens=1 leaves no room for the 2 ids that are added to every text$"
    for call in (tok.encode, tok.encode_array, tok.encode_with_offsets):
        with pytest.raises(ValueError, match=said):
            call("one", max_tokens=1)
    with pytest.raises(ValueError, match=said):
        tok.encode_batch(["one"], max_tokens=1)
    with pytest.raises(ValueError, match="^max_tokens=2 leaves no room for the 3 ids"):
        tok.encode_pair("one", "two", max_tokens=2)
    with pytest.raises(ValueError, match="^length=1 leaves no room for the 2 ids"):
        tok.encode_batch(["one"]).padded(0, 1)
    assert tok.encode_batch([], max_tokens=2).padded(0, 1)[0].shape == (0, 1)
    mixed = Ragged(np.arange(3, dtype=np.int32), np.array([0, 3]), added=None)
    assert mixed.padded(0, 3)[0].tolist() == [[0, 1, 2]]
    with pytest.raises(ValueError, match="^texts with added ids and texts without them cannot be truncated together$"):
        mixed.padded(0, 2)


def test_wrong_arguments():
    tok = Tokenizer.default()
    with pytest.raises(TypeError, match="^max_tokens must be int, not '5'$"):
        tok.encode("a", max_tokens="5")
    with pytest.raises(TypeError, match="^max_tokens must be int, not True$"):
        tok.encode_batch(["a"], max_tokens=True)
    with pytest.raises(ValueError, match="^max_tokens must be at least 0, not -1$"):
        tok.encode_with_offsets("a", max_tokens=-1)
    with pytest.raises(ValueError, match='^truncation_side must be "left" or "right", not \'both\'$'):
        tok.encode("a", truncation_side="both")
    with pytest.raises(
        ValueError, match="^truncation must be one of longest_first, only_first, only_second, not True$"
    ):
        tok.encode_pair("a", "b", truncation=True)
    with pytest.raises(TypeError, match="^text must be one str, not several"):
        tok.encode(["a"], max_tokens=3)


def test_arrow_lists_keep_their_added_ids(data):
    pytest.importorskip("pyarrow")
    tok = real_tokenizer(data("tokenizers/t5-small/tokenizer.json"))
    rows = tok.encode_batch(["one two three four"])
    again = Ragged.from_arrow(rows.to_arrow(), added=rows.added)
    assert (
        again.padded(0, 3)[0].tolist()
        == rows.padded(0, 3)[0].tolist()
        == [tok.encode("one two three four", max_tokens=3)]
    )
