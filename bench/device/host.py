"""The CPU beside the device: batches by the number of threads, with what they cost, and the way to pinned memory."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from device.clock import Bench, Row, Rows
from device.peers import CL100K, LIMIT, Batch, batch_texts, median_seconds
from shared import peers
from shared.processes import apart
from shared.report import DATA

from tokenweir.encode._core import Documents

LIBRARIES = ("tokenweir", "gigatoken", "fastokens")
THREADS = (1, 4, 16)
BATCHES = {"2 MB": (1024, 2048), "64 MB": (1024, 65536)}
INSTRUCTIONS = {"avx512": "avx512_vbmi2", "avx2": "avx2", "neon": "asimd", "portable": ""}
"""Values of TOKENWEIR_SCANNER, and the flag of the processors that have them."""


def threads(bench: Bench) -> Rows:
    """Batches by libraries on the CPU, cl100k, by threads, and ours by the sets of instructions that the processor has: GB/s,
    and of one call the milliseconds, those of CPU time, the share of these that is the system's, and the page faults.
    """
    cpuinfo = Path("/proc/cpuinfo")
    known = cpuinfo.read_text() if cpuinfo.exists() else ""
    ways = [("tokenweir", instructions) for instructions, flag in INSTRUCTIONS.items() if flag in known]
    ways += [(library, "") for library in LIBRARIES if library != "tokenweir" and find_spec(library)]
    cores = len(os.sched_getaffinity(0))
    for language in ("English", "Chinese", "code")[: 1 if bench.smoke else None]:
        batches = {name: bench.batch(language, *size) for name, size in BATCHES.items()}
        for n in [n for n in THREADS if n <= cores][: 1 if bench.smoke else None]:
            for library, instructions in ways:
                rows = apart(_costs, library, instructions, n, batches, bench.repeats)
                who = f"{library} {instructions}".strip()
                for name, row in rows.items():
                    yield f"{name}, {language}, {who}, {n}", row


def pinned(bench: Bench) -> Rows:
    """GB/s of copying 64 MiB of texts into pinned memory, by threads."""
    texts = bench.texts("English", 1024, 65536)
    documents, memory = Documents(texts), bench.device.pinned(sum(map(len, map(str.encode, texts))))
    for n in (*[n for n in THREADS if n <= len(os.sched_getaffinity(0))], 0):
        seconds = bench.seconds(partial(documents.copy, 0, len(texts), memory, n))
        yield f"copy, {n or 'the default'}", {"GB/s": memory.nbytes / seconds / 1e9}


def _costs(library: str, instructions: str, threads: int, batches: dict[str, Batch], repeats: int) -> dict[str, Row]:
    """Measure a library in a process of its own, with as many cores as threads."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    if instructions:
        os.environ["TOKENWEIR_SCANNER"] = instructions
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    peer = peers.LIBRARIES[library](DATA / "tokenizers" / CL100K, threads)
    if peer is None:
        return {}
    found: dict[str, Row] = {}
    for name, batch in batches.items():
        texts = batch_texts(batch)
        run: Callable[[], object] = partial(peer.batch, texts)
        seconds = median_seconds(run, repeats)
        runs = max(1, min(repeats, int(LIMIT / seconds)))
        before, wall = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        for _ in range(runs):
            run()
        wall = time.perf_counter() - wall
        after = resource.getrusage(resource.RUSAGE_SELF)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        found[name] = {
            "GB/s": sum(len(text.encode()) for text in texts) / seconds / 1e9,
            "wall, ms": wall / runs * 1e3,
            "CPU, ms": (user + system) / runs * 1e3,
            "system's, %": 100 * system / max(user + system, 1e-9),
            "page faults": f"{(after.ru_minflt - before.ru_minflt) // runs:,}",
        }
    return found
