"""The behaviour that devices share, and the errors where there is no CUDA device."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from functools import partial
from threading import Thread
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tokenweir.encode.errors import DeviceError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import CupyDevice, GpuDecoder, GpuEncoder


def test_arrays_come_back_as_they_went(device):
    for host in (np.arange(9, dtype=np.int64), np.zeros(0, np.int32), np.array([255, 0], np.uint8)):
        with device.use():
            array = device.to_device(host)
            back = device.to_host(array)
        assert (array.size, array.dtype) == (host.size, host.dtype)
        assert back.dtype == host.dtype and back.tolist() == host.tolist()
        back[:] = 7
        assert device.to_host(array).tolist() == host.tolist()  # it was a copy


def test_what_is_not_contiguous_is_copied_in_its_order(device):
    assert device.to_host(device.to_device(np.arange(10)[::-3])).tolist() == [9, 6, 3, 0]


def test_new_arrays(device):
    assert device.to_host(device.zeros(5, np.uint32)).tolist() == [0] * 5
    assert (device.empty(5, np.int64).size, device.empty(0, np.int64).size) == (5, 0)


def test_arrays_that_are_had_at_once(device):
    for zero in (False, True):
        arrays = device.words([5, 0, 1, 30], zero=zero)
        assert [(array.size, array.dtype) for array in arrays] == [(n, np.uint32) for n in (5, 0, 1, 30)]
        assert all(device.address(array) % 16 == 0 for array in arrays if array.size)
        if zero:
            assert not any(device.to_host(array).any() for array in arrays)
        for i, array in enumerate(arrays):
            array[:] = i
        assert [device.to_host(array).tolist() for array in arrays] == [[i] * n for i, n in enumerate((5, 0, 1, 30))]


class Watched:
    """A device that knows whether copies to it are under way."""

    def __init__(self, device):
        self.device = device
        self.copies = 0

    def __getattr__(self, name):
        if name == "to_device":
            self.copies += 1
        if name == "synchronize":
            self.copies = 0
        return getattr(self.device, name)


@pytest.mark.parametrize(
    "make", [GpuEncoder, partial(GpuEncoder, mode="blockbpe"), GpuDecoder], ids=["exact", "blockbpe", "decoder"]
)
def test_tables_are_there_before_another_thread_can_use_them(device, make):
    watched = Watched(device)
    make(Tokenizer.default(), device=watched)
    assert watched.copies == 0


def test_parts_of_arrays_are_arrays(device):
    array = device.to_device(np.arange(16, dtype=np.uint8))
    assert device.address(array[8:]) == device.address(array) + 8
    assert device.to_host(array[8:].view(np.int64)).tobytes() == bytes(range(8, 16))
    array[2:4] = device.to_device(np.array([50, 60], np.uint8))
    assert device.to_host(array)[:5].tolist() == [0, 1, 50, 60, 4]


def test_kernels_take_arrays_and_numbers(device):
    rows, mask = device.empty(4, np.int32), device.empty(4, np.int32)
    ids, offsets = device.to_device(np.array([5, 6, 7], np.int32)), device.to_device(np.array([0, 3], np.int64))
    numbers = np.int64(4), np.int64(1), np.int32(-1), np.int32(0), np.int32(0)
    with device.use():
        device.launch("pad_rows", 1, 32, ids, offsets, *numbers, rows, mask)
        device.synchronize()
    assert device.to_host(rows).tolist() == [5, 6, 7, -1]


def test_a_launch_that_cannot_be_raises_device_error(device):
    array = device.zeros(2, np.int64)
    sizes = [np.int64(1)] * 2 + [np.int32(0)] * 3
    for grid, block in ((0, 32), (1, 0), (1, 4096)):
        with pytest.raises(DeviceError, match=f"^{device.name}: "), device.use():
            device.launch("pad_rows", grid, block, array, array, *sizes, array, array)


@pytest.mark.parametrize(("grid", "block"), [(0, 32), (-1, 32), (1 << 31, 32), (1, 0), (1, 1025)])
def test_cupy_is_never_asked_for_a_launch_that_cannot_be(grid, block):
    """CuPy itself makes 1 of a grid of 0, and launches."""
    device = object.__new__(CupyDevice)  # without a device
    device.name, device._kernels = "NVIDIA Paper", {"pad_rows": lambda *_: pytest.fail("launched")}
    with pytest.raises(DeviceError, match=f"^NVIDIA Paper: pad_rows cannot run in {grid} blocks of {block} threads$"):
        device.launch("pad_rows", grid, block)


def test_memory_of_the_host_that_is_pinned(device):
    with device.use():
        host = device.pinned(100)
        assert (host.dtype, host.size, host.flags.writeable) == (np.uint8, 100, True)
        host[:] = 3
        assert device.to_host(device.to_device(host[10:20])).tolist() == [3] * 10
        assert device.free_bytes() > 1 << 20


def test_what_another_thread_does_apart_is_waited_for_by_its_event(device):
    found = []

    def work():
        with device.side_stream():
            array = device.empty(1000, np.int64)
            device.overwrite(array, np.arange(1000))
            found.extend((array, device.record_event()))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    array, event = found
    with device.use():
        device.wait_for(event.ptr)
        copy = device.fetch(array)
        event.synchronize()
        assert copy().tolist() == device.to_host(array).tolist() == [*range(1000)]
        assert device.fetch(device.empty(0, np.int32))().tolist() == []


# -- without CUDA ------------------------------------------------------------------------------------------------------


class FakeError(RuntimeError):
    pass


def fake_cupy(*, driver=13020, count=1, device_error=None, nvrtc_error=None, capability=(9, 0)):
    """As much of CuPy as is asked before there is a device."""

    def device_count():
        if device_error:
            raise FakeError(device_error)
        return count

    def nvrtc_version():
        if nvrtc_error:
            raise FakeError(nvrtc_error)
        return 13, 2

    properties = {"name": b"NVIDIA Imaginary", "major": capability[0], "minor": capability[1]}
    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(
        Device=lambda number: nullcontext(),
        runtime=SimpleNamespace(
            CUDARuntimeError=FakeError,
            driverGetVersion=lambda: driver,
            runtimeGetVersion=lambda: 13020,
            getDeviceCount=device_count,
            getDevice=lambda: 0,
            getDeviceProperties=lambda number: properties,
        ),
        driver=SimpleNamespace(CUDADriverError=FakeError),
        memory=SimpleNamespace(OutOfMemoryError=FakeError),
        nvrtc=SimpleNamespace(getVersion=nvrtc_version),
    )
    return cupy


def test_cupy_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match=r"CuPy, which is not installed: pip install 'tokenweir\[gpu-cuda13\]', or"):
        CupyDevice()


def test_cupy_does_not_load(monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text("raise ImportError('libcudart.so.99: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    with pytest.raises(DeviceError, match=r"^CuPy is installed but does not load: libcudart.so.99: no such file$"):
        CupyDevice()


@pytest.mark.parametrize(
    ("fake", "number", "message"),
    [
        ({"driver": 0}, None, r"there is no NVIDIA driver \(libcuda.so.1\) on this machine"),
        (
            {"driver": 12040, "device_error": "too old"},
            None,
            r"there is no CUDA device: too old \(driver of CUDA 12.4, CuPy wants CUDA 13.2; CUDA_VISIBLE_DEVICES is '7'\)",
        ),
        (
            {"nvrtc_error": "no libnvrtc.so.13\nlistdir: ..."},
            None,
            r"NVRTC, which compiles the kernels, is missing: pip install nvidia-cuda-nvrtc \(no libnvrtc.so.13\)",
        ),
        ({"capability": (7, 5)}, None, "NVIDIA Imaginary has compute capability 7.5; 8.0 is needed"),
        ({"count": 2}, 2, "there is no CUDA device 2: 2 are visible"),
        ({"count": 2}, -1, "there is no CUDA device -1: 2 are visible"),
    ],
)
def test_what_is_missing_is_said(monkeypatch, fake, number, message):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(**fake))
    with pytest.raises(DeviceError, match=f"^{message}$"):
        CupyDevice(number)


def test_a_device_is_named_and_its_architecture_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(capability=(12, 1)))
    device = CupyDevice()
    assert (device.name, device.arch) == ("NVIDIA Imaginary", "sm_121")


def test_a_device_does_not_survive_a_fork(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    device = CupyDevice()
    with device.use():
        pass
    monkeypatch.setattr(os, "getpid", lambda: -1)
    message = "^NVIDIA Imaginary was taken before this process was forked: make an encoder in each process$"
    for use in (device.use, device.side_stream):
        with pytest.raises(DeviceError, match=message), use():
            pass
