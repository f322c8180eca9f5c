"""The device that is measured, and its clocks."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from device.peers import Batch, batch_texts, median_seconds
from shared.report import ROOT

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.encode.values.encoded import Ragged
from tokenweir.gpu import GpuEncoder, encoder
from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.encoded import SLACK
from tokenweir.gpu.kernels import Kernels, kernel_sources

Row = dict[str, float | str]
Rows = Iterator[tuple[str, Row]]
"""Rows by their labels, as they are measured; what comes later for a label are more columns of its row."""

SPIN = Path(__file__).with_name("spin.cu")
SPIN_TICKS = np.int64(200_000)  # about 0.1 ms, longer than it takes to queue a launch and two events


class Bench:
    """The state that the sections share.

    Attributes:
        device: What is measured; asked for when it is first used.
        smoke: On the stand-in for CuPy, once, and a few bytes a text.
        repeats: How often a time is taken.
        threads: What the peers run on, the most first.
        folder: Where a section may leave files beside the results.

    """

    def __init__(self, *, smoke: bool, folder: Path = Path()) -> None:
        if smoke:
            sys.path.append(str(ROOT / "tests" / "gpu" / "devices"))
            import cupy_stand_in

            cupy_stand_in.install(setattr, (*kernel_sources(), SPIN))
        self.smoke, self.folder = smoke, folder
        self.repeats = 1 if smoke else 20
        self.threads = (1,) if smoke else tuple(sorted({1, min(16, len(os.sched_getaffinity(0)))}, reverse=True))
        encoder.CPU_BYTES = 0  # the device is measured, whether or not it pays

    @cached_property
    def device(self) -> CupyDevice:
        return CupyDevice()

    def seconds(self, run: Callable[[], object]) -> float:
        """Median wall time of a run, the device's work included, of as many as take a second."""

        def timed() -> None:
            run()
            self.device.synchronize()

        self.device.synchronize()
        return median_seconds(timed, self.repeats)

    def texts(self, language: str, n: int, size: int) -> list[str]:
        """A batch's texts, few and short if this is only to see that it works."""
        return batch_texts(self.batch(language, n, size))

    def batch(self, language: str, n: int, size: int) -> Batch:
        """A batch, made small in the same way."""
        return Batch(language, min(n, 3), min(size, 64)) if self.smoke else Batch(language, n, size)

    def kernel_milliseconds(self, mode: Callable[[Any], Any], texts: Sequence[str]) -> dict[str, float]:
        """Median time of each kernel of a mode for one batch, of kernels of one name their sum."""
        device = TimedDevice(self.device)
        encoder = mode(device)
        text, offsets = on_device(device, texts)
        runs = []
        for _ in range(self.repeats + 3):
            encoder.encode(text, offsets, parse_special=True, guards=None)
            runs.append(device.milliseconds())
        return {kernel: median(run.get(kernel, 0.0) for run in runs[3:]) for kernel in runs[-1]}


class TimedDevice:
    """A CUDA device that notes how long each kernel runs.

    Before each launch it spins for a moment, so that the launch and the events on both sides of it are queued before it
    comes to them: the time between the events is the kernel's, even where a launch takes longer than what it launches.
    """

    def __init__(self, device: CupyDevice) -> None:
        import cupy

        self._device, self._event = device, cupy.cuda.Event
        self._elapsed = cupy.cuda.get_elapsed_time
        self._spin = Kernels((SPIN,), device.arch)["spin"]
        self._events: list[tuple[str, Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def launch(self, kernel: str, grid: int, block: int, *args: Any) -> None:
        start, end = self._event(), self._event()
        self._spin((1,), (1,), (SPIN_TICKS,))
        start.record()
        self._device.launch(kernel, grid, block, *args)
        end.record()
        self._events.append((kernel, start, end))

    def milliseconds(self) -> dict[str, float]:
        """The time of each kernel since the last call."""
        self._device.synchronize()
        total: defaultdict[str, float] = defaultdict(float)
        for kernel, start, end in self._events:
            total[kernel] += self._elapsed(start, end)
        self._events.clear()
        return dict(total)


def on_device(device: Device | TimedDevice, texts: Sequence[str]) -> tuple[Any, Any]:
    """A batch as the modes take it: its text and offsets."""
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int64)
    return device.to_device(np.frombuffer(b"".join(data) + bytes(SLACK), np.uint8)), device.to_device(offsets)


def rates(texts: Sequence[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """GB/s."""
    size = sum(len(text.encode()) for text in texts)
    return {name: size / taken / 1e9 for name, taken in seconds.items()}


def same_ids(got: Ragged, wanted: Ragged) -> bool:
    """Tell whether two batches have the same ids, text by text."""
    return np.array_equal(got.ids, wanted.ids) and np.array_equal(got.offsets, wanted.offsets)


def check_ids(tok: Tokenizer, encoder: GpuEncoder, texts: Sequence[str]) -> None:
    """Compare the GPU's ids with the CPU's.

    Raises:
        RuntimeError: They differ.

    """
    if not same_ids(encoder.encode_batch(texts).to_host(), tok.encode_batch(texts)):
        raise RuntimeError("the GPU's ids differ from the CPU's")
