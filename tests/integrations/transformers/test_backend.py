"""`Backend` beside the `tokenizers.Tokenizer` that it stands in for: every column, look-up and decoded text."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
import tokenizers
from case_tables import cases
from full_run import share
from tokenizers import AddedToken, decoders, normalizers, processors

from tokenweir.encode.encoding.sequence_encoder import SequenceEncoder
from tokenweir.integrations import report
from tokenweir.integrations.transformers.backend import Backend
from tokenweir.integrations.transformers.encoding import Encoding

CASES = cases(__file__)

TEXTS = CASES["texts"]
FILES = ["bert-base-uncased", "bora-with-config", "llama-3.1", "t5-small"]


def look_ups(e):
    tokens = [(e.token_to_sequence(i), e.token_to_chars(i), e.token_to_word(i)) for i in range(len(e) + 2)]
    places = [
        (e.word_to_tokens(i, s), e.word_to_chars(i, s), e.char_to_token(i, s), e.char_to_word(i, s))
        for i in range(8)
        for s in range(2)
    ]
    return tokens, places


def columns(e):
    """All that an encoding tells."""
    names = ("ids", "type_ids", "attention_mask", "tokens", "offsets", "special_tokens_mask", "word_ids")
    found = {name: getattr(e, name) for name in (*names, "sequence_ids", "n_sequences")}
    return found | {"n": len(e), "look_ups": look_ups(e), "overflowing": [columns(part) for part in e.overflowing]}


def result(call):
    """Return the result of a call, or the kind of its error; the library panics for some settings."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return "an error"


@pytest.fixture(scope="module", params=FILES)
def both(request, data):
    path = str(data(f"tokenizers/{request.param}/tokenizer.json"))
    theirs = tokenizers.Tokenizer.from_file(path)
    return Backend(tokenizers.Tokenizer.from_file(path)), theirs


def set_both(both, pick):
    for tokenizer in both:
        tokenizer.no_padding()
        tokenizer.no_truncation()
    if pick.random() < 0.5:
        length = pick.randint(3, 14)
        options = {
            "max_length": length,
            "stride": pick.choice([0, 0, pick.randint(0, max(0, length - 6))]),
            "strategy": pick.choice(["longest_first", "only_first", "only_second"]),
            "direction": pick.choice(["left", "right"]),
        }
        for tokenizer in both:
            tokenizer.enable_truncation(**options)
    if pick.random() < 0.5:
        options = {
            "length": pick.choice([None, 5, 20]),
            "pad_to_multiple_of": pick.choice([None, 8]),
            "pad_id": 3,
            "pad_type_id": 2,
            "pad_token": "[X]",
            "direction": pick.choice(["left", "right"]),
        }
        for tokenizer in both:
            tokenizer.enable_padding(**options)
    assert both[0].truncation == both[1].truncation
    assert both[0].padding == both[1].padding


def encoded(tokenizer, inputs, single, options):
    """An input by every method."""
    return [
        result(lambda: [columns(e) for e in tokenizer.encode_batch(inputs, **options)]),
        result(lambda: [columns(e) for e in tokenizer.encode_batch_fast(inputs, **options)]),
        result(lambda: columns(tokenizer.encode(*single, **options))),
    ]


def test_every_way_of_encoding(both):
    pick = random.Random("ways")
    report(reset=True)
    for _ in range(share(150)):
        set_both(both, pick)
        words, add = pick.random() < 0.3, pick.random() < 0.7

        def text(words=words):
            found = pick.choice(TEXTS)
            return found.split() if words else found

        inputs = [(text(), text()) if pick.random() < 0.4 else text() for _ in range(pick.randint(1, 4))]
        single = inputs[0] if isinstance(inputs[0], tuple) else (inputs[0],)
        options = {"is_pretokenized": words, "add_special_tokens": add}
        ours, theirs = (encoded(t, inputs, single, options) for t in both)
        assert ours == theirs, (inputs, options, both[1].truncation, both[1].padding)
    counts = report(reset=True)
    here = sum(n for route, n in counts.items() if route.reason is None)
    there = {route.reason for route in counts if route.reason is not None}
    assert here > 2 * sum(n for route, n in counts.items() if route.reason is not None)
    assert all("Truncation error" in reason or "max_length" in reason for reason in there), there


def test_decoding(both):
    pick = random.Random("decode")
    ours, theirs = both
    for _ in range(share(150)):
        ids = [pick.randrange(theirs.get_vocab_size()) for _ in range(pick.randint(0, 12))]
        skip = pick.random() < 0.5
        ids += [10**7] if pick.random() < 0.1 else []
        assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
    rows = [[1, 2, 3], [], [5]]
    assert ours.decode_batch(rows) == theirs.decode_batch(rows)
    with pytest.raises(OverflowError):
        ours.decode([-1])


