"""The interface of a device on which kernels run, and its implementation by CUDA through CuPy."""

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

NULL = np.uint64(0)
"""A null pointer, as `Device.launch` takes it."""

MAX_THREADS = 1024
"""The most threads of a block on any CUDA device."""


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Event(Protocol):
    """A place in the order of a device's calls.

    Attributes:
        ptr: The device's own handle, as `Device.wait_for` takes it.

    """

    ptr: int

    def synchronize(self) -> None:
        """Wait until the device has run all calls that precede this event."""
        ...


class Recording(Protocol[T_co]):
    """Recorded kernel launches, which can be replayed on new content of a host array."""

    def replay(self) -> AbstractContextManager[T_co]:
        """Return a context manager that runs the recorded work again and yields its result.

        On entry the host array is copied to the device and the recorded kernels are launched. The next replay overwrites
        the result. The host array must not change until the thread has waited for the device.
        """
        ...


class Device(Protocol):
    """A device: its memory, and the kernels that run on it.

    Arrays are one-dimensional and contiguous, and can be sliced, assigned to and reshaped like numpy's. Calls are
    asynchronous, except those that return something to the host; calls of one thread take effect in order.

    Attributes:
        name: Its name in error messages.

    """

    name: str

    def to_device(self, host: NDArray[Any]) -> Any:
        """Copy a host array to the device; return the copy.

        An array from `pinned` must not change until the next call of `synchronize`.
        """
        ...

    def empty(self, n: int, dtype: DTypeLike) -> Any:
        """Allocate an array of `n` elements, which are not initialized."""
        ...

    def zeros(self, n: int, dtype: DTypeLike) -> Any:
        """Allocate an array of `n` zeros."""
        ...

    def words(self, sizes: Sequence[int], *, zero: bool = False) -> list[Any]:
        """Allocate arrays of uint32, each aligned to 16 bytes; cheaper than one call for each.

        Args:
            sizes: The number of elements of each array.
            zero: Whether to fill them with zeros; if not, they are not initialized.

        """
        ...

    def overwrite(self, array: Any, host: NDArray[Any]) -> None:
        """Copy a host array over a device array of the same size; as for `to_device`."""
        ...

    def to_host(self, array: Any) -> NDArray[Any]:
        """Copy a device array to the host, and wait for the copy."""
        ...

    def fetch(self, array: Any) -> Callable[[], NDArray[Any]]:
        """Begin to copy a device array to the host; return a function that waits for the copy and returns it."""
        ...

    def copied(self, array: Any) -> Any:
        """Copy an array of another device of this kind to this one, and wait until the copy is complete.

        The other device's work on the array must be complete.
        """
        ...

    def holds(self, array: Any) -> bool:
        """Return whether an array lies on this device, and not on another one of this kind."""
        ...

    def reads(self, kind: int, number: int) -> bool:
        """Return whether kernels can read a device's memory, given its type and number in Arrow's device interface."""
        ...

    def borrowed(self, address: int, n: int, dtype: DTypeLike, owner: object) -> Any:
        """Wrap device memory that others allocated as an array of at least one element; the array keeps `owner` alive."""
        ...

    def record_event(self) -> Event:
        """Return an event that comes after all calls of this thread so far."""
        ...

    def wait_for(self, event: int) -> None:
        """Make the device wait for an event before it runs later calls; `event` is the device's own handle, an integer."""
        ...

    def address(self, array: Any) -> int:
        """Return the address of the array's first byte, as kernels see it."""
        ...

    def launch(self, kernel: str, grid: int, block: int, *args: Any) -> None:
        """Run a kernel.

        Args:
            kernel: Its name; names are unique among all kernels.
            grid: The number of blocks.
            block: The number of threads in a block.
            args: Device arrays, passed as pointers, and numpy scalars, passed by value.

        Raises:
            DeviceError: The number of blocks or threads is 0, or more than a device takes.

        """
        ...

    def record(self, host: NDArray[Any], work: Callable[[Any], T]) -> Recording[T]:
        """Record the kernel launches of `work`, so that replaying them costs one launch.

        Args:
            host: An array from `pinned`.
            work: Takes a device array, the copy of `host`, and returns the result that each replay yields. It may
                allocate, zero, copy on the device and launch, but neither copy from or to the host nor wait. It is
                called twice.

        """
        ...

    def synchronize(self) -> None:
        """Wait for all calls of this thread."""
        ...

    def pinned(self, n: int) -> NDArray[np.uint8]:
        """Allocate `n` bytes of host memory that copies fast to the device. Allocating is slow: keep the array."""
        ...

    def free_bytes(self) -> int:
        """Return the number of bytes of device memory that are free."""
        ...

    def use(self) -> AbstractContextManager[None]:
        """Return a context manager in which this is the calling thread's current device.

        Every other method must be called inside this context.

        Raises:
            DeviceError: Something inside the context failed on the device; the message says what.

        """
        ...

    def side_stream(self) -> AbstractContextManager[None]:
        """Return a context manager like that of `use`, whose calls run on a separate stream of the device.

        So they run concurrently with the calls of other threads, which wait for them by events. Only one thread at a time
        may be inside.
        """
        ...


