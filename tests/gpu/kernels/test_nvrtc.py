"""Every kernel compiles for the devices that count, from the files of the package that is installed, and spills nothing.

Compiling needs no GPU. A register that is spilled goes to memory and back: the kernels are written so that none is.
"""

from __future__ import annotations

import re

import pytest

from tokenweir.gpu.kernels import compile_source, kernel_names, kernel_sources

_REPORT = re.compile(r"Function properties for (\w+)\n.*?(\d+) bytes spill stores, (\d+) bytes spill loads")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("source", kernel_sources(), ids=lambda source: source.stem)
def test_every_kernel_compiles_and_spills_nothing(nvrtc, source, arch):
    cubin, log = compile_source(source, arch)
    assert cubin.startswith(b"\x7fELF")
    assert "warning" not in log
    spills = {kernel: (stores, loads) for kernel, stores, loads in _REPORT.findall(log)}
    for kernel in kernel_names(source):
        assert spills[kernel] == ("0", "0"), log
