"""Bindings compile for Python's stable interface, whose types are opaque; tests run on a build for one version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
BINDINGS = sorted([*(ROOT / "encode" / "core").rglob("*.[ch]*"), *(ROOT / "templates" / "native").rglob("*.[ch]*")])
FIELD = re.compile(r"->(?:tp|ob|ht|nb|sq|mp)_\w+")


@pytest.mark.parametrize("path", BINDINGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_field_of_an_opaque_type_is_used(path):
    assert not FIELD.findall(path.read_text("utf-8"))
