"""The CPU beside the device: batches by the number of threads, with what they cost, and the way to pinned memory."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context

import numpy as np
from device.clock import Bench, Row, Rows
from device.peers import CL100K, Batch, batch_texts, median_seconds
from shared import peers
from shared.report import DATA

from tokenweir.encode._core import Documents

LIBRARIES = ("tokenweir", "gigatoken", "fastokens")
THREADS = (1, 4, 8, 16)
BATCHES = {"1024 x 2 KB": (1024, 2048), "64 MB": (1024, 65536)}


def threads(bench: Bench) -> Rows:
    """Batches by libraries on the CPU, cl100k, by threads: GB/s, and of one call the milliseconds, those of CPU time, and the
    page faults. Then GB/s of copying 64 MiB of texts into pinned memory.
    """
    cores = len(os.sched_getaffinity(0))
    numbers = [n for n in THREADS if n <= cores][: 1 if bench.smoke else None]
    for language in ("English", "Chinese")[: 1 if bench.smoke else None]:
        batches = {name: bench.batch(language, *size) for name, size in BATCHES.items()}
        for n in numbers:
            for library in filter(find_spec, LIBRARIES):
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    rows = pool.submit(_costs, library, n, batches, bench.repeats).result()
                for name, row in rows.items():
                    yield f"{name}, {language}, {library}, {n}", row
    texts = bench.texts("English", 1024, 65536)
    documents, pinned = Documents(texts), bench.device.pinned(sum(map(len, map(str.encode, texts))))
    for n in (*numbers, 0):
        seconds = bench.seconds(partial(documents.copy, 0, len(texts), pinned, n))
        yield f"copy, {n or 'the default'}", {"GB/s": pinned.nbytes / seconds / 1e9}


def _costs(library: str, threads: int, batches: dict[str, Batch], repeats: int) -> dict[str, Row]:
    """Measure a library in a process of its own, with as many cores as threads."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    peer = peers.LIBRARIES[library](DATA / "tokenizers" / CL100K, threads)
    if peer is None:
        return {}
    found: dict[str, Row] = {}
    for name, batch in batches.items():
        texts = batch_texts(batch)
        run: Callable[[], object] = partial(peer.batch, texts)
        seconds = median_seconds(run, repeats)
        before, wall = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        run()
        wall = time.perf_counter() - wall
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu = np.subtract((after.ru_utime, after.ru_stime), (before.ru_utime, before.ru_stime)).sum()
        found[name] = {
            "GB/s": sum(len(text.encode()) for text in texts) / seconds / 1e9,
            "wall, ms": wall * 1e3,
            "CPU, ms": float(cpu) * 1e3,
            "page faults": f"{after.ru_minflt - before.ru_minflt:,}",
        }
    return found
