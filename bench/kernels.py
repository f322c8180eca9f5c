"""Work of the GPU encoder's kernels for a byte of text, counted without a GPU; and the time that follows from it.

    python bench/kernels.py [--now FILE] [--before FILE] [--write]
    python bench/kernels.py --json >FILE

The kernels run on the tests' shim, instrumented by g++ (bench/device/counters.cpp). It counts what warps do: a step of one is a
place in the code that its lanes pass the same number of times since the last barrier. Columns:

- instructions: of a warp, in the code that g++ makes of the kernel for x86-64 at -O2. NVIDIA's compiler makes other code of
  it, so only ratios mean something.
- sectors: blocks of 32 bytes of device memory that a warp's accesses touch; "of blocks" are different ones in each block,
  which is what a cache as large as needed leaves for the next level.
- in a row: for a batch of 4 KB, the steps of the longest thread between barriers, summed over these: instructions, and
  loads from device memory and from shared memory. A kernel that has one block takes as long as these do.
- code: the kernel's instructions in NVRTC's code for sm_90.
- at least: microseconds for 64 MB on an H100 if its issue slots, or its second-level cache, were full all the time: the time of an
  earlier commit, times the share of it that they were full then, times the ratio of instructions or of sectors of blocks; the
  greater of both. As before: if the busier of both were as full as it was then. Lanes that wait for one another in nested
  loops are not counted.

--json prints the counts. With the PYTHONPATH of an earlier commit they are that commit's kernels', for --before here; the figures
of `STAGES` are those of 4696030b.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from device.clock import on_device
from device.counted import BLOCKS, MEMORY, CountedDevice, Counts, compiled
from device.peers import CL100K, Batch, batch_texts
from shared.report import DATA, arguments, machine, publish, table

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.modes import batch, exact
from tokenweir.gpu.modes.exact import ByteLevelMode

LANGUAGES = ("English", "Chinese")
LARGE, SMALL = (8, 65536), (1, 4096)
"""Texts, and bytes of each. The large batch is divided as one of 64 MB is, into 64 tiles of 8 KB; what a launch costs whatever
its batch still counts.
"""

_SMALL_LIMITS = ((batch, "SMALL_BYTES"), (exact, "BY_WARPS_BYTES"))

KERNELS = (
    "cut_pieces",
    "cut_oversized",
    "encode_pieces",
    "merge_short_pieces",
    "merge_pieces",
    "count_ids",
    "collect_ids",
)


class Measured(NamedTuple):
    """Microseconds of kernels for 64 MB on an H100, and the share of them that issue slots and the second-level cache were full."""

    time: float
    issue: float
    cache: float


STAGES = {
    "cut": (
        ("cut_pieces", "cut_oversized"),
        {"English": Measured(748, 0.84, 0.05), "Chinese": Measured(1365, 0.83, 0.02)},
    ),
    "encode and merge": (
        ("encode_pieces", "merge_short_pieces", "merge_pieces"),
        {"English": Measured(1142, 0.29, 0.55), "Chinese": Measured(9331, 0.25, 0.51)},
    ),
    "collect": (("collect_ids",), {"English": Measured(268, 0.04, 0.89), "Chinese": Measured(677, 0.02, 0.70)}),
}
"""Kernels that do the work of one another in different commits, and how they ran at 4696030b, by its profile and bench/gpu.json."""

Kernel = dict[str, float]


def counted(language: str, size: tuple[int, int]) -> dict[str, Kernel]:
    """Count the kernels of exact mode, cl100k, on a batch: for each kernel the counts, and for a byte of text."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / CL100K)
    texts = batch_texts(Batch(language, *size))
    n = sum(len(text.encode()) for text in texts)
    found: dict[str, Kernel] = {}
    for flags in (MEMORY, BLOCKS):
        device = CountedDevice(flags)
        mode = ByteLevelMode(tok, device)
        device.counts.clear()
        with ExitStack() as stack:
            for module, limit in _SMALL_LIMITS if size == LARGE else ():
                stack.enter_context(patch.object(module, limit, 0, create=True))  # earlier commits have none
            mode.encode(*on_device(device, texts))
        for kernel, counts in device.counts.items():
            row = found.setdefault(kernel, dict.fromkeys(Counts._fields, 0.0))
            for name, value in counts._asdict().items():
                row[name] += value if name.startswith("longest") else value / n
    return found


