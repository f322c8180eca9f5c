"""Speed of encoding beside tiktoken, tokenizers and sentencepiece. Prints tables.

    python bench/encode_references.py [throughput] [adversarial] [load] [--only cl100k] [--rounds 3]

Every number comes from a process of its own, so that cold means cold: the tokenizer is loaded, the text has not been
seen. Warm is the better of the two passes that follow. The libraries' processes take turns and a number is the best of
all rounds. Time is CPU time of the process. MB are 10^6 bytes of
UTF-8. A ratio is against the faster of the peer's ways; on a busy machine, take none below 1.15 for a difference.
The run fails if two libraries' ids differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np
import tokenizers
from rich.console import Console
from rich.progress import track
from shared.report import DATA, heading, machine, publish, table
from shared.texts import LONG, LONG_SIZES, TEXTS, megabytes

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify.references import HuggingFace, OpenAI, SentencePiece, Tekken

TOKENIZERS = {
    "cl100k_base": "openai/cl100k_base.tiktoken",
    "o200k_base": "openai/o200k_base.tiktoken",
    "llama-3.1": "llama-3.1/tokenizer.json",
    "qwen3": "qwen3/tokenizer.json",
    "gpt2": "gpt2/tokenizer.json",
    "llama-2": "llama-2/tokenizer.json",
    "llama-2.model": "llama-2/tokenizer.model",
    "gemma": "gemma/tokenizer.json",
    "t5-small": "t5-small/tokenizer.json",
    "unigram-ja.model": "sp-test-unigram-ja/tokenizer.model",
    "bert": "bert-base-uncased/tokenizer.json",
    "tekken": "mistral-common/tekken_240911.json",
}
GGUF = {
    "llama-3": "gguf/ggml-vocab-llama-bpe.gguf",
    "qwen2": "gguf/ggml-vocab-qwen2.gguf",
    "llama-2": "gguf/ggml-vocab-llama-spm.gguf",
    "bge": "gguf/ggml-vocab-bert-bge.gguf",
}

# -- the ways to encode ------------------------------------------------------------------------------------------------

Encode = Callable[[list[str]], Iterable[Any]]  # yields the ids of each text and keeps none, as a server would


def ours(method: str, path: Path) -> Encode:
    encode = getattr(Tokenizer.from_file(path, cache=False), method)
    return lambda texts: map(encode, texts)


def openai(method: str, path: Path) -> Encode:
    encode = getattr(OpenAI.from_file(path).encoding, method)
    return lambda texts: map(encode, texts)


def sentencepiece(_: str, path: Path) -> Encode:
    model = SentencePiece(path).model
    return lambda texts: map(model.EncodeAsNumpy, texts)


def mistral_common(_: str, path: Path) -> Encode:
    tok = Tekken(path)
    return lambda texts: (tok.encode_plain([text])[0] for text in texts)


def hugging_face(_: str, path: Path) -> Encode:
    tok = tokenizers.Tokenizer.from_file(str(path))
    return lambda texts: (tok.encode_batch_fast([text])[0].ids for text in texts)  # faster than its `encode`


WAYS: dict[str, Callable[[str, Path], Encode]] = {
    "encode_array": ours,
    "encode": ours,
    "encode_ordinary": openai,
    "encode_to_numpy": openai,
    "sentencepiece": sentencepiece,
    "mistral-common": mistral_common,
    "tokenizers": hugging_face,
}


def peers(tokenizer: str) -> tuple[str, ...]:
    """The ways in which the reference library encodes one text at a time."""
    match Path(TOKENIZERS[tokenizer]).suffixes[-1], Path(TOKENIZERS[tokenizer]).stem[:6]:
        case ".tiktoken", _:
            return ("encode_ordinary", "encode_to_numpy")
        case ".model", _:
            return ("sentencepiece",)
        case _, "tekken":
            return ("mistral-common",)
    return ("tokenizers",)


# -- measuring ---------------------------------------------------------------------------------------------------------


class Job(NamedTuple):
    """One measurement: a tokenizer, a way to encode, and the texts."""

    tokenizer: str
    way: str
    text: str


class Seconds(NamedTuple):
    """The results; `ids` is a checksum of the ids."""

    load: float
    cold: float
    warm: float
    ids: int


def measure(job: Job) -> Seconds:
    """In a process of its own: load the tokenizer, encode the texts for the first time, and again."""
    os.environ["RAYON_NUM_THREADS"] = "1"  # `tokenizers` reads it when it first encodes a batch
    clock = time.process_time
    texts = TEXTS[job.text]()
    start = clock()
    encode = WAYS[job.way](job.way, DATA / "tokenizers" / TOKENIZERS[job.tokenizer])
    deque(encode(["Hi"]), maxlen=0)  # what a library puts off until it is first used is a part of loading
    load = clock() - start
    passes = []
    for _ in range(3):
        start = clock()
        deque(encode(texts), maxlen=0)
        passes.append(clock() - start)
    checksum = 0
    for ids in encode(texts):
        checksum = zlib.crc32(np.asarray(ids, np.int32).tobytes(), checksum)
    return Seconds(load, passes[0], min(passes[1:]), checksum)


def best_of(rounds: int, jobs: Sequence[Job]) -> dict[Job, Seconds]:
    """The best of all rounds for each job; the jobs take turns.

    Raises:
        RuntimeError: If two libraries give different ids.

    """
    results: dict[Job, list[Seconds]] = {job: [] for job in jobs}
    turns = [*jobs] * rounds
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        measured = pool.map(measure, turns)
        console = Console(stderr=True)
        bar = track(measured, "measuring", len(turns), console=console, disable=not console.is_terminal)
        for job, seconds in zip(turns, bar, strict=True):
            results[job].append(seconds)
    checksums: dict[tuple[str, str], int] = {}
    for job, several in results.items():
        for seconds in several:
            if checksums.setdefault((job.tokenizer, job.text), seconds.ids) != seconds.ids:
                raise RuntimeError(f"{job.way} gives other ids than the others for {job.text} with {job.tokenizer}")
    return {job: Seconds(*map(min, zip(*several, strict=True))) for job, several in results.items()}


# -- the tables --------------------------------------------------------------------------------------------------------


def three(best: dict[Job, Seconds], name: str, text: str) -> tuple[Seconds, Seconds, Seconds]:
    """Ours to an array, ours to a list, and the peer's best."""
    array, ids, *theirs = (best[Job(name, way, text)] for way in ("encode_array", "encode", *peers(name)))
    return array, ids, Seconds(*map(min, zip(*theirs, strict=True)))