def test_the_rest_of_the_interface_is_the_original(both):
    ours, theirs = both
    assert isinstance(ours, tokenizers.Tokenizer)
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.get_vocab_size(False) == theirs.get_vocab_size(False)
    assert ours.token_to_id("a") == theirs.token_to_id("a")
    assert ours.id_to_token(5) == theirs.id_to_token(5)
    for pair in (True, False):
        assert ours.num_special_tokens_to_add(pair) == theirs.num_special_tokens_to_add(pair)
    assert set(dir(theirs)) <= set(dir(ours))
    assert (repr(ours), str(ours)) == (repr(theirs), str(theirs))
    assert isinstance(ours.encode("a"), tokenizers.Encoding)
    assert type(ours.model) is type(theirs.model)


@pytest.fixture(scope="module")
def few_merges(data):
    """GPT-2's tokenizer with the first 2,000 of its merges, as JSON: it is read for each test."""
    spec = json.loads(data("tokenizers/gpt2/tokenizer.json").read_text("utf-8"))
    vocab, merges = spec["model"]["vocab"], spec["model"]["merges"]
    spec["model"] |= {
        "merges": merges[:2000],
        "vocab": {token: i for token, i in vocab.items() if i < 256 + 2000 or token == "<|endoftext|>"},
    }
    return json.dumps(spec)


@pytest.fixture
def small(few_merges):
    return Backend(tokenizers.Tokenizer.from_str(few_merges)), tokenizers.Tokenizer.from_str(few_merges)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.add_tokens(["Hello w", AddedToken("wor", lstrip=True)]),
        lambda t: t.add_special_tokens(["<|new|>"]),
        lambda t: setattr(t, "normalizer", normalizers.Lowercase()),
        lambda t: setattr(t, "decoder", decoders.ByteLevel()),
        lambda t: setattr(
            t, "post_processor", processors.TemplateProcessing("<|endoftext|> $A", None, [("<|endoftext|>", 50256)])
        ),
        lambda t: setattr(t.pre_tokenizer, "add_prefix_space", True),
        lambda t: setattr(t.model, "unk_token", "<|endoftext|>"),
        lambda t: setattr(t, "encode_special_tokens", True),
    ],
)
def test_changes_of_the_original_are_seen(small, change):
    texts = ["Hello wor<|new|>ld <|endoftext|>", "hello"]
    for t in small:
        t.encode(texts[0])
        change(t)
    ours, theirs = ([columns(t.encode(text)) for text in texts] for t in small)
    assert ours == theirs
    ids = theirs[0]["ids"]
    assert small[0].decode(ids) == small[1].decode(ids)


def test_training(small):
    for t in small:  # not encoded before: the original's cache would outlive its vocabulary, and panic
        t.train_from_iterator(["a b c hello", "hello"], tokenizers.trainers.BpeTrainer(vocab_size=300))
    ours, theirs = (columns(t.encode("hello a")) for t in small)
    assert ours == theirs


def test_a_component_that_a_caller_keeps_may_change_later(small):
    parts = [t.pre_tokenizer for t in small]
    for value in (True, False, True):
        assert columns(small[0].encode("a b")) == columns(small[1].encode("a b"))
        for part in parts:
            part.add_prefix_space = value
    assert columns(small[0].encode("a b")) == columns(small[1].encode("a b"))


def test_a_tokenizer_that_is_not_reproduced_runs_on_the_original(small):
    ours, theirs = small
    report(reset=True)
    for t in small:
        t.model.dropout = 0.0
        t.normalizer = normalizers.Nmt()
    assert ours.encode("a b").ids == theirs.encode("a b").ids
    assert ours.tokenizer is None
    (route,) = [route for route in report(reset=True) if route.call == "encode"]
    assert route.reason and "Nmt" in route.reason
    for t in small:
        t.normalizer = normalizers.NFC()
    assert isinstance(ours.encode("a b"), Encoding)
    assert ours.encode("a b").ids == theirs.encode("a b").ids


def test_copies_and_pickles(small):
    ours, theirs = small
    for made in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        made.add_tokens(["Hello w"])
        assert made.encode("Hello world").ids != ours.encode("Hello world").ids
    assert ours.encode("Hello world").ids == theirs.encode("Hello world").ids
    encoding = ours.encode("Hello world")
    assert columns(pickle.loads(pickle.dumps(encoding))) == columns(encoding)
    assert json.loads(ours.to_str()) == json.loads(theirs.to_str())


def test_encodings_change_as_the_originals_do(small):
    ours, theirs = (t.encode(TEXTS[2], TEXTS[3]) for t in small)
    for e in (ours, theirs):
        e.pad(25, direction="left", pad_id=7)
        e.truncate(20, stride=3, direction="left")
        e.pad(22)
    assert columns(ours) == columns(theirs)
    merged = []
    for t, kind in zip(small, (Encoding, tokenizers.Encoding), strict=True):
        merged.append([columns(kind.merge([t.encode(x) for x in TEXTS], growing_offsets=g)) for g in (True, False)])
    assert merged[0] == merged[1]
    processed = []
    for t in small:
        t.enable_truncation(6)
        t.enable_padding(length=9)
        processed.append(columns(t.post_process(t.encode(TEXTS[0]), t.encode(TEXTS[1]))))
    assert processed[0] == processed[1]


