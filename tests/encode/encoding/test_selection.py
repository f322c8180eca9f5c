"""Sets of added tokens: `parse_special` and `disallowed_special` are tiktoken's `allowed_special` and `disallowed_special`."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import tiktoken.load
from hypothesis import given, settings
from hypothesis import strategies as st
from real_tokenizers import real_tokenizer

from tokenweir import TextError, Tokenizer

SPECIAL = [  # no token is the beginning of another: tiktoken takes either of such, by the order of a hash map
    "<|a|>",
    "<|b|>",
    "<|ab|>",
    "<b",
]
TEXTS = st.lists(st.sampled_from([*SPECIAL, "a", " b", "<|", "|>", "é", "\n"]), max_size=8).map("".join)


@pytest.fixture(scope="module")
def pair(data):
    path = data("tokenizers/openai/cl100k_base.tiktoken")
    ranks = tiktoken.load.load_tiktoken_bpe(str(path))
    ids = {token: 100_300 + i for i, token in enumerate(SPECIAL)}
    pattern = r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
    theirs = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens=ids)
    ours = Tokenizer.from_bytes(path.read_bytes(), "tiktoken", pattern=pattern, special_tokens=ids)
    return ours, theirs


@settings(max_examples=60)
@given(text=TEXTS, allowed=st.sets(st.sampled_from(SPECIAL)))
def test_allowed_tokens_are_those_of_tiktoken(pair, text, allowed):
    ours, theirs = pair
    expected = theirs.encode(text, allowed_special=allowed, disallowed_special=())
    assert ours.encode(text, parse_special=allowed) == expected
    assert ours.encode_array(text, parse_special=allowed).tolist() == expected
    assert ours.encode_with_offsets(text, parse_special=allowed).ids == expected
    assert ours.count(text, parse_special=allowed) == len(expected)
    assert ours.encode_batch([text, text], parse_special=allowed)[1].tolist() == expected


@settings(max_examples=60)
@given(text=TEXTS, disallowed=st.sets(st.sampled_from(SPECIAL[:2])))
def test_disallowed_tokens_are_refused_where_tiktoken_refuses(pair, text, disallowed):
    ours, theirs = pair
    allowed = set() if disallowed else set(SPECIAL)
    try:
        expected = theirs.encode(text, allowed_special=allowed, disallowed_special=disallowed)
    except ValueError:
        for call in (ours.encode, ours.encode_array, ours.encode_with_offsets, ours.count):
            with pytest.raises(TextError, match="^text spells '<.*>', which disallowed_special forbids$"):
                call(text, parse_special=allowed, disallowed_special=disallowed)
        with pytest.raises(TextError, match="disallowed_special"):
            ours.encode_batch(["a", text], parse_special=allowed, disallowed_special=disallowed)
    else:
        assert ours.encode(text, parse_special=allowed, disallowed_special=disallowed) == expected


def test_all_means_the_control_tokens_that_are_not_allowed(pair):
    ours, _ = pair
    with pytest.raises(TextError, match=r"^text spells '<\|b\|>'"):
        ours.encode("<|a|> <|b|>", parse_special={"<|a|>"}, disallowed_special="all")
    assert 100_300 in ours.encode("<|a|>", parse_special={"<|a|>"}, disallowed_special="all")
    assert ours.encode("<|b|>", disallowed_special="all") == [100_301]  # parse_special=True allows all
    with pytest.raises(TextError, match="disallowed_special"):
        ours.encode("<|b|>", parse_special=False, disallowed_special="all")


@pytest.mark.parametrize(
    "name", ["t5-small/tokenizer.json", "llama-2/tokenizer.json", "bert-base-uncased/tokenizer.json"]
)
def test_a_token_that_is_not_allowed_never_comes_from_the_model(data, name):
    ours = real_tokenizer(data(f"tokenizers/{name}"))
    assert ours.special_tokens
    for token, token_id in ours.special_tokens.items():
        others = set(ours.special_tokens) - {token}
        text = f"x {token} y {next(iter(others))}"
        ids = ours.encode(text, parse_special=others, add_special_tokens=False)
        assert token_id not in ids or token == "<unk>" or token == "[UNK]"
        assert ours.special_tokens[next(iter(others))] in ids
        plain = ours.encode(f"x {token} y ", parse_special=False, add_special_tokens=False)
        assert ids[: len(plain) - 1] == plain[:-1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"parse_special": "<|a|>"}, TypeError, "^parse_special='<|a|>' is neither True nor False$"),
        ({"parse_special": ["<|none|>"]}, ValueError, r"^parse_special: '<\|none\|>' is not an added token$"),
        ({"parse_special": [["<|a|>"]]}, ValueError, r"^parse_special: \['<\|a\|>'\] is not an added token$"),
        ({"disallowed_special": ["<|none|>"]}, ValueError, r"^disallowed_special: '<\|none\|>' is not an added token$"),
        ({"disallowed_special": "<|a|>"}, TypeError, r"^disallowed_special must be a set of added tokens, not"),
        ({"disallowed_special": 3}, TypeError, "^disallowed_special must be a set of added tokens, not 3$"),
    ],
)
def test_what_is_refused(pair, options, error, message):
    with pytest.raises(error, match=message):
        pair[0].encode("a", **options)


def test_the_text_with_a_disallowed_token_is_named():
    tokenizer = Tokenizer.default()
    token = next(iter(tokenizer.special_tokens))
    for call, texts, name in (
        (tokenizer.encode_batch, (["a", token],), r"texts\[1\]"),
        (tokenizer.encode_words, (["a", token],), r"words\[1\]"),
        (tokenizer.encode_pair, ("a", token), "pair"),
    ):
        with pytest.raises(TextError, match=f"^{name} spells "):
            call(*texts, parse_special=False, disallowed_special="all")


def test_a_used_selection_does_not_hinder_pickling():
    tokenizer = Tokenizer(Tokenizer.default().spec)
    token = next(iter(tokenizer.special_tokens))
    ids = tokenizer.encode(token + " x", parse_special={token})
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode(token + " x", parse_special=np.array([token]).tolist()) == ids
