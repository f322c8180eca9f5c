"""Where kernels run: what the encoder needs of a device, and CUDA through CuPy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tokenweir.encode.errors import DeviceError
from tokenweir.gpu.graph import CudaGraph
from tokenweir.gpu.kernels import Kernels, kernel_sources

MIN_CAPABILITY = (8, 0)
"""The least compute capability of a CUDA device: the kernels use a warp's minimum as one instruction."""

_ARROW_CUDA, _ARROW_CUDA_MANAGED = 2, 13  # device types of Arrow's interface

MAX_THREADS = 1024
"""The most threads of a block on any CUDA device."""


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Recording(Protocol[T_co]):
    """Work that can be done again, on what a host array then holds."""

    def again(self) -> AbstractContextManager[T_co]:
        """Copy the host array and do the work; inside is what it returned, whose arrays the next time overwrites.

        The host array must keep its content until something has been waited for.
        """
        ...


class Device(Protocol):
    """Memory, and kernels that run on it.

    Arrays are one-dimensional, lie one element after the other and can be sliced, assigned to and reshaped as numpy's.
    Every call but those that return something to the host may return before its work is done; calls of one thread take
    effect in their order.

    Attributes:
        name: What it is called in errors.

    """

    name: str

    def to_device(self, host: NDArray[Any]) -> Any:
        """A copy of a host array. One of `pinned` must keep its content until the next call of `synchronize`."""
        ...

    def empty(self, n: int, dtype: DTypeLike) -> Any:
        """An array of `n` elements with any values."""
        ...

    def zeros(self, n: int, dtype: DTypeLike) -> Any:
        """An array of `n` zeros."""
        ...

    def words(self, sizes: Sequence[int], *, zero: bool = False) -> list[Any]:
        """Arrays of uint32, each beginning at a multiple of 16 bytes; cheaper than one by one.

        Args:
            sizes: Their elements.
            zero: Whether all are zeros; if not, they may have any values.

        """
        ...

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy of a device array; waits for it."""
        ...

    def copied(self, array: Any) -> Any:
        """A copy of an array that another device of this kind has finished; waits for it."""
        ...

    def holds(self, array: Any) -> bool:
        """Whether an array of a device of this kind is this one's."""
        ...

    def reads(self, kind: int, number: int) -> bool:
        """Whether kernels can read the memory of a device, given by its type and number in Arrow's device interface."""
        ...

    def borrowed(self, address: int, n: int, dtype: DTypeLike, owner: object) -> Any:
        """An array of `n` elements, at least one, over memory that others allocated on the device; it keeps `owner` alive."""
        ...

    def wait_for(self, event: int) -> None:
        """Have all later calls wait for an event, given by the device's own handle."""
        ...

    def address(self, array: Any) -> int:
        """Where the array begins, as kernels see it."""
        ...

    def launch(self, kernel: str, grid: int, block: int, *args: Any) -> None:
        """Run a kernel.

        Args:
            kernel: Its name; names are unique among all kernels.
            grid: How many blocks.
            block: Threads a block.
            args: Device arrays, passed as pointers, and numpy scalars, passed by value.

        Raises:
            DeviceError: No blocks, no threads, or more of them than a device takes.

        """
        ...

    def record(self, host: NDArray[Any], work: Callable[[Any], T]) -> Recording[T]:
        """Record what some work on a host array launches, so that doing it again costs one launch.

        Args:
            host: One of `pinned`.
            work: Takes a device array, the copy of `host`. It allocates, zeroes, copies on the device and launches; nothing
                of it comes from the host, goes there or waits. It is called twice.

        """
        ...

    def synchronize(self) -> None:
        """Wait for what this thread began."""
        ...

    def pinned(self, n: int) -> NDArray[np.uint8]:
        """Host memory of `n` bytes that copies fast to the device. It is slow to get: keep it."""
        ...

    def free_bytes(self) -> int:
        """The memory that is left."""
        ...

    def use(self) -> AbstractContextManager[None]:
        """Make this the device of the calling thread. Every other call has to be made inside it.

        Raises:
            DeviceError: Something failed on the device meanwhile; the message says what.

        """
        ...

    def apart(self) -> AbstractContextManager[None]:
        """As `use`, but the work runs beside that of other threads; for one thread at a time. Leaving waits for the work."""
        ...


