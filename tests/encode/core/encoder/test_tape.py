"""Tapes: a text that resumes an earlier one has the ids of `encode`, whatever the two have in common."""

from __future__ import annotations

import gc
import random

import pytest
from full_run import share
from hypothesis import given
from hypothesis import strategies as st
from real_tokenizers import real_tokenizer

from tokenweir.encode import _core
from tokenweir.encode.errors import TextError
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer, core_of

REAL = [
    "qwen3", "llama-3.1", "gpt2", "deepseek-litellm", "phi-3-mini", "llama-2", "gemma", "mistral-7b-v0.3", "t5-small",
    "bert-base-uncased", "bora-with-config", "openai/o200k_base.tiktoken", "mistral-common/tekken_240911.json",
    "sp-test-unigram-ja", "gguf/ggml-vocab-phi-3.gguf",
]  # fmt: skip

# Tokens that overlap each other, that strip, and that look at their neighbours.
OVERLAPPING = ["〈|", "|〉", "〈|EOS|〉", "<a>", "<a><b>", "<a><b>xyz", "<b>", "\n\n", "\n"]
FLAGS = {
    "overlapping": [AddedToken(content) for content in OVERLAPPING],
    "rstrip": [AddedToken(content, rstrip=True) for content in OVERLAPPING],
    "lstrip": [AddedToken(content, lstrip=True) for content in OVERLAPPING],
    "single word": [AddedToken(content, single_word=True) for content in (*OVERLAPPING, "ab", "b c")],
    "normalized": [AddedToken(content, normalized=True) for content in OVERLAPPING],
    "both passes": [AddedToken(content, normalized=i % 2 == 0, rstrip=i % 3 == 0) for i, content in enumerate(OVERLAPPING)],
}  # fmt: skip

WORDS = (
    " ", "  ", "\n", "\n\n", "\t", "\r\n", " \n", "a", "b", "ab", "b c", "x", "xyz", " quick", "'s", "'ll", "1", "23", "4567",
    "é", "e\u0301", "\u0301", "\u0321", "\u212b", "中文", "日本語", "🙂", "👍🏽", "<", "|", ">", "〈|", "|〉", "▁", "x" * 40,
    "Hello world, this is some text. ", "def f(x):\n    return x\n", "\u00a0", " " * 20,
)  # fmt: skip


def drawn(pick: random.Random, tokens: list[str], length: int) -> str:
    return "".join(pick.choice(WORDS if pick.random() < 0.6 else tokens) for _ in range(length))


def edited(pick: random.Random, text: str, tokens: list[str]) -> str:
    """A text that is appended to, cut off, changed inside, or another one."""
    kind = pick.random()
    if kind < 0.4:
        return text + drawn(pick, tokens, pick.choice((1, 3, 30)))
    if kind < 0.5:
        return text[: pick.randrange(len(text) + 1)] + drawn(pick, tokens, 3)
    if kind < 0.95:
        start = pick.randrange(len(text) + 1)
        end = min(len(text), start + pick.choice((0, 1, 5, 100)))
        return text[:start] + drawn(pick, tokens, pick.choice((0, 1, 3))) + text[end:]
    return drawn(pick, tokens, 20)


def check(tokenizer: Tokenizer, seed: int, steps: int, tape=_core.tape) -> tuple[int, int]:
    """Compare the tapes of a random chain of texts with their ids; return how many ids were taken over, of how many."""
    pick = random.Random(seed)
    tokens = [token.content for token in tokenizer.added_tokens]
    tokens = (tokens[:8] + pick.sample(tokens, min(4, len(tokens)))) or ["<"]
    text, guarded, last = drawn(pick, tokens, pick.choice((5, 50, 400, 1200))), [], None
    reused = total = 0
    for _ in range(steps):
        expected = tokenizer.encode(text, add_special_tokens=False, guarded=guarded)
        found = tape(core_of(tokenizer).encoder, text, guarded, last)
        assert found.ids.tolist() == expected, (text, guarded, found.difference, found.resumed, found.rejoined)
        reused += len(expected) if found is last else found.reused_ids
        total += len(expected)
        last = found
        text = edited(pick, text, tokens)
        if pick.random() < 0.3:
            guarded = sorted(pick.sample(range(len(text)), min(len(text), pick.choice((0, 1, 3)))))
        else:
            guarded = [offset for offset in guarded if offset < len(text)]
    return reused, total


