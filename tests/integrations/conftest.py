"""Fixtures of the tests of integrations."""

import os
import tomllib
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def entry_points():
    """The entry points that the package declares, by group and name."""
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text("utf-8")
    return tomllib.loads(text)["project"]["entry-points"]


@pytest.fixture
def patched():
    """The patch of transformers in force, undone after the test."""
    from tokenweir import patch_transformers

    with patch_transformers():
        yield
