"""Fixtures of the tests of integrations."""

import os

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture
def patched():
    """The patch of transformers in force, undone after the test."""
    from tokenweir import patch_transformers

    with patch_transformers():
        yield
