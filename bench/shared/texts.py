"""The texts of the benchmarks: real texts, short chat messages, and long texts without a place to stop."""

from __future__ import annotations

import base64
import json
import sysconfig
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

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


def chat() -> list[str]:
    """The 1,319 questions of GSM8K, 235 bytes each on average."""
    lines = (DATA / "corpora" / "gsm8k-test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


# Each makes one text of so many bytes, which most pre-tokenizers leave in one piece.
LONG: dict[str, Callable[[Random, int], str]] = {
    "one letter": lambda _, size: "a" * size,
    "random letters": lambda rng, size: "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=size)),
    "spaces": lambda _, size: " " * size,
    "newlines": lambda _, size: "\n" * size,
    "digits": lambda rng, size: "".join(rng.choices("0123456789", k=size)),
    "base64": lambda rng, size: base64.b64encode(rng.randbytes(size * 3 // 4)).decode(),
    "punctuation": lambda rng, size: "".join(rng.choices("!#$%&*+-./:;<=>?@^_~", k=size)),
    "random Han": lambda rng, size: "".join(map(chr, rng.choices(range(0x4E00, 0x9FA6), k=size // 3))),
    "combining marks": lambda rng, size: "".join(map(chr, rng.choices(range(0x300, 0x34F), k=size // 2))),
}


def long_text(kind: str, size: int) -> list[str]:
    return [LONG[kind](Random(size), size)]


LONG_SIZES = (250_000, 1_000_000)

TEXTS: dict[str, Callable[[], list[str]]] = {
    "English": partial(corpus, "war-and-peace.txt"),
    "Chinese": partial(corpus, "zh-hongloumeng.txt"),
    "Japanese": partial(corpus, "ja-wagahai-neko.txt"),
    "code": code,
    "plain": lambda: ["".join(corpus("war-and-peace.txt"))[: LONG_SIZES[-1]]],
    "chat": chat,
    "Hi": lambda: ["Hi"],
    **{f"{kind} {size}": partial(long_text, kind, size) for kind in LONG for size in LONG_SIZES},
}


def math() -> list[str]:
    """GSM8K's questions with their worked answers."""
    lines = (DATA / "corpora" / "gsm8k-test.jsonl").read_text(encoding="utf-8").splitlines()
    return ["".join(f"{one['question']}\n{one['answer']}\n\n" for one in map(json.loads, lines))]


def of_kind(kind: str, size: int = 1_000_000) -> tuple[str, str]:
    """Two texts of one kind, at most `size` bytes each, that have no passage in common."""
    text = "".join(math() if kind == "math" else TEXTS[kind]()).encode()
    half = min(size, len(text) // 2)
    return text[:half].decode(errors="ignore"), text[half : 2 * half].decode(errors="ignore")


def megabytes(name: str) -> float:
    """The size of a text in 10^6 bytes of UTF-8."""
    return sum(len(text.encode()) for text in TEXTS[name]()) / 1e6