@pytest.mark.parametrize("name", REAL)
def test_ids_are_those_of_encode(name, data):
    tokenizer = real_tokenizer(data(f"tokenizers/{name}"))
    found = [check(tokenizer, seed, 12) for seed in range(12)]
    assert sum(reused for reused, _ in found) > sum(total for _, total in found) / 4


@pytest.mark.parametrize("flags", FLAGS)
@given(seed=st.integers(0, 1 << 32))
def test_tokens_that_overlap_strip_or_look_around(flags, seed):
    check(with_flags(flags), seed, 10)


_made: dict[str, Tokenizer] = {}


def with_flags(flags: str) -> Tokenizer:
    if flags not in _made:
        _made[flags] = Tokenizer.default().with_added_tokens(FLAGS[flags])
    return _made[flags]


def test_a_token_that_the_next_text_completes():
    """The trap of caches that cut behind every special token: `〈|` is one, and so is `〈|EOS|〉`."""
    tokenizer = with_flags("overlapping")
    before = "x" * 2000 + "<a><b>"
    first = _core.tape(core_of(tokenizer).encoder, before, [], None)
    for end in ("xyz", "y", "<b>", ""):
        found = _core.tape(core_of(tokenizer).encoder, before + end, [], first)
        assert found.ids.tolist() == tokenizer.encode(before + end, add_special_tokens=False)


def test_the_same_text_with_other_guards_is_another_text():
    tokenizer = Tokenizer.default()
    token = next(iter(tokenizer.special_tokens))
    text = "some words " * 200 + token + " and more words" * 200
    plain = _core.tape(core_of(tokenizer).encoder, text, [], None)
    at = text.index(token)
    guarded = _core.tape(core_of(tokenizer).encoder, text, [at], plain)
    assert guarded is not plain
    assert guarded.ids.tolist() == tokenizer.encode(text, add_special_tokens=False, guarded=[at]) != plain.ids.tolist()
    assert _core.tape(core_of(tokenizer).encoder, text, [at], guarded) is guarded
    later = _core.tape(core_of(tokenizer).encoder, text, [at + 1], guarded)
    assert guarded.difference == at == later.difference


def test_an_appended_text_costs_what_is_new(data):
    tokenizer = real_tokenizer(data("tokenizers/qwen3"))
    text = "".join(f"<|im_start|>user\nMessage {i}: " + "some words. " * 40 + "<|im_end|>\n" for i in range(200))
    first = _core.tape(core_of(tokenizer).encoder, text, [], None)
    second = _core.tape(core_of(tokenizer).encoder, text + "<|im_start|>assistant\nNew", [], first)
    assert second.size - second.resumed < 1100
    assert second.reused_ids > 0.99 * len(first.ids)
    assert second.memory < 2.5 * second.size


def test_an_edit_in_the_middle_keeps_the_ids_behind_it(data):
    for name in ("qwen3", "gpt2", "openai/o200k_base.tiktoken"):
        tokenizer = real_tokenizer(data(f"tokenizers/{name}"))
        text = "".join(f"{i} some words and a number, again; " for i in range(5000))
        first = _core.tape(core_of(tokenizer).encoder, text, [], None)
        changed = text[:60000] + "something else" + text[60100:]
        second = _core.tape(core_of(tokenizer).encoder, changed, [], first)
        assert second.ids.tolist() == tokenizer.encode(changed, add_special_tokens=False)
        assert second.rejoined - second.resumed < 2500, name


@pytest.mark.parametrize("name", ["qwen3", "llama-2", "phi-3-mini", "gpt2"])
def test_ids_before_a_byte(name, data):
    """At a place where encoding may be resumed, the ids before and behind are those of the text; the kept cuts are among the places."""
    tokenizer = real_tokenizer(data(f"tokenizers/{name}"))
    encoder = core_of(tokenizer).encoder
    tokens = [token.content for token in tokenizer.added_tokens][:6]
    found = 0
    for seed in range(4):
        text = drawn(random.Random(seed), tokens, 120)
        whole = _core.tape(encoder, text, [], None)
        assert (
            dict(whole.cuts).items() <= {byte: _core.ids_before(encoder, whole, byte) for byte, _ in whole.cuts}.items()
        )
        data_ = text.encode()
        for byte in range(0, len(data_) + 1, 3):
            count = _core.ids_before(encoder, whole, byte)
            if count is None:
                continue
            found += 1
            before = data_[:byte].decode()
            assert (
                tokenizer.encode(before, add_special_tokens=False)[: max(0, count - 12)]
                == whole.ids.tolist()[: max(0, count - 12)]
            )
            longer = _core.tape(encoder, before + data_[byte:].decode() + " and more", [], whole)
            assert longer.ids.tolist()[:count] == whole.ids.tolist()[:count] or byte + 80 > len(data_)
    assert found > 20
    assert _core.ids_before(encoder, whole, 0) == 0
    assert _core.ids_before(encoder, whole, len(data_)) == len(whole.ids)


