"""The buffers of a pipeline's slots are written again only after what reads them."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
from shim_device import ShimDevice

from tokenweir import Tokenizer
from tokenweir.encode.errors import DeviceError
from tokenweir.gpu import GpuEncoder, device_pipeline
from tokenweir.gpu.kernels import kernel_sources
from tokenweir.gpu.modes.batch import Batch

TEXTS = [f"{word} {i} 生活" * (1 + i % 4) for i, word in enumerate(["the", "quick", "brown", "fox"] * 6)]


class Deferring(ShimDevice):
    """A device whose side stream copies nothing until somebody waits for an event after the copy."""

    def __init__(self):
        super().__init__(kernel_sources())
        self._thread = threading.local()
        self.copies, self.done, self.in_use = [], 0, set()

    @contextmanager
    def side_stream(self):
        with self.use():
            self._thread.aside = True
            try:
                yield
            finally:
                self._thread.aside = False

    def overwrite(self, array, host):
        assert id(array.base) not in self.in_use, "what a batch reads until it is collected"
        if getattr(self._thread, "aside", False):
            self.copies.append((array, host))
        else:
            super().overwrite(array, host)

    def record_event(self):
        return DeferredEvent(self, len(self.copies) if getattr(self._thread, "aside", False) else 0)

    def wait_for(self, event):
        while self.done < event:
            array, host = self.copies[self.done]
            super().overwrite(array, host)
            self.done += 1


class DeferredEvent:
    def __init__(self, device, ptr):
        self.device, self.ptr = device, ptr

    def synchronize(self):
        self.device.wait_for(self.ptr)


@pytest.fixture
def gpu(monkeypatch):
    device = Deferring()
    gpu = GpuEncoder(Tokenizer.default(), device=device, max_batch_bytes=40, workers=2)
    mode = gpu._pipelines[0].mode
    begin, collect = mode.begin, Batch.collect

    def using(text, offsets, **options):
        device.in_use.add(id(text.base))
        return begin(text, offsets, **options)

    def collected(batch, *args):
        found = collect(batch, *args)
        device.in_use.discard(id(batch.text.base))
        return found

    monkeypatch.setattr(mode, "begin", using)
    monkeypatch.setattr(Batch, "collect", collected)
    return gpu


def check(gpu, texts):
    assert [ids.tolist() for ids in gpu.encode_batch(texts).to_host()] == [gpu.tokenizer.encode(text) for text in texts]


def test_parts_in_turn(gpu):
    for first in (0, 7, 1):
        check(gpu, TEXTS[first:])
    device = gpu.device
    assert device.done == len(device.copies) > 3 * device_pipeline.SLOTS
    assert len({id(array.base) for array, _ in device.copies}) == device_pipeline.SLOTS, "buffers are kept"
    before = gpu._pipelines[0]._slots[0].read
    check(gpu, TEXTS[:1])
    assert gpu._pipelines[0]._slots[0].read is not before


def test_a_part_too_large_to_be_kept(gpu, monkeypatch):
    monkeypatch.setattr(device_pipeline, "KEPT_BYTES", 0)
    check(gpu, TEXTS)
    assert not gpu.device.copies
    assert all(slot.text is None for slot in gpu._pipelines[0]._slots)


@pytest.mark.parametrize("kept", [0, device_pipeline.KEPT_BYTES])
def test_memory_goes_back_only_after_the_last_kernel_that_reads_it(gpu, monkeypatch, kept):
    """The memory pool gives it to the next part of another slot, whose stream knows nothing of that kernel."""
    monkeypatch.setattr(device_pipeline, "KEPT_BYTES", kept)
    monkeypatch.setattr(device_pipeline, "STAGING_STEP", 8)
    pipeline, over, returned = gpu._pipelines[0], set(), []
    upload, synchronize = pipeline._upload, DeferredEvent.synchronize

    def watched(texts, part, slot):
        copied = upload(texts, part, slot)
        weakref.finalize(copied[0].base, lambda: returned.append(slot.read in over))
        return copied

    monkeypatch.setattr(pipeline, "_upload", watched)
    monkeypatch.setattr(DeferredEvent, "synchronize", lambda event: (over.add(event), synchronize(event)))
    for texts in (["x" * 39] * 9, ["fox"] * 130):  # the offsets of short texts take more room
        check(gpu, texts)
        gpu.device.copies[:] = [None] * gpu.device.done
    assert len(returned) >= device_pipeline.SLOTS and all(returned)


def test_an_error_leaves_the_slots_usable(gpu, monkeypatch):
    mode = gpu._pipelines[0].mode
    begin, calls = mode.begin, []

    def fail(*args, **options):
        calls.append(args)
        if len(calls) == 4:
            raise DeviceError("out of memory")
        return begin(*args, **options)

    monkeypatch.setattr(mode, "begin", fail)
    with pytest.raises(DeviceError, match="^out of memory$"):
        gpu.encode_batch(TEXTS)
    assert gpu.device.done == len(gpu.device.copies), "nothing is under way"
    gpu.device.in_use.clear()
    check(gpu, TEXTS[::-1])


def test_the_report_of_a_part_is_fetched_before_the_next_one_is_launched(gpu):
    """So that collecting its ids does not wait for the next part."""
    order = []
    device = gpu.device
    launch, fetch = device.launch, device.fetch
    device.launch = lambda kernel, *args: (order.append(kernel), launch(kernel, *args))[1]
    device.fetch = lambda array: (order.append("fetch"), fetch(array))[1]
    check(gpu, TEXTS[:9])
    steps = [step for step in order if step in ("mark_documents", "fetch", "collect_ids")]
    assert steps[:6] == ["mark_documents", "fetch", "mark_documents", "fetch", "collect_ids", "mark_documents"]
    assert np.diff([order.count(step) for step in ("mark_documents", "fetch", "collect_ids")]).tolist() == [0, 0]
