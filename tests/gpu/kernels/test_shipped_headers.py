"""The wheel has the headers that GPU kernels include, and no others of the core."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "encode" / "core"
INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)


def headers_of_kernels() -> set[str]:
    """The core's headers that kernels include, by themselves or through others."""
    found: set[str] = set()
    sources = [path for path in (ROOT / "gpu" / "kernels").rglob("*") if path.suffix in (".cu", ".cuh")]
    while sources:
        included = INCLUDE.findall(sources.pop().read_text("utf-8"))
        new = {name for name in included if (CORE / name).is_file()} - found
        found |= new
        sources += [CORE / name for name in new]
    return found


def test_the_wheel_has_the_headers_of_kernels_alone():
    excluded = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["scikit-build"]["wheel"]["exclude"]
    kept = {name.removeprefix("!tokenweir/encode/core/") for name in excluded if name.startswith("!")}
    assert kept == headers_of_kernels()
    assert len(kept) > 10