def test_the_ids_are_read_only_and_keep_the_tape():
    tokenizer = Tokenizer.default()
    ids = _core.tape(core_of(tokenizer).encoder, "Hello there", [], None).ids
    assert not ids.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 1
    assert ids.tolist() == tokenizer.encode("Hello there", add_special_tokens=False)


def test_a_lone_surrogate_is_refused():
    with pytest.raises(TextError, match="lone surrogate"):
        _core.tape(core_of(Tokenizer.default()).encoder, "a\ud800", [], None)


def test_utf8_is_taken_as_a_str_is():
    encoder, text = core_of(Tokenizer.default()).encoder, "na\u00efve \U0001f30a text " * 50
    first = _core.tape(encoder, text, [3], None)
    assert _core.tape(encoder, text.encode(), [3], first) is first
    second = _core.tape(encoder, bytearray((text + "more").encode()), [3], first)
    gc.collect()
    assert second.ids.tolist() == _core.tape(encoder, text + "more", [3], None).ids.tolist()
    with pytest.raises(TypeError, match="bytes-like"):
        _core.tape(encoder, 5, [], None)


def agreement(one, other) -> int:
    """The number of equal items at the start."""
    return next((i for i, (here, there) in enumerate(zip(one, other, strict=False)) if here != there), min(len(one), len(other)))  # fmt: skip


def test_what_two_tapes_have_in_common():
    tokenizer = Tokenizer.default()
    encoder, tokens = core_of(tokenizer).encoder, [token.content for token in tokenizer.added_tokens]
    for seed in range(share(1200)):
        pick = random.Random(seed)
        texts = [drawn(pick, tokens, pick.choice((3, 200)))]
        texts += [edited(pick, texts[0], tokens), edited(pick, texts[0], tokens)]
        guards = [sorted(pick.sample(range(len(text)), min(len(text), pick.choice((0, 2))))) for text in texts]
        first = _core.tape(encoder, texts[0], guards[0], None)
        second = _core.tape(encoder, texts[1], guards[1], first)  # which remembers some of it
        third = _core.tape(encoder, texts[2], guards[2], None)
        assert (first.size, len(first.ids)) == first.common(first)
        for one, other in ((second, first), (first, second), (third, first), (second, third)):
            size, ids = one.common(other)
            here, there = one.bytes(0, one.size), other.bytes(0, other.size)
            differing = set(one.guards) ^ set(other.guards)
            assert size == min((agreement(here, there), *differing))
            assert ids == agreement(one.ids.tolist(), other.ids.tolist())
        data = texts[0].encode()
        assert first.guards == [len(texts[0][:offset].encode()) for offset in guards[0]]
        assert [first.bytes(start, end) for start, end in ((3, 9), (9, 3), (0, 10**9), (10**9, 10**9 + 1))] == [
            data[3:9], b"", data, b"",
        ]  # fmt: skip


def test_ids_of_another_encoder_make_a_tape_without_cuts():
    tokenizer = Tokenizer.default()
    encoder, text = core_of(tokenizer).encoder, "na\u00efve \U0001f30a text " * 200
    first = _core.tape(encoder, text, [3], None)
    taken = _core.tape_of_ids(text.encode(), [3], first.ids)
    assert (taken.ids.tolist(), taken.size, taken.guards, taken.cuts) == (first.ids.tolist(), first.size, [4], [])
    assert _core.tape(encoder, text, [3], taken) is taken
    longer = _core.tape(encoder, text + "more", [3], taken)
    assert longer.ids.tolist() == tokenizer.encode(text + "more", add_special_tokens=False, guarded=[3])
    assert (longer.reused_ids, longer.common(taken)) == (
        0,
        _core.tape(encoder, text + "more", [3], first).common(first),
    )
    for byte in range(0, taken.size + 1, 7):
        assert _core.ids_before(encoder, taken, byte) == _core.ids_before(encoder, first, byte)
    assert taken.common_bytes(text[:20] + "x") == len(text[:20].encode())
    with pytest.raises(TypeError):
        _core.tape_of_ids(text, [3], "ids")
