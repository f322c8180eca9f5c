"""A pytest plugin for the suite of vLLM: a tokenizer for each model that it names, and the plug-in if TOKENWEIR_PATCH is set.

vLLM itself has to be installed. A model whose files are not at hand has Qwen3's tokenizer, with the tags of vLLM's parsers as tokens.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import stand_ins

sys.path.append(os.environ["TOKENWEIR_SUITE"])  # behind vLLM's own package, for the suite's package `tests`


ENDS = {"qwen3": "<|im_end|>", "gpt2": "<|endoftext|>", "llama-3.1": "<|eot_id|>"}
"""The token that ends an answer, of the tokenizers that models get."""


@cache
def tags() -> list[str]:
    """Return the distinct tags in the sources of vLLM's parsers."""
    found = find_spec("vllm")
    assert found is not None and found.origin is not None
    folders = [Path(found.origin).parent / part for part in ("parser", "reasoning", "tool_parsers")]
    return stand_ins.tags("\n".join(path.read_text("utf-8") for part in folders for path in sorted(part.rglob("*.py"))))


def folder(name: str) -> str:
    """Return the local folder for a model's name, made at the first call; a path or a name without a slash unchanged."""
    if "/" not in name or Path(name).exists():
        return name
    if (tokenizer := stand_ins.FOLDERS.get(name)) is not None:
        return str(stand_ins.with_tokens(tokenizer, name, [], eos_token=ENDS[tokenizer]))
    return str(stand_ins.with_tokens("qwen3", "qwen3-with-tags", tags(), eos_token=ENDS["qwen3"]))


def pytest_sessionstart(session: Any) -> None:
    """Patch vLLM's loading so that each tokenizer is loaded once.

    Most tests of parsers load one, which takes longer than the test.
    """
    import transformers

    from_pretrained = transformers.AutoTokenizer.from_pretrained
    loaded: dict[str, Any] = {}

    def cached(name: Any, *args: Any, **options: Any) -> Any:
        key = repr((str(name), args, sorted(options.items())))
        if key not in loaded:
            loaded[key] = from_pretrained(name, *args, **options)
        return loaded[key]

    transformers.AutoTokenizer.from_pretrained = cached


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Remove the suite's garbage collection after each test, which only GPUs need and which takes longer than the tests."""
    for item in items:
        item.add_marker("skip_global_cleanup")


stand_ins.folder = folder
if os.environ.get("TOKENWEIR_PATCH"):
    os.environ["VLLM_PLUGINS"] = "tokenweir"
    from tokenweir.integrations.vllm import register

    register()
