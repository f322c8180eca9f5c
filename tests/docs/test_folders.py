"""The table of folders for those who come from transformers: where `AutoTokenizer` has other ids than the file.

`python tests/docs/test_folders.py` writes it anew.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from written_pages import DOCS, ROOT, check, table, write

PAGE = DOCS / "howto" / "coming-from-transformers.md"
COUNT = 1000

CLASSES = {
    "bert-base-uncased": "BertTokenizer",
    "bora-with-config": None,
    "deepseek-litellm": "LlamaTokenizerFast",
    "gemma": None,
    "gpt2": "GPT2Tokenizer",
    "llama-2": "LlamaTokenizer",
    "llama-3.1": "PreTrainedTokenizerFast",
    "mistral-7b-v0.3": "LlamaTokenizer",
    "phi-3-early-with-config": None,
    "phi-3-mini": None,
    "qwen3": None,
    "t5-small": None,
}
"""The folders, with the class that a model's config names where the folder at hand has no config."""

SHORT = [
    "Hello world",
    " ",
    "  ",
    "a\n\n b",
    "2535 12",
    "I'm  fine",
    "naïve café",
    "日本語 text",
    "\u200d e\u0301",
    "\xa0",
]
CONTROL = ["<mask>", "<s>x</s> y", "x<|endoftext|> y", "</s>  z", "<unk>x", "[MASK] a", "<|im_end|> b", "x <pad>"]


def shown(ids: list[int]) -> str:
    return " ".join(map(str, ids))


def shortened(text: str, differs: Callable[[str], bool]) -> str:
    """A text that differs and does not if any one character is left out."""
    at = 0
    while at < len(text):
        less = text[:at] + text[at + 1 :]
        text, at = (less, 0) if differs(less) else (text, at + 1)
    return text


def row(name: str, folder: Path) -> list[str]:
    """The cells of a line of the table."""
    import transformers

    from tokenweir import Tokenizer
    from tokenweir.verify import adversarial

    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder), Tokenizer.from_file(folder)
    drawn = adversarial.strings(COUNT, seed=name, special_tokens=list(ours.special_tokens)[:50])
    texts = [*SHORT, *CONTROL, *(text for texts in drawn.values() for text in texts)]
    pairs = zip(texts, ours.encode_batch(texts), theirs(texts)["input_ids"], strict=True)
    differ = [text for text, our_ids, their_ids in pairs if our_ids.tolist() != their_ids]
    known = config["tokenizer_class"]
    if not differ:
        return [name, f"`{known}`", f"the same in {len(texts):,} texts", ""]
    short = shortened(min(differ, key=len), lambda text: ours.encode(text) != theirs.encode(text))
    example = f"`{json.dumps(short)}`: {shown(theirs.encode(short))} there, {shown(ours.encode(short))} here"
    return [name, f"`{known}`", f"other ids in {len(differ):,} of {len(texts):,} texts", example]


def folders(data: Path) -> str:
    rows = []
    for name, class_name in CLASSES.items():
        with tempfile.TemporaryDirectory() as place:
            folder = data / "tokenizers" / name
            if class_name is not None:
                (Path(place) / "tokenizer.json").symlink_to(folder / "tokenizer.json")
                folder = Path(place)
                (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": class_name}))
            rows.append(row(name, folder))
    return table(["folder", "class in its config", "`AutoTokenizer`", "example"], rows)


def test_the_page_has_the_table(data):
    pytest.importorskip("transformers")
    check(PAGE, folders=folders(data("tokenizers").parent))


if __name__ == "__main__":
    write(PAGE, folders=folders(ROOT.parent / "shared" / "data"))