def one_by_one(names: Sequence[str], texts: Sequence[str], rounds: int) -> dict[Job, Seconds]:
    ways = {name: ("encode_array", "encode", *peers(name)) for name in names}
    return best_of(rounds, [Job(name, way, text) for text in texts for name in names for way in ways[name]])


def throughput(names: Sequence[str], rounds: int) -> str:
    """One text at a time, in documents of 30,000 characters. MB/s of CPU time of `encode_array`, ours / peer = ratio."""
    texts = ("English", "Chinese", "Japanese", "code")
    best = one_by_one(names, texts, rounds)
    rows = []
    for name in names:
        row = [name]
        for text in texts:
            size = megabytes(text)
            ours, _, peer = three(best, name, text)
            for mine, its in ((ours.cold, peer.cold), (ours.warm, peer.warm)):
                row.append(f"{size / mine:.1f}/{size / its:.1f} = {its / mine:.1f}x")
        rows.append(row)
    return table(("", *(f"{text}, {state}" for text in texts for state in ("cold", "warm"))), rows)


def adversarial(names: Sequence[str], rounds: int) -> str:
    """One text of 1 MB that is hard to cut, cold: how many times the time of 1 MB of English."""
    kinds = ["plain", *(f"{kind} {LONG_SIZES[-1]}" for kind in LONG)]
    best = best_of(rounds, [Job(name, "encode_array", kind) for kind in kinds for name in names])
    rows = []
    for name in names:
        plain, *hard = (best[Job(name, "encode_array", kind)].cold for kind in kinds)
        rows.append((name, f"{plain * 1e3:.0f} ms", *(f"{seconds / plain:.1f}" for seconds in hard)))
    return table(("", "English", *LONG), rows)


def seconds_to_load(read: Callable[[Path], object], path: Path) -> float:
    start = time.process_time()
    read(path)
    return time.process_time() - start


def load_gguf(path: Path) -> None:
    Tokenizer.from_file(path).encode("Hi")


def read_gguf(path: Path) -> None:
    """Read the tokens by the gguf library, which does not build a tokenizer from them."""
    gguf.GGUFReader(path).fields["tokenizer.ggml.tokens"].contents()


def load(names: Sequence[str], rounds: int) -> str:
    """From the file to the first ids. Milliseconds of CPU time, imports not counted. Beside GGUF files, what the gguf
    library takes to read their metadata.
    """
    best = one_by_one(names, ["Hi"], rounds)
    rows = []
    for name, file in GGUF.items():
        path = DATA / "tokenizers" / file
        with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
            mine = min(pool.map(seconds_to_load, [load_gguf] * rounds, [path] * rounds))
            theirs = pool.submit(seconds_to_load, read_gguf, path).result()
        rows.append((f"{name}.gguf", f"{mine * 1e3:.0f}", f"{theirs * 1e3:.0f}", f"{theirs / mine:.0f}x"))
    for name in names:
        array, ids, peer = three(best, name, "Hi")
        mine = min(array.load, ids.load)
        rows.append((name, f"{mine * 1e3:.0f}", f"{peer.load * 1e3:.0f}", f"{peer.load / mine:.1f}x"))
    return table(("", "tokenweir", "peer", "ratio"), rows)


SECTIONS = {section.__name__: section for section in (throughput, adversarial, load)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"any of {', '.join(SECTIONS)} (all)")
    parser.add_argument("--only", default="", metavar="NAME", help="only tokenizers whose name contains NAME")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each number (3)")
    options = parser.parse_args()
    names = [name for name in TOKENIZERS if options.only in name]
    if not names or not SECTIONS.keys() >= set(options.sections):
        parser.error(f"tokenizers are {', '.join(TOKENIZERS)}; sections are {', '.join(SECTIONS)}")
    for title in options.sections or SECTIONS:
        section = SECTIONS[title]
        result = (
            f"{heading(section)}\n\n{section(names, options.rounds)}\n\n{machine()}; {OpenAI.library}, {HuggingFace.library}, "
            f"{SentencePiece.library}, {Tekken.library}"
        )
        publish(title, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
