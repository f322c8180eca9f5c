"""What the GPU encoder is measured beside: tiktoken, tokenizers and our own CPU encoder, each in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import cycle, islice
from multiprocessing import get_context
from statistics import median
from typing import Any, NamedTuple

import tiktoken
import tokenizers
from report import DATA
from texts import TEXTS

from tokenweir.encode.tokenizer import Tokenizer

GPT2, CL100K = "gpt2/tokenizer.json", "openai/cl100k_base.tiktoken"


class Batch(NamedTuple):
    """So many texts of so many bytes each."""

    language: str
    n: int
    size: int


def median_seconds(run: Callable[[], object], most: int) -> float:
    """Median wall time of a run, of as many as take two seconds and at most so many; the first is left out if it can be."""
    times: list[float] = []
    while sum(times) < 2 and len(times) <= most:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times[1:] or times)


def batch_texts(batch: Batch) -> list[str]:
    """Texts of about so many bytes each, all different while the corpus lasts."""
    data = "".join(TEXTS[batch.language]()).encode()
    places = islice(cycle(range(0, len(data) - batch.size, batch.size)), batch.n)
    return [data[place : place + batch.size].decode("utf-8", "ignore") for place in places]


def peer_seconds(library: str, path: str, threads: int, batches: Sequence[Batch]) -> list[float]:
    """Median wall time of a library for each batch, of as many runs as take two seconds; in a process of its own."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    file = DATA / "tokenizers" / path
    run: Callable[[list[str]], object]
    if library == "tiktoken":
        spec: Any = Tokenizer.from_file(file).spec
        pattern, ranks = spec.pre_tokenizer.pattern.Regex, dict(spec.model.ranks)
        encoding = tiktoken.Encoding(path, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        run = partial(encoding.encode_ordinary_batch, num_threads=threads)
    elif library == "tokenizers":
        run = partial(tokenizers.Tokenizer.from_file(str(file)).encode_batch_fast, add_special_tokens=False)
    else:
        run = partial(Tokenizer.from_file(file).encode_batch, threads=threads)
    medians = []
    for batch in batches:
        medians.append(median_seconds(partial(run, batch_texts(batch)), 20))
    return medians


def beside(threads: Sequence[int], vocabulary: str, batches: Sequence[Batch]) -> dict[str, list[float]]:
    """Seconds for each batch of the peers that read a vocabulary, and of our own CPU, by their numbers of threads."""
    files = {"tiktoken": "openai/gpt2.tiktoken", "tokenizers": GPT2, "our CPU": GPT2}
    if vocabulary == CL100K:
        files = {"tiktoken": CL100K, "our CPU": CL100K}
    seconds = {}
    for library, path in files.items():
        for n in threads:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                seconds[f"{library}, {n}"] = pool.submit(peer_seconds, library, path, n, batches).result()
    return seconds
