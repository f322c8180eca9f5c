"""Growth of speed with the size of documents, the number of texts and the cores, beside the fastest peers.

    python bench/scaling.py [--rounds 3] [--largest 100] [--write]

English (War and Peace, again and again, so that a cache knows all its words), cl100k. Each library on each number of
cores runs in a process of its own, which is bound to them. MB/s by the clock, the best of the rounds; ids are compared by
a checksum. --write draws docs/images/scaling.svg.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from shared.peers import LIBRARIES, ids_of
from shared.processes import apart
from shared.report import DATA, ROOT, arguments, machine, publish, table
from shared.texts import TEXTS

CL100K = DATA / "tokenizers" / "openai" / "cl100k_base.tiktoken"
DOCUMENTS = (1, 10, 100, 1_000, 10_000, 100_000)  # KB
BATCHES = (1, 4, 16, 64, 256, 1024, 4096)  # of 1 KB
PEERS = ("tokenweir", "gigatoken", "fastokens")

Rates = dict[str, float]
"""MB/s by measurement."""


def text_of(kilobytes: int) -> str:
    """English of so many bytes."""
    text = "".join(TEXTS["English"]()).encode()
    size = kilobytes * 1000
    return (text * (size // len(text) + 1))[:size].decode(errors="ignore")


def rates(library: str, cores: int, rounds: int, largest: int) -> tuple[Rates, dict[str, int]]:
    """The speed of a library for each document and batch, and a checksum of the ids of the documents."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    os.environ["RAYON_NUM_THREADS"] = str(cores)
    peer = LIBRARIES[library](CL100K, cores)
    if peer is None:
        raise ValueError(f"{library} does not read {CL100K.name}")

    def best(work: Callable[[], object], size: int) -> float:
        taken = []
        for _ in range(rounds):
            start = time.perf_counter()
            for _ in range(again := max(1, 200_000 // size)):
                work()
            taken.append((time.perf_counter() - start) / again)
        return size / min(taken) / 1e6

    found: Rates = {}
    ids: dict[str, int] = {}
    for kilobytes in (size for size in DOCUMENTS if size <= largest * 1000):
        text = text_of(kilobytes)
        found[name := f"document of {kilobytes:,} KB"] = best(lambda text=text: peer.array(text), len(text.encode()))
        ids[name] = zlib.crc32(ids_of(peer.array(text)).tobytes())
    whole = text_of(max(BATCHES))
    for n in BATCHES:
        texts = [whole[begin * 1000 : begin * 1000 + 1000] for begin in range(n)]
        found[f"{n:,} of 1 KB"] = best(lambda texts=texts: peer.batch(texts), sum(len(t.encode()) for t in texts))
    return found, ids


def draw(measured: dict[str, Rates], path: Path) -> None:
    """The two curves: documents by size, batches by number."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, known, label in zip(
        figure.subplots(1, 2),
        ((DOCUMENTS, "document of {:,} KB"), (BATCHES, "{:,} of 1 KB")),
        ("KB of one document", "texts of 1 KB"),
        strict=True,
    ):
        for column, found in measured.items():
            points = [(at, found[known[1].format(at)]) for at in known[0] if known[1].format(at) in found]
            axes.plot(*zip(*points, strict=True), marker="o", label=column)
        axes.set(xscale="log", yscale="log", xlabel=label, ylabel="MB/s")
        axes.legend(fontsize="small")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    options = arguments(
        __doc__,
        rounds=(3, "of which the best counts (3)"),
        largest=(100, "the largest document (100)"),
    )
    measured: dict[str, Rates] = {}
    sums: dict[str, dict[str, int]] = {}
    for cores in sorted({1, len(os.sched_getaffinity(0))}):
        for library in PEERS:
            column = f"{library}, {cores}"
            measured[column], sums[column] = apart(rates, library, cores, options.rounds, options.largest)
    if len(different := {column for column, found in sums.items() if found != sums["tokenweir, 1"]}):
        print(f"other ids than ours: {', '.join(sorted(different))}")
    rows = [(name, *(f"{found[name]:.1f}" for found in measured.values())) for name in measured["tokenweir, 1"]]
    result = f"MB/s by library and cores.\n\n{table(('', *measured), rows)}\n\n{machine()}"
    publish("scaling", result)
    if options.write:
        draw(measured, ROOT / "docs" / "images" / "scaling.svg")


if __name__ == "__main__":
    main()
