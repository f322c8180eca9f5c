"""Every kernel compiles for the devices that count, from the files of the package that is installed, and spills nothing.

Compiling needs no GPU. A register that is spilled goes to memory and back: the kernels are written to avoid spills.
"""

from __future__ import annotations

import re

import pytest
from full_run import FULL

from tokenweir.gpu.kernels import compile_source, kernel_names, kernel_sources

_REPORT = re.compile(r"Function properties for (\w+)\n.*?(\d+) bytes spill stores, (\d+) bytes spill loads")


ARCHS = ("sm_80", "sm_90", "sm_100")
CASES = [
    pytest.param(source, arch, id=f"{source.stem}-{arch}")
    for turn, source in enumerate(kernel_sources())
    for arch in (ARCHS if FULL else (ARCHS[turn % len(ARCHS)],))
]
"""Every file for every device; where the run is no full one, for one of them, in turn."""


@pytest.mark.parametrize(("source", "arch"), CASES)
def test_every_kernel_compiles_and_spills_nothing(nvrtc, source, arch):
    cubin, log = compile_source(source, arch)
    assert cubin.startswith(b"\x7fELF")
    assert "warning" not in log
    spills = {kernel: (stores, loads) for kernel, stores, loads in _REPORT.findall(log)}
    for kernel in kernel_names(source):
        assert spills[kernel] == ("0", "0"), log
