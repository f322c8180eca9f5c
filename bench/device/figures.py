"""The pictures of BlockBPE's Figures 2 and 3, from the numbers of `device.paper`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

Numbers = Mapping[str, Mapping[str, Any]]  # "strings x bytes" to a column to its value


def draw_merge_times(numbers: Numbers, path: Path, device: str) -> None:
    """Figure 2: the merging kernel's time for each batch, one bar a block size."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    blocks = list(next(iter(numbers.values())))
    width = 0.8 / len(blocks)
    for place, block in enumerate(blocks):
        at = [batch + (place - (len(blocks) - 1) / 2) * width for batch in range(len(numbers))]
        axes.bar(at, [times[block] for times in numbers.values()], width, label=f"{block} a block")
    axes.set_xticks(range(len(numbers)), list(numbers))
    axes.set_xlabel("strings x bytes")
    axes.set_ylabel("merging, ms")
    axes.set_title(f"BlockBPE's merging kernel, GPT-2, {device}")
    axes.legend()
    _save(figure, path)


def draw_throughput(numbers: Numbers, path: Path, device: str) -> None:
    """Figure 3: throughput by length, one picture a number of strings; `d` is the bytes a thread has of 256."""
    counts = sorted({int(batch.split()[0]) for batch in numbers})
    figure = Figure(figsize=(5 * len(counts), 4.5), layout="constrained")
    for axes, count in zip(figure.subplots(1, len(counts), squeeze=False)[0], counts, strict=True):
        rows = {int(batch.split()[-1]): rates for batch, rates in numbers.items() if int(batch.split()[0]) == count}
        for column, value in next(iter(rows.values())).items():
            if isinstance(value, str):
                continue
            axes.plot(list(rows), [rates[column] for rates in rows.values()], marker="o", label=column)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(list(rows), [f"{length}\nd = {length / 256:g}" for length in rows])
        axes.set_xlabel("bytes a string")
        axes.set_ylabel("GB/s, end to end")
        axes.set_title(f"{count} strings, {device}")
    axes.legend(fontsize="small")
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})  # the same numbers make the same file
