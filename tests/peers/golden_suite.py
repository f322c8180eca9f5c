"""HuggingFace's golden files of tokenizers, by its `test_golden.py`, for the tokenizers of ../shared/data.

Golden files in the suite's folder are used as they are. For the other tokenizers its `generate.py` makes them with the installed
release, as the project itself does: it runs in a process without the patch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ["TOKENWEIR_SUITE"])
TREE = Path(os.environ["TOKENWEIR_PEERS_TMP"], "golden")
DATA = Path(os.environ["TOKENWEIR_DATA"])
FILES = {
    "fixtures/models/llama-2-7b-chat-hf.json": "llama-2",
    "llama-3-tokenizer.json": "llama-3.1",
    "t5-base.json": "t5-small",
}
"""Tokenizer files that the published golden files name otherwise than by `NAME.json`, and their folders here."""


def make_tree() -> None:
    """Create the folder tree that the suite reads: its own files, tokenizers, texts and golden files, as in a checkout."""
    tests, data = TREE / "bindings/python/tests/golden", TREE / "tokenizers/data"
    shutil.copytree(SOURCE, tests, ignore=shutil.ignore_patterns("__pycache__"))
    folders = sorted(path.parent for path in (DATA / "tokenizers").glob("*/tokenizer.json"))
    texts = [*(DATA / "corpora").glob("*.txt"), *sorted((DATA / "corpora/udhr").glob("*.txt"))]
    links = {data / f"{folder.name}.json": folder / "tokenizer.json" for folder in folders}
    links |= {data / name: DATA / "tokenizers" / folder / "tokenizer.json" for name, folder in FILES.items()}
    links |= {data / "fixtures/lang" / text.name: text for text in texts}
    for link, target in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target.resolve())
    published = {path.stem for path in (tests / "goldens").glob("*.jsonl")}
    models = [{"name": f.name, "file": f"{f.name}.json"} for f in folders if f.name not in published]
    listed = TREE / "tokenizers/tk-encode/examples/bench_models.json"
    listed.parent.mkdir(parents=True)
    listed.write_text(json.dumps(models), "utf-8")
    subprocess.run([sys.executable, "-P", str(tests / "generate.py")], check=True)


if not TREE.exists():
    make_tree()
sys.path.insert(0, str(TREE / "bindings/python/tests"))
from golden.test_golden import *
