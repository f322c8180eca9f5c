"""The kernels: their sources, compiled by NVRTC and kept on disk.

They are real files in `kernels/`, which include the core's own headers, and are compiled where they run, for the device
that is there. A compiler is all that takes: no device, so that CI compiles them for devices that it has not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import tokenweir.encode
from tokenweir.encode.cache import cache_folder, read_own, store
from tokenweir.encode.errors import DeviceError

SOURCES = Path(__file__).parent / "kernels"
HEADERS = Path(tokenweir.encode.__file__).parent / "core"

_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(')

STANDARD_HEADERS = {  # NVRTC has none; these are all that the core's freestanding headers include
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
    """The files that define kernels, in their order by name."""
    return tuple(sorted(SOURCES.glob("*.cu")))


def kernel_names(source: Path) -> list[str]:
    """The kernels that a file defines: `extern "C" __global__ void name(`."""
    return _KERNEL.findall(source.read_text("utf-8"))


class Compiled(NamedTuple):
    """A file of kernels for one architecture.

    Attributes:
        cubin: What a device loads.
        log: What NVRTC said, the assembler's report included: registers and spills of every kernel.

    """

    cubin: bytes
    log: str


def compile_options(arch: str) -> list[str]:
    """The options for NVRTC of any version.

    NVRTC below 13.2 takes a generic lambda of a kernel for a host function unless it is told that `-default-device` holds.
    """
    return ["-std=c++17", f"-arch={arch}", "-default-device", "-Xptxas=-v", f"-I{HEADERS}", f"-I{SOURCES}"]


def compile_source(source: Path, arch: str) -> Compiled:
    """Compile a file by NVRTC, which CuPy finds; no device is needed.

    Args:
        source: A file of kernels.
        arch: Such as "sm_90".

    Raises:
        DeviceError: It does not compile, with NVRTC's log.

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
    """What `compile_source` makes, through the cache on disk: a file there that is damaged or missing changes nothing.

    Raises:
        DeviceError: As there.

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
    """Kernels by their names, each file compiled and loaded when the first of its kernels is asked for."""

    def __init__(self, sources: Iterable[Path], arch: str) -> None:
        """Take files of kernels and the architecture of the device that is current when kernels are asked for."""
        self._source_of = {name: source for source in sources for name in kernel_names(source)}
        self._arch = arch
        self._functions: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """A kernel that can be called with a grid, a block and arguments, as CuPy has it.

        Raises:
            DeviceError: Its file does not compile.

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
    """A hash of all that the compiled form depends on. It takes in every header, which is more than that."""
    from cupy.cuda import nvrtc

    files = [source, *sorted(HEADERS.rglob("*.h")), *sorted(SOURCES.rglob("*.cuh"))]
    options = [option for option in compile_options(arch) if not option.startswith("-I")]
    parts = [options, nvrtc.getVersion(), *((file.name, file.read_bytes()) for file in files)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()
