"""vLLM's plug-in, without vLLM: what it does, and when it does nothing."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import tokenizers

import tokenweir
from tokenweir.integrations import vllm
from tokenweir.integrations.transformers.backend import Original
from tokenweir.integrations.transformers.decode_stream import DecodeStream
from tokenweir.integrations.transformers.patched_tokenizer import PatchedTokenizer

PYPROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"


@pytest.fixture
def plugin():
    """The function that the entry point names."""
    points = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["entry-points"]["vllm.general_plugins"]
    module, _, function = points[vllm.PLUGIN].partition(":")
    yield getattr(import_module(module), function)
    tokenweir.unpatch_transformers()


@pytest.mark.parametrize("names", [None, "", "other", "tokenweir_parsers", "other,nottokenweir"])
def test_an_installation_alone_changes_nothing(plugin, monkeypatch, names):
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    if names is not None:
        monkeypatch.setenv("VLLM_PLUGINS", names)
    plugin()
    assert tokenizers.Tokenizer is Original


def test_it_patches_where_it_is_named(plugin, monkeypatch):
    detokenizer = ModuleType(vllm.DETOKENIZER)
    detokenizer.DecodeStream = tokenizers.decoders.DecodeStream
    monkeypatch.setitem(sys.modules, vllm.DETOKENIZER, detokenizer)
    monkeypatch.setenv("VLLM_PLUGINS", "other,tokenweir")
    plugin()
    plugin()
    assert tokenizers.Tokenizer is PatchedTokenizer
    assert detokenizer.DecodeStream is tokenizers.decoders.DecodeStream is DecodeStream