class CupyDevice:
    """A CUDA device, through CuPy, on the stream that is CuPy's current one in the calling thread.

    Attributes:
        name: As the driver calls it, such as "NVIDIA H200".
        arch: What kernels are compiled for, such as "sm_90".

    """

    def __init__(self, number: int | None = None) -> None:
        """Take a device.

        Args:
            number: Which one, in CUDA's order; None is CuPy's current one.

        Raises:
            DeviceError: CuPy, NVRTC, the driver or the device is missing, or too old; the message says which.

        """
        cupy = _cupy()
        count = _device_count(cupy)
        _check_nvrtc(cupy)
        self._number = cupy.cuda.runtime.getDevice() if number is None else number
        if not 0 <= self._number < count:
            raise DeviceError(f"there is no CUDA device {self._number}: {count} are visible")
        self._process = os.getpid()
        self._cupy = cupy
        self._failures = (
            cupy.cuda.runtime.CUDARuntimeError,
            cupy.cuda.driver.CUDADriverError,
            cupy.cuda.memory.OutOfMemoryError,
        )
        properties = cupy.cuda.runtime.getDeviceProperties(self._number)
        self.name = properties["name"].decode()
        capability = properties["major"], properties["minor"]
        if capability < MIN_CAPABILITY:
            raise DeviceError(
                f"{self.name} has compute capability {_dotted(capability)}; {_dotted(MIN_CAPABILITY)} is needed"
            )
        self.arch = "sm_{}{}".format(*capability)
        self._kernels = Kernels(kernel_sources(), self.arch)
        self._apart: Any = None

    def to_device(self, host: NDArray[Any]) -> Any:
        """See `Device`."""
        array = self._cupy.empty(host.size, host.dtype)
        array.set(np.ascontiguousarray(host).ravel(), stream=self._cupy.cuda.get_current_stream())
        return array

    def empty(self, n: int, dtype: DTypeLike) -> Any:
        """See `Device`."""
        return self._cupy.empty(n, dtype)

    def zeros(self, n: int, dtype: DTypeLike) -> Any:
        """See `Device`."""
        return self._cupy.zeros(n, dtype)

    def words(self, sizes: Sequence[int], *, zero: bool = False) -> list[Any]:
        """See `Device`: parts of one array, so that memory is allocated and set once."""
        begins = list(accumulate((-(-size // 4) * 4 for size in sizes), initial=0))
        memory = (self._cupy.zeros if zero else self._cupy.empty)(begins[-1], np.uint32)
        return [memory[begin : begin + size] for begin, size in zip(begins, sizes, strict=False)]

    def to_host(self, array: Any) -> NDArray[Any]:
        """See `Device`; into pinned memory, of which CuPy keeps a pool: the driver need not copy it a second time."""
        from cupyx import empty_pinned

        host: NDArray[Any] = (
            empty_pinned(array.shape, array.dtype) if array.size else np.empty(array.shape, array.dtype)
        )
        if array.size:
            array.get(out=host)
        return host

    def copied(self, array: Any) -> Any:
        """See `Device`."""
        copy = array.copy()  # which CuPy makes on the current device, wherever the array is
        self.synchronize()
        return copy

    def holds(self, array: Any) -> bool:
        """See `Device`."""
        return bool(array.device.id == self._number)

    def reads(self, kind: int, number: int) -> bool:
        """See `Device`: its own memory, and that which CUDA moves to where it is read."""
        return kind == _ARROW_CUDA_MANAGED or (kind, number) == (_ARROW_CUDA, self._number)

    def borrowed(self, address: int, n: int, dtype: DTypeLike, owner: object) -> Any:
        """See `Device`."""
        cuda = self._cupy.cuda
        memory = cuda.UnownedMemory(address, n * np.dtype(dtype).itemsize, owner, self._number)
        return self._cupy.ndarray((n,), dtype, cuda.MemoryPointer(memory, 0))

    def wait_for(self, event: int) -> None:
        """See `Device`."""
        self._cupy.cuda.runtime.streamWaitEvent(self._cupy.cuda.get_current_stream().ptr, event)

    def address(self, array: Any) -> int:
        """See `Device`."""
        return int(array.data.ptr)

    def launch(self, kernel: str, grid: int, block: int, *args: Any) -> None:
        """See `Device`."""
        if not (0 < grid < 1 << 31 and 0 < block <= MAX_THREADS):  # CuPy makes 1 of a grid of 0, and launches
            raise DeviceError(f"{self.name}: {kernel} cannot run in {grid} blocks of {block} threads")
        self._kernels[kernel]((grid,), (block,), args)

    def record(self, host: NDArray[Any], work: Callable[[Any], T]) -> Recording[T]:
        """See `Device`: as a CUDA graph."""
        self.synchronize()  # the recording has a stream of its own
        return CudaGraph(self._cupy, host, work)

    def synchronize(self) -> None:
        """See `Device`."""
        self._cupy.cuda.get_current_stream().synchronize()

    def pinned(self, n: int) -> NDArray[np.uint8]:
        """See `Device`."""
        from cupyx import empty_pinned

        memory: NDArray[np.uint8] = empty_pinned(n, np.uint8)
        return memory

    def free_bytes(self) -> int:
        """See `Device`; what CuPy's pool holds and does not use is free too."""
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(free + self._cupy.get_default_memory_pool().free_bytes())

    @contextmanager
    def use(self) -> Iterator[None]:
        """See `Device`."""
        if os.getpid() != self._process:
            raise DeviceError(f"{self.name} was taken before this process was forked: make an encoder in each process")
        try:
            with self._cupy.cuda.Device(self._number):
                yield
        except self._failures as error:
            raise DeviceError(f"{self.name}: {error}") from error

    @contextmanager
    def apart(self) -> Iterator[None]:
        """See `Device`."""
        with self.use():
            if self._apart is None:  # one for good: CuPy keeps memory for each stream that there ever was
                self._apart = self._cupy.cuda.Stream(non_blocking=True)
            with self._apart:
                yield
                self._apart.synchronize()


def _cupy() -> Any:
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        raise DeviceError(
            "a GPU is used through CuPy, which is not installed: "
            "pip install '.[gpu-cuda13]', or gpu-cuda12 for a driver of CUDA 12"
        ) from None
    except ImportError as error:
        raise DeviceError(f"CuPy is installed but does not load: {error}") from error
    return cupy


def _device_count(cupy: Any) -> int:
    runtime = cupy.cuda.runtime
    try:
        if not (driver := runtime.driverGetVersion()):
            raise DeviceError("there is no NVIDIA driver (libcuda.so.1) on this machine")
        count: int = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        wanted = f"CuPy wants CUDA {_version(runtime.runtimeGetVersion())}"
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        seen = "" if visible is None else f"; CUDA_VISIBLE_DEVICES is {visible!r}"
        raise DeviceError(
            f"there is no CUDA device: {error} (driver of CUDA {_version(driver)}, {wanted}{seen})"
        ) from error
    return count


def _check_nvrtc(cupy: Any) -> None:
    try:
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # of a class that CuPy does not name in public
        raise DeviceError(
            f"NVRTC, which compiles the kernels, is missing: pip install nvidia-cuda-nvrtc ({_first_line(error)})"
        ) from error


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _dotted(version: tuple[int, int]) -> str:
    return "{}.{}".format(*version)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