def measure() -> dict[str, Any]:
    """Count both batches of each language, and the instructions of the code."""
    batches = {
        language: {"large": counted(language, LARGE), "small": counted(language, SMALL)} for language in LANGUAGES
    }
    return {**batches, "code": compiled("sm_90")}


def tables(now: dict[str, Any], before: dict[str, Any]) -> str:
    """The tables: the cost of a byte, the longest thread of a small batch, and the expected times."""
    costs, chains = [], []
    for language in LANGUAGES:
        for kernel in KERNELS:
            large, small = (
                [found[language][size].get(kernel) if found else None for found in (now, before)]
                for size in ("large", "small")
            )
            if not any(large):
                continue
            name = f"{language}, {kernel}"
            fields = (("instructions", ".2f"), ("sectors", ".3f"), ("of_blocks", ".3f"))
            costs.append((name, *(cell for field in fields for cell in _pair(large, *field))))
            fields = tuple((f"longest_{what}", ".0f") for what in ("instructions", "loads", "shared"))
            code = (str(found["code"].get(kernel, "")) if found else "" for found in (now, before))
            chains.append((name, *(cell for field in fields for cell in _pair(small, *field)), *code))
    heads = ("instructions", "before", "sectors", "before", "sectors of blocks", "before")
    in_a_row = (
        "instructions",
        "before",
        "loads from memory",
        "before",
        "from shared memory",
        "before",
        "code",
        "before",
    )
    found = [table(("a byte of 512 KB", *heads), costs), table(("in a row, 4 KB", *in_a_row), chains)]
    if before:
        times = [_expected(language, stage, now, before) for language in LANGUAGES for stage in STAGES]
        found.append(
            table(("64 MB, us", "before, H100", "instructions", "sectors of blocks", "at least", "as before"), times)
        )
    return "\n\n".join(found)


def _pair(both: list[Kernel | None], field: str, form: str) -> tuple[str, ...]:
    return tuple("" if found is None else format(found[field], form) for found in both)


def _expected(language: str, stage: str, now: dict[str, Any], before: dict[str, Any]) -> tuple[str, ...]:
    kernels, of_language = STAGES[stage]
    measured = of_language[language]
    ratios = []
    for field in ("instructions", "of_blocks"):
        new, old = (
            sum(found[language]["large"][kernel][field] for kernel in kernels if kernel in found[language]["large"])
            for found in (now, before)
        )
        ratios.append(new / old)
    least = measured.time * max(measured.issue * ratios[0], measured.cache * ratios[1])
    times = measured.time, least, least / max(measured.issue, measured.cache)
    took, at_least, as_before = (f"{time:,.0f}" for time in times)
    return f"{language}, {stage}", took, *(f"{ratio:.2f}" for ratio in ratios), at_least, as_before


def main() -> None:
    options = arguments(
        __doc__,
        before={"type": Path, "metavar": "FILE", "help": "counts of an earlier commit, by --json"},
        now={"type": Path, "metavar": "FILE", "help": "counts of this commit, by --json, instead of counting"},
        json=(False, "print the counts alone"),
    )
    before = json.loads(options.before.read_text("utf-8")) if options.before else {}
    now = json.loads(options.now.read_text("utf-8")) if options.now else measure()
    if options.json:
        print(json.dumps(now))
    else:
        publish("kernels", f"{tables(now, before)}\n\n{machine()}", options.write)


if __name__ == "__main__":
    main()
