"""Strings of Arrow that lie on the device, and those that say that they do."""

from __future__ import annotations

import gc

import cupy_stand_in
import numpy as np
import pytest
from arrow_arrays import ArrowArray, ArrowOnDevice, string_array
from shim_device import ARROW_TYPE

from tokenweir import Tokenizer
from tokenweir.encode.errors import TextError
from tokenweir.gpu import GpuEncoder

TEXTS = ["the weir", "", "naïve 生活", "<|im_end|>", "🙂" * 40, " don't", "", "x" * 300]
CPU, CUDA, CUDA_HOST, METAL, MANAGED = 1, 2, 3, 8, 13


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.fixture
def kind(device):
    """Arrow's type of the device that the tests run on."""
    return ARROW_TYPE if device.name == "shim" else CUDA


@pytest.fixture
def lying(device, kind):
    """Function that copies an array to the device, and exports it from there."""
    return lambda array, event=None: ArrowOnDevice(array.put_on(device), (kind, 0), event)


def is_gpu(device):
    return device.name not in ("shim", cupy_stand_in.NAME)


def check(gpu, texts, wanted):
    assert [ids.tolist() for ids in gpu.encode_batch(texts).to_host()] == wanted


@pytest.mark.parametrize("layout", ["u", "U", "z", "Z"])
@pytest.mark.parametrize("options", [{}, {"max_batch_bytes": 320}])
def test_strings_on_the_device_have_the_ids_of_encode(tok, device, lying, layout, options):
    wanted = [tok.encode(text) for text in TEXTS]
    gpu = GpuEncoder(tok, device=device, **options)
    array = string_array(TEXTS, layout)
    check(gpu, lying(array), wanted)
    assert array.released == 1
    part = string_array(TEXTS, layout, offset=2)
    part.array.length = 5
    check(gpu, lying(part), wanted[2:7])
    check(gpu, lying(ArrowArray(layout, 0, [None, None, None])), [])
    check(gpu, lying(string_array(["", ""], layout)), [[], []])


def test_what_the_kernels_leave_out_is_fetched(tok, device, lying):
    texts = ["the weir", b"b\xff", "", "x" * 70_000, "水"]
    gpu = GpuEncoder(tok, device=device)
    wanted = [tok.encode(text.decode("utf-8", "replace") if isinstance(text, bytes) else text) for text in texts]
    check(gpu, lying(string_array(texts, "z")), wanted)
    assert gpu.stats.on_cpu["it is not UTF-8"] == 1


def test_the_array_is_kept_until_it_is_encoded(tok, device, lying, monkeypatch):
    """The struct was moved out of its capsule, which therefore does not release it."""
    array = string_array(TEXTS)
    gpu = GpuEncoder(tok, device=device)
    mode, released = gpu._pipelines[0].mode, []
    encode = mode.begin

    def watched(*args, **options):
        gc.collect()
        released.append(array.released)
        return encode(*args, **options)

    monkeypatch.setattr(mode, "begin", watched)
    check(gpu, lying(array), [tok.encode(text) for text in TEXTS])
    assert (released, array.released) == ([0], 1)


def test_the_device_waits_for_the_event_of_an_array(tok, device, kind, lying):
    cupy_stand_in.awaited.clear()
    handle = 0xE4E27
    if is_gpu(device):
        from cupy.cuda import Event

        event = Event(disable_timing=True)
        event.record()
        handle = event.ptr
    check(GpuEncoder(tok, device=device), lying(string_array(["fox"]), handle), [tok.encode("fox")])
    assert cupy_stand_in.awaited == ([0xE4E27] if kind == CUDA and not is_gpu(device) else [])


@pytest.mark.parametrize("host", [CPU, CUDA_HOST])
def test_arrays_of_the_host_by_the_device_interface(tok, device, host):
    wanted = [tok.encode(text) for text in TEXTS]
    for layout in ("u", "vu"):
        check(GpuEncoder(tok, device=device), ArrowOnDevice(string_array(TEXTS, layout), (host, 0)), wanted)
        on_cpu = tok.encode_batch(ArrowOnDevice(string_array(TEXTS, layout), (host, -1)))
        assert [ids.tolist() for ids in on_cpu] == wanted
    with pytest.raises(TextError, match=r"^texts\[0\] is not UTF-8$"):
        tok.encode_batch(ArrowOnDevice(string_array([b"\xff"]), (host, 0)))


def test_arrays_of_pyarrow_by_the_device_interface(tok, device):
    pyarrow = pytest.importorskip("pyarrow")

    class OnlyDevice:
        def __arrow_c_device_array__(self, requested_schema=None, **options):
            return pyarrow.array(TEXTS).__arrow_c_device_array__(requested_schema, **options)

    wanted = [tok.encode(text) for text in TEXTS]
    for texts in (pyarrow.array(TEXTS), OnlyDevice()):
        check(GpuEncoder(tok, device=device), texts, wanted)
        assert [ids.tolist() for ids in tok.encode_batch(texts)] == wanted


def test_managed_memory_is_read_by_every_cuda_device(tok, device, kind):
    strings = string_array(["fox"])
    array = ArrowOnDevice(strings.put_in_managed_memory() if is_gpu(device) else strings, (MANAGED, 7))
    gpu = GpuEncoder(tok, device=device)
    if kind == CUDA:
        return check(gpu, array, [tok.encode("fox")])
    with pytest.raises(
        ValueError, match="^an Arrow array on device 7 of Arrow's type 13, which is not one that shim can"
    ):
        gpu.encode_batch(array)


@pytest.mark.parametrize("place", [(CUDA, 1), (METAL, 0)])
def test_an_array_of_another_device_is_refused(tok, device, place):
    message = f"^an Arrow array on device {place[1]} of Arrow's type {place[0]}, which is not one that {device.name} can read$"
    with pytest.raises(ValueError, match=message):
        GpuEncoder(tok, device=device).encode_batch(ArrowOnDevice(string_array(["fox"]), place))
    with pytest.raises(ValueError, match=f"^an Arrow array on a device of type {place[0]}, whose memory the CPU does"):
        tok.encode_batch(ArrowOnDevice(string_array(["fox"]), place))


def offsets(*values):
    return np.array(values, np.int32).tobytes()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (ArrowArray("i", 1, [None, bytes(4)]), "an Arrow array of format 'i' is not one of strings"),
        (string_array(["fox"], "vu"), "an Arrow array of format 'vu' on a device: cast it to string or large_string"),
        (ArrowArray("u", 2, [None, offsets(0, 3, 1), b"abc"]), r"the offsets of texts\[1\] do not ascend"),
        (ArrowArray("u", 1, [None, offsets(-1, 1), b"abc"]), r"the offsets of texts\[0\] do not ascend"),
        (
            ArrowArray("u", 4, [b"\x5d", offsets(0, 1, 2, 3, 3, 3, 3), b"abc"], offset=2, null_count=-1),
            r"texts\[3\] is null",
        ),
    ],
)
def test_arrays_that_are_refused(tok, device, lying, array, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        GpuEncoder(tok, device=device).encode_batch(lying(array))


def test_an_array_that_could_have_nulls_and_has_none(tok, device, lying):
    array = ArrowArray("u", 2, [b"\x06", offsets(0, 0, 3, 6), b"foxfox"], offset=1, null_count=-1)
    check(GpuEncoder(tok, device=device), lying(array), [tok.encode("fox")] * 2)
