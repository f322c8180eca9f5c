"""`DecodeStream` beside the one of `tokenizers`: the same for every valid text, and a list of where theirs goes wrong."""

from __future__ import annotations

import random

import pytest
from real_tokenizers import real_tokenizer
from tokenizers.decoders import DecodeStream as Theirs

from tokenweir.encode.decode import DecodeStream
from tokenweir.verify.references import huggingface

FILES = (
    *("bert-base-uncased", "deepseek-litellm", "gemma", "gpt2", "llama-2", "llama-3.1", "mistral-7b-v0.3"),
    *("phi-3-mini", "qwen3", "t5-small"),
)
LINES = 14
"""Of each text; raise it for a longer run."""


def both(path):
    return real_tokenizer(path), huggingface(path)


@pytest.fixture(scope="module", params=FILES)
def pair(request, data):
    return both(data(f"tokenizers/{request.param}/tokenizer.json"))


@pytest.fixture(scope="module")
def texts(data):
    files = [*sorted(data("corpora/udhr").glob("*.txt")), data("corpora/emoji-rich.txt")]
    lines = [line for file in files for line in file.read_text().splitlines()[:LINES] if line]
    return [
        *lines,
        "def f(x):\n\treturn  x\n\n\n    # 語\r\n",
        "a\0b",
        " a",
        "  ",
        "don't . , n't ?",
        "ſ\u0301 é e\u0301",
    ]


def ours_and_theirs(pair, ids, prompt=()):
    """Return the text of both libraries step by step; ours includes the flush."""
    tok, reference = pair
    ours, theirs = DecodeStream(tok, prompt_ids=prompt), Theirs(ids=list(prompt), skip_special_tokens=True)
    steps = [(ours.step(token_id), theirs.step(reference, token_id) or "") for token_id in ids]
    return [step for step, _ in steps] + [ours.flush()], [step for _, step in steps]


def test_valid_text_is_the_same_and_ours_is_never_later(pair, texts):
    for text in texts:
        ids = pair[1].encode(text, add_special_tokens=False).ids
        ours, theirs = ours_and_theirs(pair, ids)
        assert "".join(ours) == "".join(theirs) == pair[1].decode(ids)
        sent = waiting = 0
        for step, their_step in zip(ours, theirs, strict=False):
            sent, waiting = sent + len(step), waiting + len(their_step)
            assert sent >= waiting


def test_behind_a_prompt_it_is_the_same_unless_the_prompt_ends_inside_a_character(pair, texts):
    rng = random.Random(5)
    for text in texts:
        ids = pair[1].encode(text, add_special_tokens=False).ids
        cut = rng.randrange(len(ids) + 1)
        prompt = pair[0].decode(ids[:cut])
        ours, theirs = map("".join, ours_and_theirs(pair, ids[cut:], ids[:cut]))
        if prompt.endswith("\ufffd"):
            whole = pair[1].decode(ids)
            assert theirs == whole  # the prompt, sent once more
            assert prompt.rstrip("\ufffd") + ours == whole
        else:
            assert ours == theirs


# Bytes of a character stand for their tokens; None is 天, which has a token of its own.
@pytest.mark.parametrize(
    ("prompt", "ids", "theirs", "ours"),
    [
        # what is incomplete at the end is lost, as there is no way to say that it is the end
        (b"", [*b"a", 0xE5, 0xA4], ["a", "", ""], ["a", "", "", "\ufffd"]),
        # so is a U+FFFD that the text really has, and in the middle it comes late
        (b"", "a\ufffd".encode(), ["a", "", "", ""], ["a", "", "", "\ufffd", ""]),
        (b"", "a\ufffdb".encode(), ["a", "", "", "", "\ufffdb"], ["a", "", "", "\ufffd", "b", ""]),
        # nothing comes while bytes are wrong, however many
        (b"", [*[0x80] * 50, *b"a"], [*[""] * 50, "\ufffd" * 50 + "a"], [*["\ufffd"] * 50, "a", ""]),
        # a prompt that ends inside a character is sent again
        ("Hi👩".encode()[:-1], "👩".encode()[-1:], ["Hi👩"], ["👩", ""]),
    ],
)
def test_where_theirs_loses_text_or_sends_it_again(data, prompt, ids, theirs, ours):
    pair = both(data("tokenizers/gpt2/tokenizer.json"))
    spelled = {pair[0].token_bytes(token_id): token_id for token_id in range(256)}
    prompt, ids = ([spelled[bytes([byte])] for byte in string] for string in (prompt, ids))
    assert ours_and_theirs(pair, ids, prompt) == (ours, theirs)


@pytest.mark.parametrize("before", [b"\n", "今\n".encode(), "é".encode()])
@pytest.mark.parametrize("name", ["gemma", "llama-2", "mistral-7b-v0.3", "phi-3-mini"])
def test_where_theirs_raises(data, name, before):
    """A run of byte tokens is valid, and then it is not; what was sent of it does not begin what it decodes to now."""
    tok, reference = both(data(f"tokenizers/{name}/tokenizer.json"))
    ids = [tok.token_to_id(f"<0x{byte:02X}>") for byte in [*before, 0xE4]] + [tok.token_to_id("天")]
    theirs, ours = Theirs(skip_special_tokens=True), DecodeStream(tok)
    with pytest.raises(Exception, match="^Invalid prefix encountered while decoding stream"):
        for token_id in ids:
            theirs.step(reference, token_id)
    assert ours.feed(ids) + ours.flush() == before.decode() + "\ufffd天"


def test_where_theirs_says_nothing_of_an_id_that_is_none(pair):
    tok, reference = pair
    assert Theirs(skip_special_tokens=True).step(reference, tok.vocab_size) in (None, "")
    with pytest.raises(ValueError, match=f"token id {tok.vocab_size} is outside the vocabulary"):
        DecodeStream(tok).step(tok.vocab_size)
