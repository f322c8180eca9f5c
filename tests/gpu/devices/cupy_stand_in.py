"""The installed CuPy as if there were two GPUs: `CupyDevice` and all that is built on it run, without a device.

Only what touches a device is replaced, name by name, so what CuPy does not have is not here either. Sources are compiled
by the real NVRTC; what runs is the kernels of the shim. Arrays are stricter than CuPy's: they take nothing of the host's
but by `set`, and go there by `get` alone; nothing of another device's but by `copy`, and no kernel runs beside its arrays.
They are handed to other libraries as CuPy's are, by DLPack. New memory holds random bytes. stand_in_graphs.py says what
holds while a stream is captured.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from shim_device import ShimDevice
from stand_in_graphs import Event, MemoryPool, Stream, check_not_capturing, current_stream, do, take, using_allocator

MEMORY = 80 << 30
NAME = "NVIDIA Stand-in"

awaited: list[int] = []
"""The events that streams were told to wait for."""


_thread = threading.local()


def current() -> int:
    """Return the number of this thread's current device."""
    return getattr(_thread, "device", 0)


class StandInArray:
    """A one-dimensional array in the memory of the device of a number."""

    __slots__ = ("host", "number")

    def __init__(self, host: np.ndarray, number: int | None = None) -> None:
        self.host = host
        self.number = current() if number is None else number

    device = property(lambda self: SimpleNamespace(id=self.number))
    size = property(lambda self: self.host.size)
    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    nbytes = property(lambda self: self.host.nbytes)
    data = property(lambda self: SimpleNamespace(ptr=self.host.ctypes.data))

    def set(self, values: np.ndarray, stream: Any = None) -> None:
        if not isinstance(values, np.ndarray) or (values.dtype, values.shape) != (self.dtype, self.shape):
            raise TypeError(f"set takes a numpy array of {self.shape} {self.dtype}")
        self.check_current()
        check_not_capturing("H2D transfers")
        self.host[...] = values

    def get(self, out: np.ndarray, blocking: bool = True) -> np.ndarray:
        if (out.dtype, out.shape) != (self.dtype, self.shape):
            raise TypeError(f"get wants a numpy array of {self.shape} {self.dtype}")
        check_not_capturing("D2H transfers")
        out[...] = self.host
        return out

    def __dlpack__(self, **options: Any) -> Any:
        return self.host.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.host.__dlpack_device__()

    def check_current(self) -> None:
        if self.number != current():
            raise ValueError(f"an array of device {self.number} where device {current()} is current")

    def copy(self) -> StandInArray:
        check_not_capturing("copies from another device")
        return StandInArray(self.host.copy())

    def view(self, dtype: Any) -> StandInArray:
        return StandInArray(self.host.view(dtype), self.number)

    def reshape(self, *shape: int) -> StandInArray:
        return StandInArray(self.host.reshape(*shape), self.number)

    def tolist(self) -> list[Any]:
        return self.host.tolist()

    def __len__(self) -> int:
        return len(self.host)

    def __getitem__(self, part: slice) -> StandInArray:
        if not isinstance(part, slice):
            raise TypeError(f"only slices, not {type(part).__name__}")
        return StandInArray(self.host[part], self.number)

    def __setitem__(self, part: slice, value: Any) -> None:
        if isinstance(value, np.ndarray):
            raise TypeError("CuPy takes no numpy array here")
        for array in (self, value) if isinstance(value, StandInArray) else (self,):
            array.check_current()
        do(lambda: self.host.__setitem__(part, value.host if isinstance(value, StandInArray) else value))

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("CuPy converts nothing to numpy by itself: get")


def _empty(n: int, dtype: Any = float) -> StandInArray:
    return StandInArray(take(int(n) * np.dtype(dtype).itemsize).view(dtype))


def _zeros(n: int, dtype: Any = float) -> StandInArray:
    array = _empty(n, dtype)
    do(lambda: array.host.fill(0))
    return array