class CupyDevice:
    """A CUDA device, through CuPy, on the stream that is CuPy's current one in the calling thread.

    Attributes:
        name: The driver's name for it, such as "NVIDIA H200".
        arch: The architecture that kernels are compiled for, such as "sm_90".

    """

    def __init__(self, number: int | None = None) -> None:
        """Take a device.

        Args:
            number: The device's number in CUDA's order; None is CuPy's current one.

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
        self._side_stream: Any = None

    def to_device(self, host: NDArray[Any]) -> Any:
        array = self._cupy.empty(host.size, host.dtype)
        array.set(np.ascontiguousarray(host).ravel(), stream=self._cupy.cuda.get_current_stream())
        return array

    def empty(self, n: int, dtype: DTypeLike) -> Any:
        return self._cupy.empty(n, dtype)

    def zeros(self, n: int, dtype: DTypeLike) -> Any:
        return self._cupy.zeros(n, dtype)

    def words(self, sizes: Sequence[int], *, zero: bool = False) -> list[Any]:
        """Allocate arrays of uint32, each aligned to 16 bytes, as slices of one allocation.

        Args:
            sizes: The number of elements of each array.
            zero: Whether to fill them with zeros; if not, they are not initialized.

        """
        begins = list(accumulate((-(-size // 4) * 4 for size in sizes), initial=0))
        memory = (self._cupy.zeros if zero else self._cupy.empty)(begins[-1], np.uint32)
        return [memory[begin : begin + size] for begin, size in zip(begins, sizes, strict=False)]

    def overwrite(self, array: Any, host: NDArray[Any]) -> None:
        array.set(host, stream=self._cupy.cuda.get_current_stream())

    def to_host(self, array: Any) -> NDArray[Any]:
        return self.fetch(array)()

    def fetch(self, array: Any) -> Callable[[], NDArray[Any]]:
        """Begin to copy a device array to the host; return a function that waits for the copy and returns it.

        The copy goes to pinned memory, which CuPy pools and which saves the driver a second copy.
        """
        from cupyx import empty_pinned

        if not array.size:
            return lambda: np.empty(array.shape, array.dtype)
        host: NDArray[Any] = empty_pinned(array.shape, array.dtype)
        array.get(out=host, blocking=False)
        event = self.record_event()

        def copy() -> NDArray[Any]:
            event.synchronize()
            return host

        return copy

    def copied(self, array: Any) -> Any:
        copy = array.copy()  # which CuPy makes on the current device, wherever the array is
        self.synchronize()
        return copy

    def holds(self, array: Any) -> bool:
        return bool(array.device.id == self._number)

    def reads(self, kind: int, number: int) -> bool:
        """Return whether this device can read memory of a device: its own memory, and managed memory.

        Args:
            kind: The device's type in Arrow's device interface.
            number: The device's number there.

        """
        return kind == _ARROW_CUDA_MANAGED or (kind, number) == (_ARROW_CUDA, self._number)

    def borrowed(self, address: int, n: int, dtype: DTypeLike, owner: object) -> Any:
        cuda = self._cupy.cuda
        memory = cuda.UnownedMemory(address, n * np.dtype(dtype).itemsize, owner, self._number)
        return self._cupy.ndarray((n,), dtype, cuda.MemoryPointer(memory, 0))

    def record_event(self) -> Event:
        event: Event = self._cupy.cuda.Event(disable_timing=True)
        event.record(self._cupy.cuda.get_current_stream())  # type: ignore[attr-defined]
        return event

    def wait_for(self, event: int) -> None:
        self._cupy.cuda.runtime.streamWaitEvent(self._cupy.cuda.get_current_stream().ptr, event)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def launch(self, kernel: str, grid: int, block: int, *args: Any) -> None:
        if not (0 < grid < 1 << 31 and 0 < block <= MAX_THREADS):  # CuPy makes 1 of a grid of 0, and launches
            raise DeviceError(f"{self.name}: {kernel} cannot run in {grid} blocks of {block} threads")
        self._kernels[kernel]((grid,), (block,), args)

    def record(self, host: NDArray[Any], work: Callable[[Any], T]) -> Recording[T]:
        """Record the kernel launches of `work` as a CUDA graph; see `Device.record` for the arguments."""
        self.synchronize()  # the recording has a stream of its own
        return CudaGraph(self._cupy, host, work)

    def synchronize(self) -> None:
        self._cupy.cuda.get_current_stream().synchronize()

    def pinned(self, n: int) -> NDArray[np.uint8]:
        from cupyx import empty_pinned

        memory: NDArray[np.uint8] = empty_pinned(n, np.uint8)
        return memory

    def free_bytes(self) -> int:
        """Return the number of bytes of device memory that are free; unused memory of CuPy's pool counts as free."""
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(free + self._cupy.get_default_memory_pool().free_bytes())

    @contextmanager
    def use(self) -> Iterator[None]:
        if os.getpid() != self._process:
            raise DeviceError(f"{self.name} was taken before this process was forked: make an encoder in each process")
        try:
            with self._cupy.cuda.Device(self._number):
                yield
        except self._failures as error:
            raise DeviceError(f"{self.name}: {error}") from error

    @contextmanager
    def side_stream(self) -> Iterator[None]:
        with self.use():
            if self._side_stream is None:  # kept: CuPy's pool holds memory for every stream that ever existed
                self._side_stream = self._cupy.cuda.Stream(non_blocking=True)
            with self._side_stream:
                yield


def _cupy() -> Any:
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        raise DeviceError(
            "a GPU is used through CuPy, which is not installed: "
            "pip install 'tokenweir[gpu-cuda13]', or gpu-cuda12 for a driver of CUDA 12"
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
