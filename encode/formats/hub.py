"""Models in the cache of the HuggingFace hub. Only files that are there are read; nothing is ever fetched."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tokenweir.encode.errors import TokenizerFileError

_PART = r"(?!\.)(?!.*\.\.)[\w.-]+"
_NAME = re.compile(rf"{_PART}(/{_PART})?", re.ASCII)
_REVISION = re.compile(rf"{_PART}(/{_PART})*", re.ASCII)


def cache_folder() -> Path:
    """Return the folder of the cache: `HF_HUB_CACHE`, or `hub` in `HF_HOME`, or the default of `huggingface_hub`."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(folder).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface" / "hub"


def is_name(text: str) -> bool:
    """Return whether a text is a possible name of a model on the hub (`Qwen/Qwen3-8B`, `gpt2`), not of a file."""
    return _NAME.fullmatch(text) is not None and not text.endswith((".json", ".model", ".tiktoken", ".gguf"))


def find_snapshot(name: str, revision: str = "main") -> Path:
    """Return the folder of a model's files in the local cache of the HuggingFace hub.

    Args:
        name: The model's name on the hub.
        revision: A branch or tag that was fetched, or a commit's hash.

    Raises:
        TokenizerFileError: The model, or this revision, is not in the cache.
        ValueError: The name or the revision is not valid on the hub.

    """
    if not (isinstance(name, str) and is_name(name)):
        hint = f"; for files write Tokenizer.from_file({str(name)!r})" if isinstance(name, str | Path) else ""
        raise ValueError(f"{name!r} is not a name on the hub such as 'Qwen/Qwen3-8B'{hint}")
    if not (isinstance(revision, str) and _REVISION.fullmatch(revision)):
        raise ValueError(f"{revision!r} is not a revision: a branch, a tag or a commit's hash")
    cache = cache_folder()
    model = cache / f"models--{name.replace('/', '--')}"
    reference = model / "refs" / revision
    try:
        commit = reference.read_text("ascii").strip() if reference.is_file() else revision
    except (OSError, ValueError) as error:
        raise TokenizerFileError(f"{reference}: {error}") from error
    folder = model / "snapshots" / commit
    if not (_REVISION.fullmatch(commit) and folder.is_dir()):
        what = name if revision == "main" else f"{name} at {revision}"
        option = "" if revision == "main" else f" --revision {revision}"
        raise TokenizerFileError(
            f"{what} is not in the hub's cache at {cache}, and nothing is fetched here: first run hf download {name}{option}"
        )
    return folder