class _UnownedMemory:
    def __init__(self, address: int, size: int, owner: object, device: int) -> None:
        self.device = device
        self.bytes = (ctypes.c_uint8 * size).from_address(address)
        self.bytes.owner = owner


def _array(shape: tuple[int], dtype: Any, pointer: tuple[_UnownedMemory, int]) -> StandInArray:
    memory, begin = pointer
    return StandInArray(np.frombuffer(memory.bytes, dtype, shape[0], begin), memory.device)


class _Device:
    """Stand-in for `cupy.cuda.Device`: a device that is the thread's current one while entered."""

    def __init__(self, number: int | None = None) -> None:
        self._number = current() if number is None else number

    def __enter__(self) -> Self:
        self._before = current()
        _thread.device = self._number
        return self

    def __exit__(self, *_: object) -> None:
        _thread.device = self._before

    def synchronize(self) -> None: ...


def install(replace: Callable[[Any, str, Any], None], sources: tuple[Path, ...]) -> None:
    """Replace the parts of the installed CuPy that use a device by stand-ins.

    Args:
        replace: `monkeypatch.setattr`, or `setattr` for good.
        sources: Files of kernels that can be loaded.

    Raises:
        ImportError: CuPy is not installed.

    """
    import cupy
    import cupyx

    shim = ShimDevice(sources)
    real = cupy.cuda.runtime

    class Refused(cupy.cuda.driver.CUDADriverError):
        def __init__(self) -> None:
            RuntimeError.__init__(self, "CUDA_ERROR_INVALID_VALUE: invalid argument")

        def __str__(self) -> str:
            return "CUDA_ERROR_INVALID_VALUE: invalid argument"

    class Module:
        def load(self, cubin: bytes) -> None:
            check_not_capturing("loading of modules")
            if not cubin.startswith(b"\x7fELF"):
                raise Refused
            self._device = current()

        def get_function(self, name: str) -> Callable[..., None]:
            def launch(grid: tuple[int], block: tuple[int], args: tuple[Any, ...], **_: Any) -> None:
                blocks, threads = max(1, grid[0]), max(1, block[0])  # as CuPy has it
                if threads > 1024 or blocks >= 1 << 31:
                    raise Refused
                if wrong := [arg for arg in args if not isinstance(arg, StandInArray | np.generic)]:
                    raise TypeError(f"Unsupported type {type(wrong[0])}")
                if self._device != current():
                    raise Refused
                for arg in args:
                    if isinstance(arg, StandInArray):
                        arg.check_current()
                values = [arg.host if isinstance(arg, StandInArray) else arg for arg in args]
                do(lambda: shim.launch(name, blocks, threads, *values))

            return launch

    runtime = SimpleNamespace(
        CUDARuntimeError=real.CUDARuntimeError,
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13020,
        getDeviceCount=lambda: 2,
        getDevice=current,
        getDeviceProperties=lambda _: {"name": NAME.encode(), "major": 9, "minor": 0},
        memGetInfo=lambda: (MEMORY, MEMORY),
        streamWaitEvent=lambda _stream, event: awaited.append(event),
    )
    pool = SimpleNamespace(free_bytes=lambda: 0, total_bytes=lambda: 0, free_all_blocks=lambda: None)
    for owner, names in (
        (
            cupy,
            {
                "empty": _empty,
                "ndarray": _array,
                "zeros": _zeros,
                "get_default_memory_pool": lambda: pool,
            },
        ),
        (cupyx, {"empty_pinned": np.empty}),
        (
            cupy.cuda,
            {
                "runtime": runtime,
                "Device": _Device,
                "Stream": Stream,
                "Event": Event,
                "MemoryPool": MemoryPool,
                "using_allocator": using_allocator,
                "UnownedMemory": _UnownedMemory,
                "MemoryPointer": lambda memory, begin: (memory, begin),
                "Module": Module,
                "get_current_stream": current_stream,
                "get_elapsed_time": lambda _begin, _end: 0.001,
                "set_allocator": lambda _=None: None,
            },
        ),
    ):
        for name, value in names.items():
            replace(owner, name, value)
