"""`DecodeStream` beside the original one."""

from __future__ import annotations

import copy

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.decoders import DecodeStream as Original

from tokenweir.integrations import report
from tokenweir.integrations.transformers.backend import Backend
from tokenweir.integrations.transformers.decode_stream import DecodeStream

TEXTS = st.text(max_size=12) | st.lists(st.sampled_from(["naïve ", "日本", "\U0001f600", " x", "\n"]), max_size=5).map(
    "".join
)


@pytest.fixture(scope="module", params=["qwen3", "llama-2", "t5-small"])
def both(request, data):
    theirs = tokenizers.Tokenizer.from_file(str(data(f"tokenizers/{request.param}/tokenizer.json")))
    return Backend(theirs), theirs


@settings(max_examples=60)
@given(text=TEXTS, cut=st.integers(0, 6), skip=st.booleans())
def test_the_text_of_all_steps_is_the_same(both, text, cut, skip):
    ours, theirs = both
    ids = theirs.encode(text).ids
    for prompt, rest in (([], ids), (ids[:cut], ids[cut:])):
        if "\ufffd" in theirs.decode(prompt, skip_special_tokens=skip) or "\ufffd" in theirs.decode(ids):
            continue  # a character that the prompt cuts, which the original repeats or drops
        stream, original = DecodeStream(prompt, skip), Original(prompt, skip)
        found = "".join(stream.step(ours, i) or "" for i in rest)
        assert found == "".join(original.step(theirs, i) or "" for i in rest)


def test_a_character_that_the_prompt_cuts_comes_once(both):
    ours, _ = both
    ids = ours.encode("\U0001f9ff").ids
    stream = DecodeStream(ids[:-1])
    if len(ids) > 2 and ours.decode(ids) == "\U0001f9ff":
        assert stream.step(ours, ids[-1]).endswith("\U0001f9ff")


def test_several_ids_copies_and_unknown_ids(both):
    ours, theirs = both
    ids = theirs.encode("one two three").ids
    stream = DecodeStream(ids=None, skip_special_tokens=True)
    first = stream.step(ours, ids[:2])
    twin = copy.copy(stream)
    rest = stream.step(ours, ids[2:])
    assert twin.step(ours, ids[2:]) == rest
    assert (first or "") + (rest or "") == theirs.decode(ids)
    assert stream.step(ours, 10**7) is None
    with pytest.raises(OverflowError):
        stream.step(ours, -1)


def test_an_original_tokenizer_gets_an_original_stream(both):
    _, theirs = both
    report(reset=True)
    ids = theirs.encode("one two three").ids
    stream, original = DecodeStream(), Original()
    assert [stream.step(theirs, i) for i in ids] == [original.step(theirs, i) for i in ids]
    assert [route.reason for route in report()] == ["not a tokenizer of tokenweir"]
