"""The tables of the pages for those who come from other libraries: both columns of every row give the same value."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenweir

HOWTO = Path(__file__).resolve().parents[2] / "docs" / "howto"

TEXT = "Hello, naïve world! 你好 \U0001f600 <|endoftext|> 12345"
SHARED: dict[str, Any] = {
    "text": TEXT,
    "texts": [TEXT, "", "Hi", "one two three four five six"],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is a weir?"},
        {"role": "assistant", "content": "A low dam."},
        {"role": "user", "content": "Where?"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
    "marked": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>"
    "{% endgeneration %}{% else %}{{ m.role }}: {{ m.content }}{% endif %}{% endfor %}",
}


def rows(page: str) -> list[tuple[str, str]]:
    """The two columns of a page's table, without the code's quotes."""
    text = (HOWTO / f"coming-from-{page}.md").read_text("utf-8").partition("<!-- folders:begin -->")[0]
    found = re.findall(r"^\| `(.+?)` \| `(.+)` \|$", text, re.MULTILINE)
    assert len(found) == len(re.findall(r"^\| ", text, re.MULTILINE)) - 1  # the heading
    return [(theirs.replace("\\|", "|"), ours.replace("\\|", "|")) for theirs, ours in found]


def plain(value: Any) -> Any:
    """Lists for tuples and arrays."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def check(page: str, theirs: dict[str, Any], ours: dict[str, Any], subject: str = "") -> None:
    """Evaluate every row, or those of one subject, in the names of either library."""
    for left, right in (row for row in rows(page) if subject in row[0]):
        wanted = plain(eval(left, {**SHARED, **theirs}))
        assert plain(eval(right, {**SHARED, **ours})) == wanted, (left, right)
        assert wanted not in ([], None, {}, ""), left


def ours(path: Path) -> dict[str, Any]:
    tok = tokenweir.Tokenizer.from_file(path)
    ids = tok.encode(TEXT)
    stream = tokenweir.DecodeStream(tok)
    return {"tok": tok, "ids": ids, "rows": [ids, ids[:3]], "stream": stream, "ChatTemplate": tokenweir.ChatTemplate}


def test_from_tokenizers(data):
    from tokenizers import Tokenizer
    from tokenizers.decoders import DecodeStream

    path = data("tokenizers/qwen3/tokenizer.json")
    mine = ours(path)
    names = {"ids": mine["ids"], "rows": mine["rows"]}
    stream = DecodeStream(skip_special_tokens=True)
    check("tokenizers", {**names, "tok": Tokenizer.from_file(str(path)), "stream": stream}, mine)


def test_from_tiktoken(data):
    from tokenweir.verify.references import OpenAI

    path = data("tokenizers/openai/cl100k_base.tiktoken")
    mine = ours(path)
    check("tiktoken", {"enc": OpenAI.from_file(path).encoding, "ids": mine["ids"], "rows": mine["rows"]}, mine)


def test_from_transformers(data):
    transformers = pytest.importorskip("transformers")
    path = data("tokenizers/qwen3/tokenizer.json")
    mine = ours(path)
    mine["template"] = tokenweir.ChatTemplate.from_tokenizer(mine["tok"])
    theirs = transformers.AutoTokenizer.from_pretrained(str(path.parent))
    check("transformers", {"tok": theirs, "ids": mine["ids"], "rows": mine["rows"]}, mine)


def test_truncation_keeps_the_ids_of_the_post_processor(data):
    transformers = pytest.importorskip("transformers")
    path = data("tokenizers/bert-base-uncased/tokenizer.json")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), pad_token="[PAD]")
    mine = ours(path)
    mine["tok"].pad_id = 0
    check("transformers", {"tok": theirs}, mine, "truncation")
