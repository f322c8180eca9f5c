"""The compiled modules have the linker's and the compiler's hardening."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tokenweir.encode import _core
from tokenweir.templates import _native

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("readelf"), reason="readelf reads Linux's modules"),
    pytest.mark.skipif(b"__asan_" in Path(_core.__file__).read_bytes(), reason="sanitizers replace the hardening"),
]


@pytest.fixture(params=[_core, _native], ids=["_core", "_native"])
def elf(request):
    command = ["readelf", "--wide", "--dynamic", "--segments", "--dyn-syms", request.param.__file__]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_tables_of_the_linker_are_read_only(elf):
    assert "GNU_RELRO" in elf
    assert "BIND_NOW" in elf


def test_the_stack_is_protected(elf):
    stack = next(line for line in elf.splitlines() if "GNU_STACK" in line)
    assert " RW " in stack and "E" not in stack.partition("GNU_STACK")[2]
    assert "__stack_chk_fail" in elf


def test_buffers_are_checked(elf):
    assert "__memcpy_chk" in elf


def test_no_path_of_libraries(elf):
    assert "RPATH" not in elf and "RUNPATH" not in elf
