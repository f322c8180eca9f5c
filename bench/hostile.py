"""Damaged tokenizer files: does each load, or raise one of the two errors that say so, at little cost?

    python bench/hostile.py [--small 20000] [--real 200] [--only GGUF] [--jobs 2] [--seed 0]

Small files of every format (see `small_files.py`) and the real ones in ../shared/data are cut off, get bits flipped,
stretches removed, doubled or moved, numbers and lengths made huge; JSON also gets other values in its places. A mutant
that loads must encode and decode. Anything but `TokenizerFileError` and `UnsupportedTokenizerError` is a failure, and
so is a small file that takes over 2 seconds or 1 GiB. Run it with a core built with sanitizers too
(`scripts/check --sanitize bench/hostile.py`). Exits with 1 if there is a failure.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from multiprocessing import get_context
from operator import iadd
from pathlib import Path
from random import Random
from typing import Any, Self

from shared.report import DATA, machine, publish, table
from shared.small_files import small_files

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer

REAL = {
    "gpt2/tokenizer.json": "huggingface",
    "llama-2/tokenizer.json": "huggingface",
    "t5-small/tokenizer.json": "huggingface",
    "bert-base-uncased/tokenizer.json": "huggingface",
    "llama-2/tokenizer.model": "sentencepiece",
    "sp-test-unigram-ja/tokenizer.model": "sentencepiece",
    "openai/gpt2.tiktoken": "tiktoken",
    "mistral-common/tekken_240911.json": "tekken",
    "gguf/ggml-vocab-gpt-2.gguf": "gguf",
    "gguf/ggml-vocab-llama-spm.gguf": "gguf",
    "gguf/ggml-vocab-bert-bge.gguf": "gguf",
}
VALUES: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        1,
        255,
        2**20,
        2**31,
        2**32,
        2**63,
        2**64,
        10**30,
        1.5,
        -1e308,
        "",
        "a",
        "\u2581",
        "\x00",
        "<0x0A>",
    ),
    *([], {}, [[]], [["a", 0]], {"a": 0}, "(" * 300, "a{9999}{9999}", [None] * 9),
]
HUGE = (
    b"\xff" * 4,
    b"\xff" * 8,
    b"\x00" * 8,
    b"\xff\xff\xff\xff\x7f",
    b"\x00\x00\x00\x00\x00\x00\x00\x10",
    b"999999999999",
)
SECONDS, GIBIBYTE = 2.0, 1 << 30
TEXT = "<s>Hello  wörld 東京\u2581 <left>word ﬁ e\u0301👩\u200d💻 12345\n\n"


@dataclass
class Outcome:
    """The outcomes of some mutants of one file."""

    loaded: int = 0
    refused: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)

    def __iadd__(self, other: Outcome) -> Self:
        self.loaded += other.loaded
        self.refused += other.refused
        self.slowest = max(self.slowest, other.slowest)
        self.failures += other.failures
        return self


def mutant(data: bytes, rng: Random) -> bytes:
    """The file, damaged in one to three places; half of all damage is a bit, which leaves most of the file to be read."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        a = rng.randrange(len(data) or 1)
        b = min(len(data), a + rng.choice((1, 2, 4, 8, 10, 100, 1000)))
        match rng.randrange(10):
            case 0:
                data = data[:a]
            case 1:
                data = data[:a] + data[b:]
            case 2:
                data = data[:b] + data[a:]
            case 3:
                at = rng.randrange(len(data) or 1)
                data = data[:at] + data[a:b] + data[at:]
            case 4:
                huge = rng.choice(HUGE)
                data = data[:a] + huge + data[a + len(huge) :]
            case _ if data:
                data = data[:a] + bytes([data[a] ^ 1 << rng.randrange(8)]) + data[a + 1 :]
    return data


def place(root: Any, rng: Random) -> tuple[Any, Any]:
    """A container inside a JSON value and a key of it; those near the root are as likely as the many leaves."""
    value = root
    while True:
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if not (isinstance(value[key], (dict, list)) and value[key] and rng.random() < 0.8):
            return value, key
        value = value[key]


def other_value(data: bytes, rng: Random) -> bytes:
    """Return a JSON file with one or two values replaced: by a listed value, or by one from elsewhere in the file."""
    root = json.loads(data)
    for _ in range(rng.choice((1, 1, 2))):
        value, key = place(root, rng)
        other, other_key = place(root, rng)
        value[key] = copy.deepcopy(rng.choice(VALUES) if rng.random() < 0.5 else other[other_key])
    return json.dumps(root).encode()


