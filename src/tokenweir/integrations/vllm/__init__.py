"""vLLM's plug-ins, each of which does nothing unless the variable VLLM_PLUGINS names it.

    __init__.py   the entry points: `tokenweir`, `tokenweir_parsers`, `tokenweir_server`
    parsers.py    reasoning and tool parsers over `ChatDecoder`, for vLLM's `Parser` and for its two older interfaces
    engine.py     vLLM's `EngineClient` as an engine
    server.py     the server's routes in vLLM's application

vLLM calls every installed plug-in of its general group if VLLM_PLUGINS is not set, so each one checks the variable: an
installation alone changes no server. Written by the interfaces of vLLM 0.33.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tokenweir.integrations.transformers.decode_stream import DecodeStream
from tokenweir.integrations.transformers.patch import patch_transformers

if TYPE_CHECKING:
    from tokenweir.integrations.vllm.server import EngineFrontEnd

PLUGIN = "tokenweir"
"""The patch's name in VLLM_PLUGINS."""

PARSERS = "tokenweir_parsers"
"""The parsers' name in VLLM_PLUGINS."""

DETOKENIZER = "vllm.v1.engine.detokenizer"
"""The module of vLLM that takes `DecodeStream` by name, and may be imported before the plug-in is called."""


def named(plugin: str) -> bool:
    """Whether the environment variable VLLM_PLUGINS names a plug-in."""
    return plugin in os.environ.get("VLLM_PLUGINS", "").split(",")


def register() -> None:
    """Let transformers' and tokenizers' objects run on tokenweir, if VLLM_PLUGINS names the plug-in `tokenweir`.

    vLLM calls it once or several times a process.
    """
    if not named(PLUGIN):
        return
    patch_transformers()
    names = vars(sys.modules[DETOKENIZER]) if DETOKENIZER in sys.modules else {}
    if "DecodeStream" in names:
        names["DecodeStream"] = DecodeStream


def register_parsers() -> None:
    """Register the reasoning and tool parsers in vLLM, if VLLM_PLUGINS names the plug-in `tokenweir_parsers`.

    vLLM calls it once or several times a process.
    """
    if named(PARSERS):
        from tokenweir.integrations.vllm.parsers import register_all

        register_all()


def endpoint_plugin() -> EngineFrontEnd:
    """Return the plug-in for tokenweir's routes in vLLM's server. vLLM calls this only if VLLM_PLUGINS names it."""
    from tokenweir.integrations.vllm.server import EngineFrontEnd

    return EngineFrontEnd()
