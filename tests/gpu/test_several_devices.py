"""One encoder on several devices: shares of a batch, and all ids on the first device."""

from __future__ import annotations

import threading

import cupy_stand_in
import numpy as np
import pytest
from arrow_arrays import ArrowOnDevice, string_array
from shim_device import ARROW_TYPE

from tokenweir import Prompt, Tokenizer
from tokenweir.encode.errors import DeviceError
from tokenweir.gpu import GpuEncoder, texts
from tokenweir.verify.adversarial import strings


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.fixture
def devices(device_of, monkeypatch):
    monkeypatch.setattr(texts, "SHARE_BYTES", 20)
    return [device_of(number=number) for number in range(2)]


@pytest.fixture
def sizes_of(monkeypatch):
    """The bytes of the batches that each device of an encoder gets from now on."""

    def watch(gpu):
        found = []
        for pipeline in gpu._pipelines:
            encode, sizes = pipeline.mode.begin, []

            def watched(text, offsets, encode=encode, sizes=sizes, device=pipeline.device, **options):
                sizes.append(int(device.to_host(offsets)[-1]))
                return encode(text, offsets, **options)

            monkeypatch.setattr(pipeline.mode, "begin", watched)
            found.append(sizes)
        return found

    return watch


def check(found, wanted):
    assert [ids.tolist() for ids in found.to_host()] == wanted
    for array in (found.ids, found.offsets):
        if isinstance(array, cupy_stand_in.StandInArray):
            assert array.device.id == 0


TEXTS = ["the quick", "", "fox", "naïve 生活", " don't", "🙂" * 9, "", "1234", "x" * 30]


@pytest.mark.parametrize("options", [{}, {"max_batch_bytes": 36}])
def test_devices_share_a_batch_by_its_bytes(tok, devices, sizes_of, options):
    gpu = GpuEncoder(tok, device=devices, **options)
    assert (gpu.device, gpu.devices) == (devices[0], tuple(devices))
    sizes = sizes_of(gpu)
    check(gpu.encode_batch(TEXTS), [tok.encode(text) for text in TEXTS])
    assert [sum(own) for own in sizes] == [67, 34]
    assert gpu.stats.batches == sum(map(len, sizes))


def test_every_text_has_the_ids_of_encode(tok, devices):
    special = [*tok.special_tokens]
    many = [text[:200] for group in strings(100, seed="devices", special_tokens=special).values() for text in group]
    prompt = Prompt("<|im_start|>user\n<|im_end|> naïve<|im_end|>", guarded=(17, 18))
    for one in (many, [*TEXTS, prompt, b"b\xff", *TEXTS, "x" * 70_000, prompt], [prompt] * 9):
        wanted = [
            text.encode(tok) if isinstance(text, Prompt) else tok.encode(text.decode("utf-8", "replace"))
            for text in (text.encode() if isinstance(text, str) else text for text in one)
        ]
        gpu = GpuEncoder(tok, device=devices)
        check(gpu.encode_batch(one), wanted)
        assert gpu.stats.documents == len(one) and gpu.stats.ids == sum(map(len, wanted))


@pytest.mark.parametrize("one", [[], [""], ["", "", ""], ["fox"], ["x" * 60], ["x" * 60, ""], ["", "x" * 60]])
def test_batches_that_one_device_takes(tok, devices, one):
    check(GpuEncoder(tok, device=devices).encode_batch(one), [tok.encode(text) for text in one])


def test_a_small_batch_stays_on_the_first_device(tok, devices, sizes_of):
    gpu = GpuEncoder(tok, device=devices)
    sizes = sizes_of(gpu)
    check(
        gpu.encode_batch(["the quick brown fox", "jumps over the dog"]),
        [tok.encode("the quick brown fox"), tok.encode("jumps over the dog")],
    )
    assert sizes == [[37], []]


def test_more_devices_than_are_worth_it(tok, device_of, devices, sizes_of):
    gpu = GpuEncoder(tok, device=[*devices, device_of(number=1)])
    sizes = sizes_of(gpu)
    check(gpu.encode_batch(["a" * 22, "b" * 22]), [tok.encode("a" * 22), tok.encode("b" * 22)])
    assert sizes == [[22], [22], []]


def test_strings_on_one_of_the_devices_are_encoded_there(tok, devices, sizes_of):
    kind = ARROW_TYPE if devices[0].name == "shim" else 2
    if devices[0].name not in ("shim", cupy_stand_in.NAME) and devices[0].reads(2, devices[1]._number):
        pytest.skip("both are one GPU")
    gpu = GpuEncoder(tok, device=devices)
    sizes = sizes_of(gpu)
    given = [*TEXTS, b"\xff"]
    wanted = [tok.encode(text) for text in [*TEXTS, "\ufffd"]]
    for number in (1, 0):
        array = string_array(given, "z").put_on(devices[number])
        check(gpu.encode_batch(ArrowOnDevice(array, (kind, number))), wanted)
    assert sizes == [[102], [102]]


def test_a_device_that_fails_fails_the_call(tok, devices, monkeypatch):
    threads = {*threading.enumerate()}
    gpu = GpuEncoder(tok, device=devices)
    wanted = [tok.encode(text) for text in TEXTS]
    for pipeline in gpu._pipelines:

        def fail(*args, **options):
            raise DeviceError("out of memory")

        with monkeypatch.context() as patch:
            patch.setattr(pipeline.mode, "begin", fail)
            with pytest.raises(DeviceError, match="^out of memory$"):
                gpu.encode_batch(TEXTS)
        check(gpu.encode_batch(TEXTS), wanted)
    assert gpu.stats.documents == 2 * len(TEXTS)
    assert {*threading.enumerate()} <= threads


def test_no_devices(tok):
    with pytest.raises(ValueError, match="^device must be one or several, not none$"):
        GpuEncoder(tok, device=[])


def test_an_array_of_another_device_is_copied(devices):
    first, second = devices
    with second.use():
        there = second.to_device(np.arange(9))
    with first.use():
        here = first.copied(there)
        assert first.to_host(here).tolist() == [*range(9)]