def attempt(data: bytes, format: str) -> bool:
    """Load a tokenizer file and use it; return whether it could be loaded."""
    options = {"pattern": r"\p{L}+|\p{N}{1,3}+|\s+", "special_tokens": {"<s>": 5000}} if format == "tiktoken" else {}
    try:
        tok = Tokenizer.from_bytes(data, format, **options)
        encoded = tok.encode_with_offsets(TEXT)  # of a Unigram model without an unknown token, refused here
    except (TokenizerFileError, UnsupportedTokenizerError) as error:
        if not str(error):
            raise AssertionError("an error without a message") from error
        return False
    assert tok.encode_batch([TEXT])[0].tolist() == encoded.ids
    assert all(0 <= token_id < tok.vocab_size for token_id in encoded.ids)
    tok.decode(range(min(tok.vocab_size, 1000)), byte_fallback="huggingface")
    return True


def run(data: bytes, format: str, seed: str, count: int, small: bool) -> Outcome:
    """Try `count` mutants in this process, whose memory may grow by 1 GiB."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # AddressSanitizer maps terabytes
        resource.setrlimit(resource.RLIMIT_AS, (mapped + GIBIBYTE, resource.RLIM_INFINITY))
    outcome = Outcome()
    is_json = data.lstrip()[:1] == b"{"
    for i in range(count):
        rng = Random(f"{seed}/{i}")
        damaged = other_value(data, rng) if is_json and small and rng.random() < 0.8 else mutant(data, rng)
        start = time.process_time()
        try:
            loaded = attempt(damaged, format)
        except Exception:  # noqa: BLE001 - any other error is a finding
            outcome.failures.append(f"seed {seed}/{i}: {traceback.format_exc(limit=-3)}")
            continue
        seconds = time.process_time() - start
        outcome.slowest = max(outcome.slowest, seconds)
        outcome.loaded += loaded
        outcome.refused += not loaded
        if small and seconds > SECONDS and "libasan" not in os.environ.get("LD_PRELOAD", ""):
            outcome.failures.append(f"seed {seed}/{i}: {seconds:.1f} s")
    return outcome


def files(small: int, real: int) -> Iterator[tuple[str, str, bytes, int, bool]]:
    """Name, format, content, number of mutants, and whether the file is a small one."""
    made = small_files()
    formats = [format for format, _ in made.values()]
    for name, (format, data) in made.items():
        yield name, format, data, -(-small // formats.count(format)), True
    for name, format in REAL.items():
        path = DATA / "tokenizers" / name
        if real and path.exists():
            yield name, format, path.read_bytes(), real, False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=20_000, metavar="N", help="mutants of small files, a format")
    parser.add_argument("--real", type=int, default=200, metavar="N", help="mutants of each real file")
    parser.add_argument("--only", default="", metavar="NAME", help="only files whose name contains NAME")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (one a core)")
    parser.add_argument("--seed", default="0", metavar="TEXT", help="other mutants")
    options = parser.parse_args()
    outcomes: dict[str, Outcome] = {}
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        waiting = []
        for name, format, data, count, small in files(options.small, options.real):
            if options.only not in name:
                continue
            outcomes[name] = Outcome()
            part = max(1, -(-count // 8))
            for start in range(0, count, part):
                seed = f"{options.seed}/{name}/{start}"
                waiting.append((name, pool.submit(run, data, format, seed, min(part, count - start), small)))
        for name, future in waiting:
            outcomes[name] += future.result()
    shown = {name: outcome for name, outcome in outcomes.items() if name not in REAL}
    if real := [outcome for name, outcome in outcomes.items() if name in REAL]:
        shown[f"{len(real)} real files"] = reduce(iadd, real, Outcome())
    rows = [
        (name, f"{o.loaded:,}", f"{o.refused:,}", f"{o.slowest:.2f}", str(len(o.failures))) for name, o in shown.items()
    ]
    text = table(("file", "loaded", "refused", "slowest, s", "failures"), rows)
    publish("hostile", f"{text}\n\n{machine()}")
    failures = [f"{name}, {failure}" for name, o in outcomes.items() for failure in o.failures]
    for failure in failures[:20]:
        print(f"\n{failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
