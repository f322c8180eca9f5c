"""Compilation of the kernels by NVRTC, and the cache of their compiled form on disk.

The sources are files in `kernels/`, which include the core's headers. They are compiled on the user's machine for its
device. Compiling needs no device, so that CI compiles them for devices that it does not have.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import tokenweir.encode
from tokenweir.encode.base.cache import cache_folder, read_own, store
from tokenweir.encode.errors import DeviceError

SOURCES = Path(__file__).parent / "kernels"
HEADERS = Path(tokenweir.encode.__file__).parent / "core"

_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(')

STANDARD_HEADERS = {  # which NVRTC lacks; the core's freestanding headers include no others
    b"stddef.h": b"typedef decltype(sizeof(0)) size_t;\n",
    b"stdint.h": b"""
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
#define INT32_MAX 0x7fffffff
#define INT64_MAX 0x7fffffffffffffffL
#define UINT8_MAX 0xff
#define UINT16_MAX 0xffff
#define UINT32_MAX 0xffffffffU
#define UINT64_MAX 0xffffffffffffffffUL
""",
}


def kernel_sources() -> tuple[Path, ...]:
    """Return the files that define kernels, sorted by name."""
    return tuple(sorted(SOURCES.glob("*.cu")))


def kernel_names(source: Path) -> list[str]:
    """Return the names of the kernels that a source file defines by `extern "C" __global__ void name(`."""
    return _KERNEL.findall(source.read_text("utf-8"))


class Compiled(NamedTuple):
    """A file of kernels, compiled for one architecture.

    Attributes:
        cubin: The code that a device loads.
        log: NVRTC's log, with the assembler's report of every kernel's registers and spills.

    """

    cubin: bytes
    log: str


def compile_options(arch: str) -> list[str]:
    """Return the compiler options, which suit every version of NVRTC.

    Without `-default-device`, NVRTC below 13.2 takes a generic lambda in a kernel for a host function.
    """
    return ["-std=c++17", f"-arch={arch}", "-default-device", "-Xptxas=-v", f"-I{HEADERS}", f"-I{SOURCES}"]


def compile_source(source: Path, arch: str) -> Compiled:
    """Compile a file by NVRTC, which CuPy finds; no device is needed.

    Args:
        arch: The architecture, such as "sm_90".

    Raises:
        DeviceError: The file does not compile; the message has NVRTC's log.

    """
    from cupy.cuda import nvrtc

    names, contents = list(STANDARD_HEADERS), list(STANDARD_HEADERS.values())
    program = nvrtc.createProgram(source.read_text("utf-8"), source.name, contents, names)
    try:
        nvrtc.compileProgram(program, compile_options(arch))
        return Compiled(nvrtc.getCUBIN(program), _log(nvrtc, program))
    except nvrtc.NVRTCError as error:
        said = _log(nvrtc, program) or error
        raise DeviceError(f"{source.name} does not compile for {arch}: {said}") from error
    finally:
        nvrtc.destroyProgram(program)


def cached_cubin(source: Path, arch: str) -> bytes:
    """Return a file's compiled code from the cache on disk, or compile it if it is missing there or damaged.

    Raise `DeviceError`, with NVRTC's log, if it does not compile.
    """
    path = cache_folder() / f"{_key(source, arch)}.cubin"
    with suppress(OSError):
        data = read_own(path)
        checksum, cubin = data[:32], data[32:]
        if hashlib.sha256(cubin).digest() == checksum:
            return cubin
    cubin = compile_source(source, arch).cubin
    with suppress(OSError):
        store(path, hashlib.sha256(cubin).digest() + cubin)
    return cubin


class Kernels:
    """Kernels by name; a file is compiled and loaded when the first of its kernels is used."""

    def __init__(self, sources: Iterable[Path], arch: str) -> None:
        """Take files of kernels, and the architecture of the device that will be current when kernels are used."""
        self._source_of = {name: source for source in sources for name in kernel_names(source)}
        self._arch = arch
        self._functions: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return the kernel with this name as a CuPy function, which is called with a grid, a block and arguments.

        Raises:
            DeviceError: Its source file does not compile; the message has NVRTC's log.

        """
        if name not in self._functions:
            from cupy.cuda import Module

            source = self._source_of[name]
            module = Module()
            module.load(cached_cubin(source, self._arch))
            self._functions |= {name: module.get_function(name) for name in kernel_names(source)}
        return self._functions[name]


def _log(nvrtc: Any, program: int) -> str:
    log: str = nvrtc.getProgramLog(program)
    return log.strip("\0\n")


def _key(source: Path, arch: str) -> str:
    """Return the cache key of a compiled source file: a hash of everything that the compiled code depends on.

    That is the source, every header, the compiler options for `arch` and the compiler's version.
    """
    from cupy.cuda import nvrtc

    files = [source, *sorted(HEADERS.rglob("*.h")), *sorted(SOURCES.rglob("*.cuh"))]
    options = [option for option in compile_options(arch) if not option.startswith("-I")]
    parts = [options, nvrtc.getVersion(), *((file.name, file.read_bytes()) for file in files)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()
