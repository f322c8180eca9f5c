"""Small batches done by a recording have the ids of those whose kernels are launched one by one."""

from __future__ import annotations

import gc
from functools import cache

import numpy as np
import pytest
from arrow_arrays import string_array
from hypothesis import given
from hypothesis import strategies as st
from in_threads import in_threads
from shim_device import ShimDevice
from small_tokenizers import small

from tokenweir import Prompt, Tokenizer
from tokenweir.encode.base.platform import usable_cores
from tokenweir.encode.spec import AddedToken
from tokenweir.gpu import GpuEncoder, replay
from tokenweir.gpu.encoder import CPU_BYTES
from tokenweir.gpu.kernels import kernel_sources
from tokenweir.gpu.replay import BUCKETS, BYTES_OF_ID
from tokenweir.verify.adversarial import strings

SMALL, LARGE = BUCKETS[0], BUCKETS[3]
BATCHES = [
    ["the quick brown fox"],
    ["a"] * SMALL.documents,
    ["naïve 生活", "", "<|im_start|>user\n<|im_end|>", " don't", "🙂" * 9],
    [""],
    [],
    ["x" * 700, "short"],
    [b"\xff\xfe", "after it", b"\x80", "\u2581 and \u0301", "生".encode()[:2]],
    ["the quick brown fox jumps over the dog. " * 400, "", "1234"],
    ["b" * (SMALL.size - 1), "c"],
    ["a b " * (LARGE.size // 4)],
    ["d"] * (SMALL.documents + 1),
    ["x", "生" * 3000],
    ["the quick brown fox"],
]


@pytest.fixture(autouse=True)
def _two_buckets(monkeypatch):
    monkeypatch.setattr(replay, "BUCKETS", (SMALL, LARGE))


TWO_WORKERS = {"workers": 2}
"""A recording has the workers of its bucket. Each takes its time here, whether or not there is something to do."""


class Watched:
    """An encoder that replays beside one that does not."""

    def __init__(self, tok, device, **options):
        self.tok = tok
        self.replaying = GpuEncoder(tok, device=device, replay=True, **options)
        self.plain = GpuEncoder(tok, device=device, **options)

    def check(self, texts, **options):
        found = self.replaying.encode_batch(texts, **options)
        wanted = self.plain.encode_batch(texts, **options).to_host()
        assert np.array_equal(found.to_host().ids, wanted.ids) and np.array_equal(
            found.to_host().offsets, wanted.offsets
        )
        assert found.ids.size == len(wanted.ids)
        return found

    def recordings(self):
        return self.replaying._pipelines[0]._replays._replays


@pytest.fixture
def watched(device):
    return Watched(Tokenizer.default(), device, **TWO_WORKERS)


@pytest.mark.parametrize("options", [{}, {"parse_special": False, "add_special_tokens": False}])
def test_batches_that_shrink_grow_and_are_empty(watched, options):
    first = watched.check(BATCHES[0], **options)
    kept = first.to_host().ids.tolist()
    for texts in BATCHES:
        watched.check(texts, **options)
    assert first.to_host().ids.tolist() == kept, "what was given out is overwritten by nobody"


def test_each_bucket_is_recorded_once(watched):
    for _ in range(3):
        for texts in (["a"], ["a" * SMALL.size], ["a b " * (SMALL.size // 2)], ["a"] * LARGE.documents):
            watched.check(texts)
        watched.check(["a"], parse_special=False)
    first = dict(watched.recordings())
    assert set(first) == {(SMALL, True), (LARGE, True), (SMALL, False)}
    watched.check(["b"])
    assert watched.recordings() == first


@pytest.fixture
def calls(device, monkeypatch):
    """Names of the kernels and allocating methods that are called outside a recording, in order."""
    made, within = [], []

    def noted(name, real):
        def call(*args, **options):
            if not within:
                made.append(args[0] if name == "launch" else name)
            within.append(name)
            try:
                return real(*args, **options)
            finally:
                within.pop()

        return call

    for name in ("launch", "empty", "zeros", "words"):
        monkeypatch.setattr(device, name, noted(name, getattr(device, name)))
    return made


def test_a_batch_is_one_launch_and_one_allocation(watched, calls):
    for texts in (["the quick brown fox"], ["a", "", "naïve 生活"], [b"\xff", "b"]):
        watched.replaying.encode_batch(texts, add_special_tokens=False)
        calls.clear()
        watched.replaying.encode_batch(texts, add_special_tokens=False)
        assert calls[0] == "words"
        assert calls[1:] == [] or texts[0] == b"\xff"  # whose ids are from the CPU, and are inserted


def test_more_ids_than_there_is_room_for(watched, calls):
    texts = ["\x01\x02\x03\x04" * 50, "", "\x05"]
    assert len(watched.tok.encode(texts[0])) > len("".join(texts)) // BYTES_OF_ID + len(texts)
    first = watched.check(texts)
    kept = first.to_host().ids.tolist()
    calls.clear()
    watched.replaying.encode_batch(texts, add_special_tokens=False)
    assert calls == ["words", "empty", "empty", "collect_ids"]
    watched.check(["y" * 200, "", "z"])
    assert first.to_host().ids.tolist() == kept


def test_memory_does_not_grow():
    device = ShimDevice(kernel_sources())
    watched = Watched(Tokenizer.default(), device, **TWO_WORKERS)
    sizes = set()
    for i in range(1, 12):
        watched.check([f"the quick brown fox {i} " * i])
        gc.collect()
        sizes.add(sum(block.nbytes for ref in device._blocks if (block := ref()) is not None))
    assert len(sizes) == 1


def test_what_goes_the_usual_way(watched):
    larger = [["a b " * (LARGE.size // 4), "c"], ["a"] * (LARGE.documents + 1), [Prompt("<|im_end|>", [0])]]
    for texts in larger:
        watched.check(texts)
    assert not watched.recordings()
    found = watched.check([Prompt("<|im_end|>", [0]), "b", Prompt("b", [])])
    assert [ids.tolist() for ids in found.to_host()][1] == watched.tok.encode("b")
    assert not watched.recordings()
    watched.check(string_array(["from", "", "Arrow"]))
    assert set(watched.recordings()) == {(SMALL, True)}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("qwen3/tokenizer.json", TWO_WORKERS),
        ("llama-2/tokenizer.json", TWO_WORKERS),
        ("llama-2/tokenizer.model", TWO_WORKERS),
        ("t5-small/tokenizer.json", {}),
        ("bert-base-uncased/tokenizer.json", {}),
    ],
)
def test_every_exact_mode(data, kernels_on, name, options):
    watched = Watched(Tokenizer.from_file(data("tokenizers") / name), kernels_on(), **options)
    for texts in BATCHES[:8]:
        watched.check(texts)
    assert set(watched.recordings()) == {(SMALL, True), (LARGE, True)}


def test_added_tokens_of_several_searches(device):
    added = [
        AddedToken(id=300, content="<a>"),
        AddedToken(id=301, content="Ab", normalized=True),
        AddedToken(id=302, content="  "),
    ]
    watched = Watched(small(added_tokens=added), device)
    for texts in (["x<a>  Ab", "   ", "<a><a>"], [""], ["Ab"], ["<a", ">b"]):
        watched.check(texts)
    assert set(watched.recordings()) == {(SMALL, True)}


def test_oversized_pieces_are_left_out(device):
    """And encoded by the CPU, as often as the recording is replayed."""
    watched = Watched(Tokenizer.default(), device, max_bytes=64)
    for _ in range(2):
        watched.check(["x" * 65, "y", "z" * 64])
    assert not watched.replaying.stats.on_cpu and not watched.plain.stats.on_cpu


def test_only_exact_mode_replays(device):
    assert not GpuEncoder(Tokenizer.default(), mode="blockbpe", device=device)._pipelines[0]._replays
    with pytest.raises(TypeError, match="^replay=True is of exact mode only$"):
        GpuEncoder(Tokenizer.default(), mode="blockbpe", device=device, replay=True)


def test_the_defaults_replay_and_leave_small_batches_to_the_cpu(device, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(replay, "BUCKETS", (SMALL, LARGE))
    tok = Tokenizer.default()
    texts = ["the quick brown fox", "", "naïve 生活", Prompt("<|im_end|>", [0])]
    wanted = [tok.encode(text) if isinstance(text, str) else text.encode(tok) for text in texts]
    small_batches = GpuEncoder(tok, device=device)
    assert small_batches.min_bytes == CPU_BYTES * usable_cores()
    found = small_batches.encode_batch(texts)
    assert [ids.tolist() for ids in found.to_host()] == wanted and device.holds(found.ids)
    assert small_batches.stats.on_cpu == {f"a batch of less than {small_batches.min_bytes} bytes": 4}
    assert small_batches.stats.batches == 0
    all_batches = GpuEncoder(tok, device=device, min_bytes=0, **TWO_WORKERS)
    assert [ids.tolist() for ids in all_batches.encode_batch(texts[:3]).to_host()] == wanted[:3]
    assert not all_batches.stats.on_cpu and all_batches._pipelines[0]._replays._replays
    with pytest.raises(ValueError, match="^min_bytes must be at least 0, not -1$"):
        GpuEncoder(tok, device=device, min_bytes=-1)


def test_threads_take_turns(device):
    watched = Watched(Tokenizer.default(), device, **TWO_WORKERS)
    wanted = {text: watched.tok.encode(text) for text in ("the quick brown fox", "jumps", "生活 🙂" * 30)}
    wrong = []

    def encode(text):
        for _ in range(5):
            (ids,) = watched.replaying.encode_batch([text]).to_host()
            if ids.tolist() != wanted[text]:
                wrong.append(text)

    in_threads(encode, wanted)
    assert not wrong


DRAWN = st.sampled_from([text for kind in strings(1000, seed="replay").values() for text in kind]) | st.binary(
    max_size=40
)


@cache
def drawn_encoders():
    return Watched(Tokenizer.default(), ShimDevice(kernel_sources()), **TWO_WORKERS)


@given(st.lists(st.lists(DRAWN, max_size=SMALL.documents + 2), min_size=1, max_size=3))
def test_drawn_batches(batches):
    for texts in batches:
        drawn_encoders().check(texts)
