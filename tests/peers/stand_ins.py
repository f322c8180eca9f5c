"""A pytest plugin for other projects' suites: local files for those that they fetch, and tokenweir's patch if TOKENWEIR_PATCH is set."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

DATA = Path(os.environ["TOKENWEIR_DATA"]) / "tokenizers"
FOLDERS = {
    "Qwen/Qwen3-0.6B": "qwen3",
    "bert-base-cased": "bert-base-uncased",
    "bert-base-uncased": "bert-base-uncased",
    "gpt2": "gpt2",
    "t5-base": "t5-small",
    "hf-internal-testing/Llama-3.1-8B-Instruct": "llama-3.1",
    "hf-internal-testing/gpt-oss-20b": "qwen3",
    "meta-llama/Llama-3.2-1B-Instruct": "llama-3.1",
    "openai-community/gpt2": "gpt2",
}
"""Folders in place of models of the hub; another model's files give other ids, with the patch and without."""


MADE = Path(os.environ["TOKENWEIR_PEERS_TMP"])
TAG = re.compile(r"</?[a-zA-Z_]+(?::[a-z_]+)?>|<\|[^|<>{}\s]+\|?>|<[a-z_]+\|>|<｜[^｜{}]+｜>|\[[A-Z_]+\]|\[gMASK\]")


def tags(text: str) -> list[str]:
    """Return the distinct tags, such as `<think>`, in the source of a template or a parser, sorted."""
    return sorted(set(TAG.findall(text)))


def with_tokens(tokenizer: str, name: str, tokens: Iterable[str], **options: Any) -> Path:
    """Create a model folder, if it does not exist, of a tokenizer with further tokens; return its path.

    Tokens with a bar in their text, such as `<|end|>`, are special.
    """
    import transformers

    made = MADE / name.replace("/", "--")
    if not made.exists():
        source = str(DATA / tokenizer / "tokenizer.json")
        found = transformers.PreTrainedTokenizerFast(tokenizer_file=source, **options)
        new = [token for token in dict.fromkeys(tokens) if token not in found.get_vocab()]
        for special in (False, True):
            bars = [
                transformers.AddedToken(t, normalized=False, special=special)
                for t in new
                if ("|" in t or "｜" in t) is special
            ]
            found.add_tokens(bars, special_tokens=special)
        found.save_pretrained(made)
    return made


def folder(name: str) -> str:
    return str(DATA / FOLDERS[name]) if name in FOLDERS else name


def hub_file(made: Path, repository: str, filename: str) -> str:
    """Return the path of a local file in place of a model's tokenizer.json, or of a file of HuggingFace's repository of test data.

    A file of test data is made in the folder `made` if it does not exist.
    """
    if filename == "tokenizer.json":
        return str(DATA / FOLDERS[repository] / filename)
    path = made / filename
    if not path.exists():
        model = {"bert": "bert-base-uncased", "roberta": "gpt2"}[filename.partition("-")[0]]
        source = json.loads((DATA / model / "tokenizer.json").read_text("utf-8"))["model"]
        if filename.endswith("vocab.txt"):
            text = "\n".join(sorted(source["vocab"], key=source["vocab"].__getitem__))
        elif filename.endswith("vocab.json"):
            text = json.dumps(source["vocab"], ensure_ascii=False)
        else:
            merges = (merge if isinstance(merge, str) else " ".join(merge) for merge in source["merges"])
            text = "#version: 0.2\n" + "\n".join(merges)
        path.write_text(text, "utf-8")
    return str(path)


def fastokens() -> ModuleType:
    """Create and register a module `fastokens` over tokenweir with the names that the suite of fastokens imports; return it."""
    import tokenizers

    from tokenweir.integrations.transformers.backend import Backend
    from tokenweir.integrations.transformers.patch import patch_transformers, unpatch_transformers

    class Tokenizer:
        @staticmethod
        def from_model(name: str) -> Backend:
            return Backend(tokenizers.Tokenizer.from_file(f"{folder(name)}/tokenizer.json"))

    package, compat, native = (ModuleType(f"fastokens{part}") for part in ("", "._compat", "._native"))
    package.__dict__.update(
        __path__=[], patch_transformers=patch_transformers, unpatch_transformers=unpatch_transformers
    )
    compat.__dict__.update(_TokenizerShim=Backend)
    native.__dict__.update(Tokenizer=Tokenizer)
    sys.modules.update({module.__name__: module for module in (package, compat, native)})
    return package


def pytest_configure(config: Any) -> None:
    import huggingface_hub
    import transformers

    huggingface_hub.hf_hub_download = lambda repo_id, filename, **options: hub_file(MADE, repo_id, filename)
    from_pretrained = transformers.AutoTokenizer.from_pretrained
    transformers.AutoTokenizer.from_pretrained = lambda name, *args, **options: from_pretrained(
        folder(str(name)), *args, **options
    )
    fastokens()
    if os.environ.get("TOKENWEIR_PATCH"):
        import tokenweir

        tokenweir.patch_transformers()
