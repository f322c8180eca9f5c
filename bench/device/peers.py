"""The peers of the GPU encoder: libraries on the CPU, each in a process of its own with as many cores as threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from statistics import median
from typing import NamedTuple

from shared import peers
from shared.processes import apart
from shared.report import DATA
from shared.texts import TEXTS

GPT2, CL100K = "gpt2/tokenizer.json", "openai/cl100k_base.tiktoken"
LLAMA2, BERT = "llama-2/tokenizer.json", "bert-base-uncased/tokenizer.json"
T5, SENTENCEPIECE_JA = "t5-small/tokenizer.json", "sp-test-unigram-ja/tokenizer.model"

READ = {
    GPT2: {
        "tiktoken": "openai/gpt2.tiktoken",
        "tokenizers": GPT2,
        "gigatoken": GPT2,
        "fastokens": GPT2,
        "tokenweir": GPT2,
    },
    CL100K: {"tiktoken": CL100K, "gigatoken": CL100K, "fastokens": CL100K, "tokenweir": CL100K},
    LLAMA2: {"tokenizers": LLAMA2, "tokenweir": LLAMA2},
    BERT: {"tokenizers": BERT, "tokenweir": BERT},
    T5: {"tokenizers": T5, "tokenweir": T5},
}
"""For each vocabulary the libraries that read it, ours on the CPU among them, and from which file."""

LIMIT = 0.3
"""Seconds of the runs whose median is a time."""

LARGE = 16 << 20
"""Bytes of a batch that is for several threads."""


class Batch(NamedTuple):
    """So many texts of so many bytes each."""

    language: str
    n: int
    size: int


def median_seconds(run: Callable[[], object], most: int) -> float:
    """Median wall time of a run after one that warms up: of as many as take `LIMIT`, at most `most`, at least one."""
    run()
    times: list[float] = []
    while not times or (sum(times) < LIMIT and len(times) < most):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def batch_texts(batch: Batch) -> list[str]:
    """Texts of about so many bytes each, all different while the corpus lasts."""
    data = "".join(TEXTS[batch.language]()).encode()
    places = islice(cycle(range(0, len(data) - batch.size, batch.size)), batch.n)
    return [data[place : place + batch.size].decode("utf-8", "ignore") for place in places]


def peer_rates(library: str, path: str, threads: int, batches: Sequence[Batch], repeats: int) -> list[float]:
    """GB/s of a library for each batch, by the median wall time; in a process of its own."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    file = DATA / "tokenizers" / path
    read = peers.reference if library in ("tiktoken", "tokenizers") else peers.LIBRARIES[library]
    peer = read(file, threads)
    if peer is None:
        raise ValueError(f"{library} does not read {path}")
    rates = []
    for batch in batches:
        texts = batch_texts(batch)
        size = sum(len(text.encode()) for text in texts)
        rates.append(size / median_seconds(partial(peer.batch, texts), repeats) / 1e9)
    return rates


def beside(
    threads: Sequence[int], vocabulary: str, batches: Mapping[str, Batch], repeats: int
) -> Iterator[tuple[str, dict[str, float]]]:
    """GB/s for each batch of the peers that read a vocabulary, and of our own CPU, one after the other: the batch's name and
    the number of the library by that of its threads. One thread goes without what would take it half a minute, and is
    as fast on less.
    """
    for n in threads:
        some = {name: batch for name, batch in batches.items() if n > 1 or batch.n * batch.size < LARGE}
        for library, path in READ[vocabulary].items():
            rates = apart(peer_rates, library, path, n, [*some.values()], repeats)
            yield from ((name, {f"{library}, {n}": rate}) for name, rate in zip(some, rates, strict=True))
