"""The plug-ins of vLLM and SGLang, without either: what they do where they are named, and that they do nothing elsewhere."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace

import pytest
import tokenizers

import tokenweir
from tokenweir.integrations import sglang, vllm
from tokenweir.integrations.transformers.backend import Original
from tokenweir.integrations.transformers.decode_stream import DecodeStream
from tokenweir.integrations.transformers.patched_tokenizer import PatchedTokenizer

GROUPS = {
    "VLLM_PLUGINS": ("vllm.general_plugins", vllm.PLUGIN),
    "SGLANG_PLUGINS": ("sglang.srt.plugins", sglang.PLUGIN),
}


@pytest.fixture
def start(entry_points, monkeypatch):
    """Call the plug-in that a variable chooses, with a value of it; the patch is undone after the test."""

    def start(variable, value):
        monkeypatch.delenv(variable, raising=False)
        if value is not None:
            monkeypatch.setenv(variable, value)
        group, name = GROUPS[variable]
        EntryPoint(name, entry_points[group][name], group).load()()

    yield start
    tokenweir.unpatch_transformers()


@pytest.mark.parametrize("names", [None, "", "other", "tokenweir_parsers", "tokenweirs", "other,nottokenweir"])
@pytest.mark.parametrize("variable", GROUPS)
def test_an_installation_alone_changes_nothing(start, variable, names):
    start(variable, names)
    assert tokenizers.Tokenizer is Original


def test_vllms_patches_where_it_is_named(start, monkeypatch):
    detokenizer = ModuleType(vllm.DETOKENIZER)
    detokenizer.DecodeStream = tokenizers.decoders.DecodeStream
    monkeypatch.setitem(sys.modules, vllm.DETOKENIZER, detokenizer)
    for _ in range(2):
        start("VLLM_PLUGINS", "other,tokenweir")
    assert tokenizers.Tokenizer is PatchedTokenizer
    assert detokenizer.DecodeStream is tokenizers.decoders.DecodeStream is DecodeStream


def test_sglangs_patches_and_hooks_where_it_is_named(start, monkeypatch):
    hooks = []
    registry = ModuleType("hook_registry")
    registry.HookType = SimpleNamespace(AROUND="around")
    registry.HookRegistry = SimpleNamespace(register=lambda *given: hooks.append(given))
    for name in ("sglang", "sglang.srt", "sglang.srt.plugins"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "sglang.srt.plugins.hook_registry", registry)
    start("SGLANG_PLUGINS", "other, tokenweir")
    assert tokenizers.Tokenizer is PatchedTokenizer
    assert hooks == [(sglang.DECODING, sglang.decode_batch, "around")]
