"""vLLM where it is installed; stand-ins elsewhere."""

import sys
from importlib import import_module
from importlib.util import find_spec

import pytest


@pytest.fixture
def vllm_modules(monkeypatch):
    """vLLM's own modules, or stand-ins for them; the plug-ins' modules are imported again for each test."""
    if find_spec("vllm") is None:
        import vllm_stand_ins

        vllm_stand_ins.install(monkeypatch.setitem)
    for name in ("parsers", "engine", "server"):
        monkeypatch.delitem(sys.modules, f"tokenweir.integrations.vllm.{name}", raising=False)
    yield import_module
    for name in ("parsers", "engine", "server"):
        sys.modules.pop(f"tokenweir.integrations.vllm.{name}", None)
