"""The constants and the fields that kernels and host share, read from the kernels' sources."""

from __future__ import annotations

import pytest

from tokenweir.gpu import shared
from tokenweir.gpu.kernels import SOURCES
from tokenweir.gpu.modes import batch, blockbpe, exact, tables
from tokenweir.gpu.shared import constants, fields


@pytest.fixture
def sources(monkeypatch, tmp_path):
    """A folder of sources that stands in for the kernels' own."""
    monkeypatch.setattr(shared, "SOURCES", tmp_path)
    for reader in (constants, fields, shared._flattened):
        reader.cache_clear()
    yield tmp_path
    for reader in (constants, fields, shared._flattened):
        reader.cache_clear()


def test_constants(sources):
    (sources / "a.cuh").write_text("constexpr uint32_t kA = 0x10, kB = kA * 2;  // kC = 1\n")
    (sources / "b.cu").write_text(
        '#include "a.cuh"\n'
        "constexpr uint32_t kSum = (kA + kB) / 3 << 1 | 1u;\n"
        "constexpr double kHalf = 0.5;\nconstexpr uint64_t kOnes = ~uint64_t{0};\n"
        "enum Why : uint32_t {\n  kFirst = 1,  // because\n  kSecond = 4,\n};\nenum Word : uint32_t { kNull, kOne, kEnd };\n"
    )
    assert constants("b.cu") == {
        "kA": 16,
        "kB": 32,
        "kSum": 33,
        "kFirst": 1,
        "kSecond": 4,
        "kNull": 0,
        "kOne": 1,
        "kEnd": 2,
    }
    with pytest.raises(ValueError, match="^no source c.cu$"):
        constants("c.cu")


def test_what_cannot_be_read_is_named_when_asked_for(sources):
    (sources / "a.cu").write_text(
        "constexpr uint64_t kOnes = ~uint64_t{0};\nconstexpr uint64_t kLast = kOnes - 1;\nconstexpr uint32_t kOne = 1;\n"
    )
    found = constants("a.cu")
    assert found == {"kOne": 1}
    with pytest.raises(ValueError, match=r"^a.cu: cannot read the constant kOnes = ~uint64_t\{0\}$"):
        found["kOnes"]
    with pytest.raises(ValueError, match="^a.cu: cannot read the constant kLast = kOnes - 1$"):
        found["kLast"]
    with pytest.raises(KeyError, match="a.cu: no constant kTwo"):
        found["kTwo"]
    (sources / "b.cu").write_text("enum Bits : uint32_t { kLow = 1, kHigh = ~0u, kTop };\n")
    with pytest.raises(ValueError, match="^b.cu: cannot read the enumerator kHigh = ~0u$"):
        constants("b.cu")


def test_fields(sources):
    (sources / "a.cuh").write_text(
        "struct Inner {\n  static constexpr uint32_t kSize = 3;\n\n  const uint8_t* bytes;\n  uint64_t size, mask;  // words\n\n"
        "  TW_FN bool find(uint32_t c) const { return c < size; }\n};\n"
        "struct Outer {\n  const uint32_t* first;  // [256]\n  Inner inner;\n  uint64_t last;\n};\n"
        "struct Narrow {\n  uint32_t word;\n};\n"
    )
    assert fields("a.cuh", "Outer") == ("first", "inner.bytes", "inner.size", "inner.mask", "last")
    (sources / "b.cuh").write_text("struct Row {\n  uint64_t size;\n  uint64_t words[4];\n};\n")
    with pytest.raises(ValueError, match=r"^b.cuh: cannot read the member of Row: uint64_t words\[4\];$"):
        fields("b.cuh", "Row")
    for struct in ("Narrow", "Missing"):
        with pytest.raises(ValueError, match="^a.cuh: no struct "):
            fields("a.cuh", struct)


def test_kernels_agree_on_what_the_host_has_one_number_for():
    for source in SOURCES.glob("*.cu"):
        assert constants(source.name).get("kThreads", batch.THREADS) == batch.THREADS, source
    for name in ("encode.cu", "cut.cu"):
        assert constants(name)["kTile"] == batch.TILE == 32 * batch.THREADS


def test_every_refusal_has_its_reason():
    bits = {value for name, value in constants("common/documents.cuh").items() if name in REFUSALS}
    assert set(exact.REASONS) == bits and set(blockbpe.REASONS) <= bits
    assert REFUSALS == set(list(constants("common/documents.cuh"))[: len(REFUSALS)]), "the enumeration that comes first"


REFUSALS = {
    "kInvalidUtf8",
    "kNotSurelyNfc",
    "kTooLong",
    "kUnsupportedToken",
    "kUnsupportedCharacter",
    "kSpaceSign",
    "kGuardedPiece",
}


def test_a_struct_needs_exactly_its_fields(device):
    made = object.__new__(tables.ModelTables)
    with pytest.raises(ValueError, match=r"^a struct of a, b is given a, c$"):
        made._struct(("a", "b"), {"a": 1, "c": 2})
