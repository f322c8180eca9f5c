"""A device without a GPU: kernels compiled by g++ with the header in shim/, arrays in the host's memory.

It is no emulator of a GPU, but it runs the very source of the kernels, and finds what is wrong whatever the order of
threads: see shim/fibers.h. Arrays begin with random bytes and stand between guards, which every launch checks.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

import numpy as np
from noise import noise
from numpy.typing import DTypeLike, NDArray

from tokenweir.encode.errors import DeviceError
from tokenweir.gpu.kernels import kernel_names

SHIM = Path(__file__).resolve().parents[1] / "shim"
CORE = Path(__file__).resolve().parents[3] / "encode" / "core"

_FLAGS = ["-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-U_FORTIFY_SOURCE"]
ARROW_TYPE = 12
_one_kernel = Lock()  # at a time, on all devices: its shared memory is static
_GUARD = 64  # bytes before and after an array
_GUARDED = b"\xa5" * _GUARD


class ShimError(RuntimeError):
    """A kernel broke a rule, such as a barrier that not all threads reach or a write outside its arrays, or it does not compile."""


class _Noted(np.ndarray):
    """Array of a device; while the device records, assignments to it are appended to the device's tape instead of done."""

    shim: ShimDevice

    def __array_finalize__(self, other: Any) -> None:
        self.shim = getattr(other, "shim", None)

    def __setitem__(self, part: Any, value: Any) -> None:
        self.shim.do(lambda: super(_Noted, self).__setitem__(part, value))


class ShimEvent:
    """Event that is over."""

    ptr = 0

    def synchronize(self) -> None:
        """Return at once."""


class ShimRecording:
    """Recorded calls of a device on a copy of a host array, which `replay` repeats."""

    def __init__(self, device: ShimDevice, host: NDArray[Any], work: Callable[[Any], Any]) -> None:
        self._host, self._input, self._tape = host, device.to_device(host), []
        work(self._input)
        device.tape = self._tape
        try:
            self._result = work(self._input)
        finally:
            device.tape = None

    @contextmanager
    def replay(self) -> Iterator[Any]:
        """Copy the host array again, repeat the recorded calls, and yield their result."""
        self._input[:] = self._host
        for act in self._tape:
            act()
        yield self._result


