"""The chat templates of real models and the embedded one, one test id each."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_tables import cases

import tokenweir.encode

CASES = cases(__file__)

EMBEDDED = Path(tokenweir.encode.__file__).parent / "data" / "chat_template.jinja"

NAMES = CASES["names"]

MORE = CASES["more"]
FOLDERS = dict.fromkeys(NAMES, "templates") | dict.fromkeys(MORE, "templates-more")


@pytest.fixture(params=["embedded", *FOLDERS])
def source(request, data):
    """Source of a chat template; the test runs once for each template."""
    name = request.param
    path = EMBEDDED if name == "embedded" else data(f"{FOLDERS[name]}/{name}.jinja")
    return path.read_text("utf-8")


@pytest.fixture
def template_paths():
    """Folders of the real chat templates, relative to the folder of test data."""
    return [f"{folder}/{name}.jinja" for name, folder in FOLDERS.items()]