@pytest.mark.parametrize("direction", ["left", "right"])
def test_masks_of_padded_encodings_need_no_places(small, direction, monkeypatch):
    for tokenizer in small:
        tokenizer.enable_padding(direction=direction, length=16)
    ours, theirs = (t.encode_batch(TEXTS) for t in small)
    monkeypatch.setattr(SequenceEncoder, "sequence", None)
    for e in (*ours, *theirs):
        e.pad(20)
    assert [e.attention_mask for e in ours] == [e.attention_mask for e in theirs]
    ours[0].attention_mask.clear()
    assert ours[0].attention_mask == theirs[0].attention_mask
    monkeypatch.undo()
    assert [columns(e) for e in ours] == [columns(e) for e in theirs]


@pytest.mark.parametrize("given", [None, 3, ["a", 3], [["a", "b", "c"]], b"a", "\ud800"])
def test_inputs_that_the_original_refuses(small, given):
    ours, theirs = (result(lambda t=t: t.encode_batch(given)) for t in small)
    assert ours == theirs == "an error"


def test_threads_and_forks(small):
    ours, theirs = small
    expected = [e.ids for e in theirs.encode_batch(TEXTS * 20)]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: [e.ids for e in ours.encode_batch(TEXTS * 20)], range(8)):
            assert found == expected
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        same = [e.ids for e in ours.encode_batch(TEXTS * 20)] == expected
        os.write(write, b"1" if same else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1) == b"1"


def test_asynchronous_calls(small):
    ours, theirs = small

    async def run():
        one = await ours.async_encode("Hello")
        many = await ours.async_encode_batch(TEXTS)
        fast = await ours.async_encode_batch_fast(TEXTS)
        return one.ids, [e.ids for e in many], [e.ids for e in fast], await ours.async_decode_batch([[1], [2]])

    ids = [e.ids for e in theirs.encode_batch(TEXTS)]
    assert asyncio.run(run()) == (theirs.encode("Hello").ids, ids, ids, theirs.decode_batch([[1], [2]]))


LONG = [
    "one two three, 4567 naïve 日本語の文章です " * 6,
    "日本語の文章です。" * 8,
    "<|begin_of_text|>x [MASK] y" * 6,
    "a" * 90 + " b",
    " \n" * 30,
    "short",
]


@pytest.mark.parametrize("direction", ["right", "left"])
@pytest.mark.parametrize("length", [8, 17, 64])
def test_truncation_of_texts_that_are_longer(both, length, direction):
    options = {"max_length": length, "direction": direction, "stride": 1}
    for tokenizer in both:
        tokenizer.no_padding()
        tokenizer.enable_truncation(**options)
    report(reset=True)
    inputs = [LONG, [*LONG, (LONG[0], LONG[1])], *([text] for text in LONG)]
    ours, theirs = (
        [[(e.ids, e.offsets, [part.ids for part in e.overflowing]) for e in t.encode_batch(given)] for given in inputs]
        for t in both
    )
    assert ours == theirs
    assert {route.reason for route in report(reset=True)} == {None}


def test_truncation_encodes_little_more_than_it_keeps(data):
    tokenizer = Backend(tokenizers.Tokenizer.from_file(str(data("tokenizers/llama-3.1/tokenizer.json"))))
    built = tokenizer._state()
    encoder, texts = built.call.encoder, [LONG[0] * 60, LONG[1] * 150]
    whole, starts, _ = encoder.encode_batch(texts, True, (), 1, (), ())
    first, ends, _ = encoder.encode_batch(texts, True, (), 1, (), (), limit=17)
    for i in range(len(texts)):
        row = first[ends[i] : ends[i + 1]]
        assert 17 <= len(row) < 17 + 128 < starts[i + 1] - starts[i]
        assert row.tolist() == whole[starts[i] : starts[i] + len(row)].tolist()


def test_a_short_text_that_was_cut_is_whole_the_next_time(data):
    tokenizer = Backend(tokenizers.Tokenizer.from_file(str(data("tokenizers/llama-3.1/tokenizer.json"))))
    encoder, texts = tokenizer._state().call.encoder, ["a b c d e f", "1 2 3 4 5"]
    encoder.encode_batch(texts, True, (), 1, (), (), limit=1)
    whole, starts, _ = encoder.encode_batch(texts, True, (), 1, (), ())
    for i, text in enumerate(texts):
        assert whole[starts[i] : starts[i + 1]].tolist() == tokenizer.encode(text, add_special_tokens=False).ids
        assert starts[i + 1] - starts[i] > 4
