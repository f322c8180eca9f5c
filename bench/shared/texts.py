"""The texts of the benchmarks: real texts, and short chat messages."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Callable
from functools import partial
from pathlib import Path

from shared.report import DATA


def documents(text: str, characters: int = 30_000) -> list[str]:
    """The text in documents of so many characters, as long prompts are."""
    return [text[start : start + characters] for start in range(0, len(text), characters)]


def corpus(name: str) -> list[str]:
    return documents((DATA / "corpora" / name).read_bytes().decode())


def code() -> list[str]:
    """The first 3 million characters of the running Python's standard library."""
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return documents("".join(path.read_text(encoding="utf-8") for path in sources)[:3_000_000])


def gsm8k() -> list[dict[str, str]]:
    """The 1,319 test problems of GSM8K: questions of 235 bytes each on average, with worked answers."""
    lines = (DATA / "corpora" / "gsm8k-test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def chat() -> list[str]:
    """The questions of GSM8K."""
    return [problem["question"] for problem in gsm8k()]


TEXTS: dict[str, Callable[[], list[str]]] = {
    "English": partial(corpus, "war-and-peace.txt"),
    "Chinese": partial(corpus, "zh-hongloumeng.txt"),
    "Japanese": partial(corpus, "ja-wagahai-neko.txt"),
    "code": code,
    "chat": chat,
}


def math() -> list[str]:
    """GSM8K's questions with their worked answers."""
    return ["".join(f"{one['question']}\n{one['answer']}\n\n" for one in gsm8k())]


def of_kind(kind: str, size: int = 1_000_000) -> tuple[str, str]:
    """Two texts of one kind, at most `size` bytes each, that have no passage in common."""
    text = "".join(math() if kind == "math" else TEXTS[kind]()).encode()
    half = min(size, len(text) // 2)
    return text[:half].decode(errors="ignore"), text[half : 2 * half].decode(errors="ignore")
