"""The devices that tests run on: a GPU where there is one (REQUIRE_GPU=1: there must be) and the shim; without a GPU, also
`CupyDevice` on the stand-in for CuPy.
"""

from __future__ import annotations

import os

import cupy_stand_in
import pytest
from shim_device import ShimDevice

from tokenweir.encode import _core
from tokenweir.encode.errors import DeviceError
from tokenweir.encode.tokenizer import core_of
from tokenweir.gpu import CupyDevice, encoder
from tokenweir.gpu.kernels import kernel_sources
from tokenweir.gpu.modes import batch, exact


def _devices():
    try:
        return {"shim": None, "cuda": CupyDevice()}
    except DeviceError:
        if os.environ.get("REQUIRE_GPU") == "1":
            raise
        return {"shim": None}


DEVICES = _devices()


@pytest.fixture(autouse=True)
def _launched_one_by_one(monkeypatch):
    """Small batches go to the device, kernel by kernel, unless a test wants it otherwise. Those above 8 KB count as large, and those
    above 1 KB have pieces for threads.
    """
    monkeypatch.setattr(encoder, "CPU_BYTES", 0)
    monkeypatch.setattr(encoder, "REPLAY", False)
    monkeypatch.setattr(batch, "SMALL_BYTES", 1 << 13)
    monkeypatch.setattr(exact, "BY_WARPS_BYTES", 1 << 10)


@pytest.fixture(scope="session", params=[*DEVICES, *(() if "cuda" in DEVICES else ("cupy",))])
def device_of(request):
    """Function that returns a device for a seed of the shim's thread order and a device number.

    Two numbers may be one GPU.
    """
    if request.param == "shim":
        yield lambda seed=1, number=0: ShimDevice(kernel_sources(), seed, number)
    elif request.param == "cuda":
        from cupy.cuda.runtime import getDeviceCount

        yield lambda seed=1, number=0: CupyDevice(number % getDeviceCount()) if number else DEVICES["cuda"]
    else:
        request.getfixturevalue("nvrtc")  # part of CuPy
        with pytest.MonkeyPatch.context() as patch:
            cupy_stand_in.install(patch.setattr, kernel_sources())
            yield lambda seed=1, number=0: CupyDevice(number)


@pytest.fixture(scope="session", params=DEVICES)
def kernels_on(request):
    """Function that returns a device for a seed, for tests of kernels alone: a GPU or the shim, never the stand-in for CuPy."""
    if request.param == "shim":
        return lambda seed=1: ShimDevice(kernel_sources(), seed)
    return lambda seed=1: DEVICES["cuda"]


@pytest.fixture(scope="session")
def device(device_of):
    return device_of()


@pytest.fixture(scope="session")
def mode_of(kernels_on):
    """Function that returns exact mode for a tokenizer, where models merge by two workers, and the device that it runs on."""
    merging = _core.Bpe, _core.CharacterBpe, _core.SentencePieceBpe

    def mode_of(tok, seed=1, **options):
        device = kernels_on(seed)
        workers = {"workers": 2} if isinstance(core_of(tok).model, merging) else {}
        return encoder.MODES["exact"](tok, device, **workers | options), device

    return mode_of


@pytest.fixture(scope="session")
def nvrtc():
    """NVRTC by way of CuPy. Skips the test if it is absent, or fails it if REQUIRE_NVRTC=1."""
    try:
        from cupy.cuda import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError) as error:
        if os.environ.get("REQUIRE_NVRTC") == "1":
            pytest.fail(f"no NVRTC: {error}")
        pytest.skip(f"no NVRTC: {error}")
    return nvrtc
