"""Work that is recorded and done again, on the shim and as a CUDA graph."""

from __future__ import annotations

import cupy_stand_in
import numpy as np
import pytest
from stand_in_graphs import Event

from tokenweir.encode.errors import DeviceError
from tokenweir.gpu import CupyDevice
from tokenweir.gpu.kernels import kernel_sources

SCALARS = (np.int64(3), np.int64(1), np.int32(7), np.int32(0), np.int32(0))


def rows_of(device, ids):
    """A row of three of up to three ids, by `pad_rows`, and a copy of it."""
    offsets = device.zeros(2, np.int64)
    offsets[1:] = 2
    rows, copy = device.empty(3, np.int32), device.empty(3, np.int32)
    device.launch("pad_rows", 1, 256, ids, offsets, *SCALARS, rows, device.empty(3, np.int32))
    copy[:] = rows
    return copy


@pytest.fixture
def host(device):
    with device.use():
        memory = device.pinned(8).view(np.int32)
    memory[:] = 1, 2
    return memory


def test_work_is_done_again_on_what_the_host_array_holds(device, host):
    with device.use():
        recording = device.record(host, lambda ids: rows_of(device, ids))
        for pair in ((3, 4), (5, 6), (5, 6), (0, 1)):
            host[:] = pair
            with recording.replay() as row:
                assert device.to_host(row).tolist() == [*pair, 7]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda device, ids: device.to_host(ids),
        lambda device, ids: device.to_device(np.zeros(2)),
        lambda device, ids: device.synchronize(),
    ],
)
def test_what_cannot_be_recorded_is_refused_and_does_no_harm(device, host, wrong):
    turns = []

    def work(ids):
        turns.append(1)
        if len(turns) == 2:
            wrong(device, ids)

    with device.use():
        with pytest.raises((RuntimeError, DeviceError)):
            device.record(host, work)
        recording = device.record(host, lambda ids: rows_of(device, ids))
        with recording.replay() as row:
            assert device.to_host(row).tolist() == [1, 2, 7]


@pytest.fixture
def stand_in(nvrtc, monkeypatch):
    """CUDA on the stand-in for CuPy, which notices what a GPU would let pass."""
    cupy_stand_in.install(monkeypatch.setattr, kernel_sources())
    return CupyDevice()


def test_a_graph_allocates_nothing_while_it_is_captured(stand_in):
    sizes = iter([10, 5000])
    with stand_in.use():
        host = stand_in.pinned(8)
        stand_in.record(host, lambda ids: [stand_in.empty(100, np.int32) for _ in range(2)])
        with pytest.raises(RuntimeError, match="so allocations are disallowed"):
            stand_in.record(host, lambda ids: stand_in.empty(next(sizes), np.int32))


def test_a_graph_waits_until_its_arrays_were_read(stand_in):
    """By whoever did so last, perhaps on another stream."""
    with stand_in.use():
        recording = stand_in.record(stand_in.pinned(8).view(np.int32), lambda ids: rows_of(stand_in, ids))
        Event.uses.clear()
        for _ in range(2):
            with recording.replay():
                assert Event.uses[-1][0] == "wait"
    assert [use for use, _ in Event.uses] == ["wait", "record"] * 2
    assert len({event for _, event in Event.uses}) == 1
