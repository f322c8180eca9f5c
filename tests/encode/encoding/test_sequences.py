"""Pairs of texts, words and batches with offsets: every column is HuggingFace's."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tokenizers
from case_tables import cases
from full_run import share
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from real_tokenizers import real_tokenizer

from tokenweir import Encoded, TextError, Tokenizer

CASES = cases(__file__)

JSON_FILES = CASES["json_files"]
PARTS = ["a", "b", "ab", " ", "  ", "\t", "é", "日", "<s>", "</s>", "<l>", "\n", " a", "\u3000"]
ADDED = [{"content": "<s>", "special": True}, {"content": "</s>", "special": True}, {"content": "<l>", "lstrip": True}]
WORDS = ["ab", " a", "  ", "   ", "é", " b", "日", " \t", "a ", "\u3000"]
IDS = {"<s>": 268, "</s>": 269}
TEXTS = st.text(max_size=20) | st.lists(
    st.sampled_from(["Hello", " world", "\n\n", "[SEP]", "</s>", "<|endoftext|>", "é", "日本", "'s", " 12", "\u0301"]),
    max_size=6,
).map("".join)


def columns(encoding):
    """All columns, whichever library they are from."""
    names = ("ids", "offsets", "type_ids", "special_tokens_mask", "attention_mask", "word_ids", "sequence_ids")
    return {name: list(getattr(encoding, name)) for name in names}


def template(single, pair):
    """A TemplateProcessing from lists such as ["<s>", "$A:0", "</s>:1"]."""

    def piece(item):
        name, _, type_id = item.partition(":")
        kind = "Sequence" if name.startswith("$") else "SpecialToken"
        return {kind: {"id": name.removeprefix("$"), "type_id": int(type_id or 0)}}

    special = {name: {"id": name, "ids": [token_id], "tokens": [name]} for name, token_id in IDS.items()}
    special["<twice>"] = {"id": "<twice>", "ids": [*IDS.values()], "tokens": [*IDS]}
    pieces = {"single": [*map(piece, single)], "pair": [*map(piece, pair)]}
    return {"type": "TemplateProcessing", **pieces, "special_tokens": special}


def around(kind, **options):
    return {"type": kind, "cls": ["<s>", 268], "sep": ["</s>", 269], **options}


TRIMS = [{"trim_offsets": trim, "add_prefix_space": prefix} for trim in (True, False) for prefix in (True, False)]
PLAIN = [
    around("BertProcessing"),
    *(around("RobertaProcessing", **trim) for trim in TRIMS),
    *({"type": "ByteLevel", "use_regex": True, **trim} for trim in TRIMS),
]
TEMPLATES = [
    template(["<s>", "$A", "</s>"], ["<s>", "$A", "</s>", "$B:1", "</s>:1"]),
    template(["$A:3"], ["$B:2", "<twice>:1", "$A"]),
    template(["<twice>", "$A:1"], ["$A", "$B", "$A:1"]),
    template(["$A", "</s>"], []),
]


def check(ours, theirs, text, pair, words):
    for add in (True, False):
        expected = columns(theirs.encode(text, add_special_tokens=add))
        assert columns(ours.encode_with_offsets(text, add_special_tokens=add)) == expected, text
        expected = columns(theirs.encode(text, pair, add_special_tokens=add))
        assert columns(ours.encode_pair(text, pair, add_special_tokens=add)) == expected, (text, pair)
        expected = columns(theirs.encode(words, is_pretokenized=True, add_special_tokens=add))
        assert columns(ours.encode_words(words, add_special_tokens=add)) == expected, words
        expected = columns(theirs.encode(words, words[::-1], is_pretokenized=True, add_special_tokens=add))
        assert columns(ours.encode_pair(words, words[::-1], add_special_tokens=add)) == expected, words


def some_text(pick):
    return "".join(pick.choice(PARTS) for _ in range(pick.randint(0, 7)))


@pytest.mark.parametrize("post_processor", [None, *PLAIN, *TEMPLATES])
def test_every_post_processor(both, post_processor):
    pick = random.Random(str(post_processor))
    ours, theirs = both(words=WORDS, added=ADDED, post_processor=post_processor)
    for _ in range(share(300)):
        words = [some_text(pick) for _ in range(pick.randint(0, 4))]
        check(ours, theirs, some_text(pick), some_text(pick), words)


def test_post_processors_in_turn(both):
    pick = random.Random("turn")
    for _ in range(share(400)):
        parts = [pick.choice(PLAIN) for _ in range(pick.randint(0, 3))]
        if pick.random() < 0.5:  # after a template that adds tokens, only what trims
            parts = [*parts, pick.choice(TEMPLATES[:3]), *pick.choices(PLAIN[-4:], k=pick.randint(0, 2))]
        ours, theirs = both(words=WORDS, added=ADDED, post_processor={"type": "Sequence", "processors": parts})
        words = [some_text(pick) for _ in range(pick.randint(0, 4))]
        check(ours, theirs, some_text(pick), some_text(pick), words)


@pytest.fixture(scope="module", params=JSON_FILES)
def real(request, data):
    path = data(f"tokenizers/{request.param}")
    theirs = tokenizers.Tokenizer.from_file(str(path))
    theirs.no_padding()
    theirs.no_truncation()
    return real_tokenizer(path), theirs


@settings(max_examples=12)
@given(text=TEXTS, pair=TEXTS, words=st.lists(TEXTS, max_size=4))
def test_real_files(real, text, pair, words):
    ours, theirs = real
    check(ours, theirs, text, pair, words)


@settings(max_examples=12)
@given(texts=st.lists(TEXTS, max_size=5), add=st.booleans())
def test_batches_with_offsets_are_those_of_single_texts(real, texts, add):
    ours, _ = real
    rows = ours.encode_batch(texts, offsets=True, add_special_tokens=add, threads=2)
    assert rows.spans is not None and rows.spans.dtype == np.int64 and rows.spans.shape == (len(rows.ids), 2)
    for i, text in enumerate(texts):
        alone = ours.encode_with_offsets(text, add_special_tokens=add)
        assert rows[i].tolist() == alone.ids
        assert [*map(tuple, rows.spans[rows.offsets[i] : rows.offsets[i + 1]].tolist())] == alone.offsets


def test_a_batch_of_many_runs_has_the_offsets_of_each_text(both):
    ours, _ = both(words=WORDS, added=ADDED, post_processor=PLAIN[1])
    texts = [f" ab{'é ' * (i % 50)}<l>{i} " for i in range(2000)]  # several runs of 32 KiB
    rows = ours.encode_batch(texts, offsets=True, threads=3)
    for i in range(0, 2000, 97):
        alone = ours.encode_with_offsets(texts[i])
        assert [*map(tuple, rows.spans[rows.offsets[i] : rows.offsets[i + 1]].tolist())] == alone.offsets


def test_without_offsets_there_are_no_spans(both):
    ours, _ = both()
    assert ours.encode_batch(["a"]).spans is None


def test_encoded_unpacks_into_ids_and_offsets():
    ids, offsets = Tokenizer.default().encode_pair("a", "b")
    assert isinstance(ids, list) and isinstance(offsets, list)
    encoded = Encoded([1], [(0, 1)])
    assert encoded == ([1], [(0, 1)])
    assert (encoded.type_ids, encoded.special_tokens_mask, encoded.attention_mask) == ([0], [0], [1])
    assert (encoded.word_ids, encoded.sequence_ids) == ([None], [0])


def test_ends_of_a_pair(both):
    roles = {"bos_token": "<s>", "eos_token": "</s>"}
    made, _ = both(words=WORDS, added=ADDED, post_processor=TEMPLATES[0])
    ours = Tokenizer(replace(made.spec, special_roles=roles))
    assert ours.encode_pair("a", "b").ids == [268, 97, 269, 98, 269]
    bare = ours.encode_pair("a", "b", add_bos=False, add_eos=False)
    assert bare.ids == [97, 269, 98]
    assert (bare.sequence_ids, bare.special_tokens_mask, bare.type_ids) == ([0, None, 1], [0, 1, 0], [0, 0, 1])
    assert ours.encode_pair("a", "b", add_bos=True, add_eos=True).ids == [268, 97, 269, 98, 269]
    full = ours.encode_pair("a", "b", add_special_tokens=False, add_bos=True, add_eos=True)
    assert (full.ids, full.sequence_ids) == ([268, 97, 98, 269], [None, 0, 1, None])
    assert full.offsets == [(0, 0), (0, 1), (0, 1), (0, 0)]


def test_words_are_several():
    with pytest.raises(TypeError, match="^words must be several words, not one str"):
        Tokenizer.default().encode_words("a b")


@pytest.mark.parametrize(
    ("call", "arguments", "error", "message"),
    [
        ("encode_pair", ("a", None), TypeError, "^pair must be a text or its words, not NoneType$"),
        ("encode_pair", (5, "a"), TypeError, "^text must be a text or its words, not int$"),
        ("encode_pair", ("a", b"b"), TypeError, "^pair must be a text or its words, not bytes$"),
        ("encode_pair", (["a", 5], "a"), TypeError, r"^text\[1\] must be str, not int$"),
        ("encode_pair", ("a", "\ud800"), TextError, r"^pair has a lone surrogate U\+D800 at character 0$"),
        ("encode_words", (None,), TypeError, "^words must be several texts, not NoneType$"),
        ("encode_words", (["a", None],), TypeError, r"^words\[1\] must be str, not NoneType$"),
        ("encode_words", (["a", "b\ud800"],), TextError, r"^words\[1\] has a lone surrogate U\+D800 at character 1$"),
    ],
)
def test_what_is_not_text_is_named(call, arguments, error, message):
    with pytest.raises(error, match=message):
        getattr(Tokenizer.default(), call)(*arguments)


def test_offsets_of_a_batch_are_a_flag():
    with pytest.raises(TypeError, match="^offsets='no' is neither True nor False$"):
        Tokenizer.default().encode_batch(["a"], offsets="no")