class ShimDevice:
    """Device of `tokenweir.gpu` that runs kernels on the CPU.

    Attributes:
        name: "shim".
        launches: (kernel, grid, block) of every launch so far.
        tape: What is noted instead of done, while work is recorded.

    """

    name = "shim"

    def __init__(self, sources: Iterable[Path], seed: int = 1, number: int = 0) -> None:
        """Create a device for the kernels of some files; a file is compiled, or loaded from a cache, when its first kernel is launched.

        Args:
            sources: The .cu files. They may include headers of encode/core.
            seed: For the order of threads and blocks, and what uninitialised memory holds; TOKENWEIR_SHIM_SEED in the
                environment makes it another.
            number: Of several.

        """
        self.number = number
        self.launches: list[tuple[str, int, int]] = []
        self.tape: list[Callable[[], None]] | None = None
        self._source_of = {name: source for source in sources for name in _names(source)}
        self._seed = seed + (int(os.environ.get("TOKENWEIR_SHIM_SEED", "0")) << 32)
        self._random = Random(self._seed)
        self._blocks: list[weakref.ref[NDArray[np.uint8]]] = []

    def record(self, host: NDArray[Any], work: Callable[[Any], Any]) -> ShimRecording:
        """Record the calls that `work` makes on a device copy of a host array."""
        return ShimRecording(self, host, work)

    def do(self, act: Callable[[], None]) -> None:
        """Call `act`, or append it to the tape while the device records."""
        if self.tape is None:
            act()
        else:
            self.tape.append(act)

    def to_device(self, host: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an array: host and device memory are the same here."""
        self._check_not_recording("copy from the host")
        array = self.empty(host.size, host.dtype)
        array[:] = host.ravel()
        return array

    def empty(self, n: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return a new array of `n` elements with random bytes."""
        size = int(n) * np.dtype(dtype).itemsize
        block = noise(size + 2 * _GUARD, self._random.getrandbits(32))
        block[:_GUARD] = block[-_GUARD:] = _GUARDED[0]
        self._blocks.append(weakref.ref(block))
        array = block[_GUARD : _GUARD + size].view(dtype)
        if self.tape is not None:
            array = array.view(_Noted)
            array.shim = self
        return array

    def zeros(self, n: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return a new array of `n` zeros."""
        array = self.empty(n, dtype)
        array[:] = 0
        return array

    def words(self, sizes: Sequence[int], *, zero: bool = False) -> list[NDArray[Any]]:
        """Return a uint32 array of each size, zeroed if `zero`; guards around each detect writes outside of it."""
        return [(self.zeros if zero else self.empty)(size, np.uint32) for size in sizes]

    def overwrite(self, array: NDArray[Any], host: NDArray[Any]) -> None:
        """Copy a host array over an array."""
        self._check_not_recording("copy from the host")
        array[:] = host

    def to_host(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an array: host and device memory are the same here."""
        self._check_not_recording("copy to the host")
        return array.copy()

    def fetch(self, array: NDArray[Any]) -> Callable[[], NDArray[Any]]:
        """Return a function that returns a copy of an array, made now."""
        copy = self.to_host(array)
        return lambda: copy

    def record_event(self) -> ShimEvent:
        """Return an event that is over: each call of this device has ended when it returns."""
        self._check_not_recording("record events")
        return ShimEvent()

    def copied(self, array: NDArray[Any]) -> NDArray[Any]:
        """Copy an array of another shim to this device."""
        return self.to_device(array)

    def holds(self, array: NDArray[Any]) -> bool:
        """Whether an array is in this device's memory."""
        return array.base is not None and any(ref() is array.base for ref in self._blocks)

    def reads(self, kind: int, number: int) -> bool:
        """Whether the device can read memory of an Arrow device type and number.

        True for extension devices of its own number.
        """
        return (kind, number) == (ARROW_TYPE, self.number)

    def borrowed(self, address: int, n: int, dtype: DTypeLike, owner: object) -> NDArray[Any]:
        """Return an array over memory at an address that this device does not own; it keeps `owner` alive."""
        memory = (ctypes.c_uint8 * (n * np.dtype(dtype).itemsize)).from_address(address)
        memory.owner = owner
        return np.frombuffer(memory, dtype)

    def wait_for(self, event: int) -> None:
        """Return at once: each call of this device has ended when it returns."""

    def address(self, array: NDArray[Any]) -> int:
        """Return the address of an array's first byte."""
        return array.ctypes.data

    def launch(self, kernel: str, grid: int, block: int, *args: Any) -> None:
        """Run a kernel and wait for its end.

        Args:
            kernel: Its name.
            grid: How many blocks.
            block: Threads a block.
            args: Arrays of this device, passed as pointers, and numpy scalars.

        Raises:
            ShimError: It broke a rule, or does not compile.

        """
        self.do(lambda: self._launch(kernel, grid, block, args))  # a recording keeps its arrays

    def _launch(self, kernel: str, grid: int, block: int, args: tuple[Any, ...]) -> None:
        values = [ctypes.c_void_p(arg.ctypes.data) if isinstance(arg, np.ndarray) else _scalar(arg) for arg in args]
        addresses = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        sizes = (ctypes.c_uint32 * len(values))(*[ctypes.sizeof(value) for value in values])
        self.launches.append((kernel, grid, block))
        seed = ctypes.c_uint64(self._seed + 1_000_003 * len(self.launches))
        with _one_kernel:
            error = self._run_kernel(kernel, grid, block, seed, addresses, sizes, len(values))
        if error:
            raise ShimError(f"{kernel}<<<{grid}, {block}>>>: {error.decode()}")
        self._check_guards(kernel)

    def _run_kernel(self, kernel: str, *args: Any) -> bytes:
        error: bytes = _compiled(self._source_of[kernel])[kernel](*args)
        return error

    def barriers(self, kernel: str) -> int:
        """Return the number of barriers at which blocks have met so far, in all kernels of the file of `kernel`."""
        count = ctypes.CDLL(str(library_of(self._source_of[kernel]))).shim_barriers
        count.restype = ctypes.c_uint64
        return int(count())

    def synchronize(self) -> None:
        """Return at once: each call of this device has ended when it returns."""
        self._check_not_recording("wait")

    def pinned(self, n: int) -> NDArray[np.uint8]:
        """Return host memory of `n` bytes; any memory will do, as no device copies from it."""
        return np.empty(n, np.uint8)

    def free_bytes(self) -> int:
        """Return a fixed number of free bytes, as on a small GPU."""
        return 4 << 30

    @contextmanager
    def use(self) -> Iterator[None]:
        """Convert a `ShimError` inside the context to a `DeviceError`."""
        try:
            yield
        except ShimError as error:
            raise DeviceError(f"{self.name}: {error}") from error

    side_stream = use

    def _check_not_recording(self, what: str) -> None:
        if self.tape is not None:
            raise ShimError(f"work that is recorded does not {what}")

    def _check_guards(self, kernel: str) -> None:
        alive = [(ref, block) for ref in self._blocks if (block := ref()) is not None]
        self._blocks = [ref for ref, _ in alive]
        for _, block in alive:
            if block[:_GUARD].tobytes() != _GUARDED or block[-_GUARD:].tobytes() != _GUARDED:
                raise ShimError(f"{kernel} wrote outside an array of {len(block) - 2 * _GUARD} bytes")


def _scalar(value: np.generic) -> Any:
    if not isinstance(value, np.generic):
        raise TypeError(f"a kernel takes arrays and numpy scalars, not {type(value).__name__}")
    return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())


_names = cache(kernel_names)


@cache
def _compiled(source: Path) -> dict[str, Any]:
    """Return the kernels of a source file by name; compile it if necessary."""
    return kernels_in(library_of(source), source)


def kernels_in(library: Path, source: Path) -> dict[str, Any]:
    """Return the kernels of a source file by name, from the shared library that it was compiled to."""
    loaded = ctypes.CDLL(str(library))
    kernels = {name: loaded[f"launch_{name}"] for name in kernel_names(source)}
    for kernel in kernels.values():
        kernel.restype = ctypes.c_char_p
    return kernels


def library_of(source: Path, *flags: str) -> Path:
    """Return the path of the shared library of a source file, compiled by g++ with these flags. Cached by a hash of all inputs.

    Raises:
        ShimError: It does not compile.

    """
    lines = ['#include "cuda.h"', f'#include "{source}"', *[f"TW_LAUNCHER({name})" for name in kernel_names(source)]]
    folders = (SHIM, CORE, source.parent)
    compiler = [os.environ.get("CXX", "g++"), *_FLAGS, *flags]
    key = [compiler, lines[2:], source.read_bytes(), *map(_headers, folders)]
    kept = Path(tempfile.gettempdir()) / f"tokenweir-shim-{os.getuid()}"
    kept.mkdir(mode=0o700, exist_ok=True)
    path = kept / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.so"
    with path.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)  # several processes want it at once; one compiles
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            headers = [f"-I{folder}" for folder in folders]
            _run([*compiler, *headers, "-x", "c++", "-o", str(unfinished), "-"], "\n".join(lines) + "\n")
            unfinished.rename(path)
    return path


@cache
def _headers(folder: Path) -> list[tuple[str, bytes]]:
    """Return the name and content of each header in a folder."""
    return [(str(path.relative_to(folder)), path.read_bytes()) for path in sorted(folder.rglob("*.*h"))]


def _run(command: list[str], program: str) -> None:
    done = subprocess.run(command, input=program.encode(), capture_output=True, check=False)
    if done.returncode:
        raise ShimError(f"{command[0]} failed:\n{done.stderr.decode()}")
