"""The kernels as files: all there, compiled by NVRTC, kept on disk."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tokenweir.encode.errors import DeviceError
from tokenweir.gpu import kernels
from tokenweir.gpu.kernels import HEADERS, SOURCES, Kernels, cached_cubin, compile_source, kernel_names, kernel_sources

KERNELS = Path(__file__).resolve().parents[3] / "gpu" / "kernels"
GOOD = 'extern "C" __global__ void fill(int* p) { p[threadIdx.x] = 1; }\n'


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "some.cu"
    path.write_text(GOOD)
    return path


@pytest.fixture
def compiled(monkeypatch):
    """The architectures that files were compiled for."""
    archs = []

    def compile(source, arch):
        archs.append(arch)
        return compile_source(source, arch)

    monkeypatch.setattr(kernels, "compile_source", compile)
    return archs


def included(path):
    return re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)


def test_the_package_has_every_file_that_a_kernel_is_made_of():
    """In CI the package is an installed wheel."""
    here, packed = (sorted(path.relative_to(root) for path in root.rglob("*.cu*")) for root in (KERNELS, SOURCES))
    assert packed == here
    wanted = {name for path in SOURCES.rglob("*.cu*") for name in included(path)}
    while wanted:
        name = wanted.pop()
        (path,) = (folder / name for folder in (SOURCES, HEADERS) if (folder / name).exists())
        wanted |= {*included(path)}


def test_every_kernel_has_its_own_name():
    names = [name for source in kernel_sources() for name in kernel_names(source)]
    assert len(names) == len({*names}) >= 2
    assert {"insert_ids", "pad_rows"} <= {*names}


def test_names_are_found_however_kernels_are_written(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(
        'extern "C" __global__ void a(int* p) {}\n'
        'extern "C"  __global__ void __launch_bounds__(256, 2) b(\n    int* p) {}\n'
        "template <int N> __global__ void not_exported(int* p) {}\n"
        'extern "C" __global__ void\nc() {}\n'
    )
    assert kernel_names(path) == ["a", "b", "c"]


def test_a_file_that_does_not_compile_raises_what_the_compiler_said(nvrtc, source):
    source.write_text(GOOD.replace("= 1", "= nothing"))
    with pytest.raises(DeviceError, match=r'^some.cu does not compile for sm_90: some.cu\(1\): error: .*"nothing"'):
        compile_source(source, "sm_90")
    with pytest.raises(DeviceError, match="^some.cu does not compile for sm_1: .*invalid value for --gpu-architecture"):
        compile_source(source, "sm_1")


def test_what_was_compiled_is_kept_on_disk(nvrtc, source, cache, compiled):
    first = cached_cubin(source, "sm_90")
    assert first.startswith(b"\x7fELF")
    assert cached_cubin(source, "sm_90") == first
    assert compiled == ["sm_90"]
    (kept,) = cache.iterdir()
    for damaged in (b"", kept.read_bytes()[:-1], bytes(40)):
        kept.write_bytes(damaged)
        assert cached_cubin(source, "sm_90").startswith(b"\x7fELF")
    assert len(compiled) == 4


def test_what_others_may_write_is_compiled_anew(source, cache, monkeypatch):
    monkeypatch.setattr(kernels, "compile_source", lambda source, arch: kernels.Compiled(b"a kernel", ""))
    monkeypatch.setattr(kernels, "_key", lambda source, arch: "key")  # which asks for NVRTC's version
    cached_cubin(source, "sm_90")
    (kept,) = cache.iterdir()
    forged = b"another kernel"
    kept.write_bytes(hashlib.sha256(forged).digest() + forged)
    kept.chmod(0o622)
    assert cached_cubin(source, "sm_90") == b"a kernel"


def test_a_change_of_source_or_architecture_compiles_anew(nvrtc, source, cache, compiled):
    one = cached_cubin(source, "sm_90")
    other = cached_cubin(source, "sm_80")
    source.write_text(GOOD.replace("= 1", "= 2"))
    assert len({one, other, cached_cubin(source, "sm_90")}) == 3
    assert compiled == ["sm_90", "sm_80", "sm_90"]
    assert len([*cache.iterdir()]) == 3


def test_a_change_of_a_header_compiles_anew(nvrtc, source, cache, compiled, tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "HEADERS", tmp_path)
    (tmp_path / "number.h").write_text("constexpr int kNumber = 1;\n")
    source.write_text('#include "number.h"\n' + GOOD.replace("= 1", "= kNumber"))
    one = cached_cubin(source, "sm_90")
    (tmp_path / "number.h").write_text("constexpr int kNumber = 2;\n")
    assert cached_cubin(source, "sm_90") != one
    assert len(compiled) == 2


def test_a_cache_that_cannot_be_written_changes_nothing(nvrtc, source, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOKENWEIR_CACHE", str(tmp_path / "file" / "folder"))
    assert cached_cubin(source, "sm_90").startswith(b"\x7fELF")


def test_standard_headers_are_there_for_the_core(nvrtc, source):
    """The types that the core uses, as wide as they are elsewhere."""
    sizes = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4}
    sizes |= {"int64_t": 8, "uint64_t": 8, "size_t": 8, "uintptr_t": 8}
    checks = [f"static_assert(sizeof({name}) == {size});" for name, size in sizes.items()]
    checks += [f"static_assert({name}(-1) {'<' if name[0] == 'i' else '>'} 0);" for name in sizes]
    checks += ["static_assert(UINT32_MAX == 4294967295u && INT64_MAX == (1ull << 63) - 1 && UINT64_MAX + 1 == 0);"]
    source.write_text("\n".join(["#include <stddef.h>", "#include <stdint.h>", *checks, GOOD]))
    compile_source(source, "sm_90")


def test_an_unknown_kernel_is_a_key_error():
    with pytest.raises(KeyError, match="no_such_kernel"):
        Kernels(kernel_sources(), "sm_90")["no_such_kernel"]
