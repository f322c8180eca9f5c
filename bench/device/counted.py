"""A device without a GPU that counts what kernels execute, read and write: the tests' shim, with `counters.cpp` linked in."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from shared.report import ROOT

from tokenweir.gpu.kernels import HEADERS, compile_source, kernel_names, kernel_sources

sys.path.append(str(ROOT / "tests" / "gpu" / "devices"))
from shim_device import SHIM, ShimDevice, kernels_in

COUNTERS = Path(__file__).with_name("counters.cpp")
MEMORY = (
    "-fsanitize=kernel-address",
    *("--param", "asan-instrumentation-with-call-threshold=0", "--param", "asan-stack=0", "--param", "asan-globals=0"),
)
BLOCKS = ("-fsanitize-coverage=trace-pc",)
_COMPILE = ("g++", "-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-U_FORTIFY_SOURCE", "-c", "-x", "c++")


class Counts(NamedTuple):
    """Counts of a launch, or of several: as in counters.cpp."""

    instructions: int = 0
    sectors: int = 0
    of_blocks: int = 0
    of_kernel: int = 0
    longest_instructions: int = 0
    longest_loads: int = 0
    longest_shared: int = 0


class CountedDevice(ShimDevice):
    """A shim whose launches are counted, by kernel.

    Attributes:
        counts: The sums over all launches of each kernel.

    """

    def __init__(self, flags: tuple[str, ...]) -> None:
        """Instrument the kernels by `MEMORY` or `BLOCKS`."""
        super().__init__(kernel_sources())
        self._flags = flags
        self.counts: defaultdict[str, Counts] = defaultdict(Counts)

    def _run_kernel(self, kernel: str, *args: Any) -> bytes:
        library, kernels = _counted(self._source_of[kernel], self._flags)
        blocks = [block for ref in self._blocks if (block := ref()) is not None]
        ranges = np.array([(block.ctypes.data, block.ctypes.data + block.nbytes) for block in blocks], np.uint64)
        library.begin_counts(ctypes.c_void_p(ranges.ctypes.data), ctypes.c_size_t(len(ranges)))
        error: bytes = kernels[kernel](*args)
        found = np.zeros(len(Counts._fields), np.uint64)
        library.take_counts(ctypes.c_void_p(found.ctypes.data))
        before = self.counts[kernel]
        self.counts[kernel] = Counts(*(a + int(b) for a, b in zip(before, found, strict=True)))
        return error


@cache
def _counted(source: Path, flags: tuple[str, ...]) -> tuple[Any, dict[str, Any]]:
    """Compile a file of kernels with the counters; return the library, and its kernels by name."""
    includes = [f"-I{path}" for path in (SHIM, HEADERS, source.parent)]
    lines = ['#include "cuda.h"', f'#include "{source}"', *[f"TW_LAUNCHER({name})" for name in kernel_names(source)]]
    program = "\n".join(lines) + "\n"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library, parts = folder / f"{source.stem}.so", [folder / "kernels.o", folder / "counters.o"]
        subprocess.run([*_COMPILE, *flags, *includes, "-o", parts[0], "-"], input=program, text=True, check=True)
        subprocess.run([*_COMPILE, *includes, "-o", parts[1], COUNTERS], check=True)
        subprocess.run(["g++", "-shared", "-o", library, *parts], check=True)
        loaded = ctypes.CDLL(str(library))
        if flags == BLOCKS:
            places, values = _block_lengths(library)
            addresses = (ctypes.c_void_p(array.ctypes.data) for array in (places, values))
            loaded.set_lengths(*addresses, ctypes.c_size_t(len(places)))
        return loaded, kernels_in(library, source)


_FUNCTION = re.compile(r"([0-9a-f]+) <(.+)>:")
_OF_SHIM = re.compile(r"^launch_|\b(shim|std)::")
_INSTRUCTION = re.compile(r" +([0-9a-f]+):\t(.*)")


def _block_lengths(library: Path) -> tuple[Any, Any]:
    """Return where the basic blocks of the kernels begin, from `take_counts` on, and how many instructions each has."""
    listing = subprocess.run(
        ["objdump", "-d", "-C", "--no-show-raw-insn", library], capture_output=True, text=True, check=True
    ).stdout
    lengths: Counter[int] = Counter()
    zero, block, called = 0, None, False
    for line in listing.splitlines():
        if found := _FUNCTION.match(line):
            block = None
            if found[2] == "take_counts":
                zero = int(found[1], 16)
            is_ours = not _OF_SHIM.search(found[2].partition("(")[0])
        elif found := _INSTRUCTION.match(line):
            if called:
                block = int(found[1], 16) if is_ours else None
            called = "<__sanitizer_cov_trace_pc" in found[2]
            if block is not None and not called and not found[2].startswith("nop"):
                lengths[block] += 1
    return np.array([block - zero for block in lengths], np.int64), np.array([*lengths.values()], np.uint32)


def compiled(arch: str) -> dict[str, int]:
    """Return the instructions that NVRTC compiles each kernel to, which a device of compute capability 7.0 or more has in 16
    bytes each.
    """
    sizes = {}
    for source in kernel_sources():
        cubin = compile_source(source, arch).cubin
        (table,), (size, count, names) = struct.unpack_from("<Q", cubin, 40), struct.unpack_from("<HHH", cubin, 58)
        sections = [struct.unpack_from("<IIQQQQ", cubin, table + size * i) for i in range(count)]
        for name, _, _, _, _, length in sections:
            begin = sections[names][4] + name
            text = cubin[begin : cubin.index(b"\0", begin)].decode()
            if text.startswith(".text."):
                sizes[text.removeprefix(".text.")] = length // 16
    return sizes
