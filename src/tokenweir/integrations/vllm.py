"""vLLM's plug-in: the patch of transformers, in each of its processes.

vLLM calls every installed plug-in, unless VLLM_PLUGINS lists those that it may call. This one does nothing unless that variable names it, so
that an installation alone changes no server.
"""

from __future__ import annotations

import os
import sys

from tokenweir.integrations.decode_stream import DecodeStream
from tokenweir.integrations.transformers import patch_transformers

PLUGIN = "tokenweir"
"""The plug-in's name in VLLM_PLUGINS."""

DETOKENIZER = "vllm.v1.engine.detokenizer"
"""The module of vLLM that takes `DecodeStream` by name, and may be imported before the plug-in is called."""


def register() -> None:
    """Patch transformers and tokenizers if VLLM_PLUGINS names this plug-in. vLLM calls it once or several times a process."""
    if PLUGIN not in os.environ.get("VLLM_PLUGINS", "").split(","):
        return
    patch_transformers()
    names = vars(sys.modules[DETOKENIZER]) if DETOKENIZER in sys.modules else {}
    if "DecodeStream" in names:
        names["DecodeStream"] = DecodeStream
