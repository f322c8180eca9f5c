"""Speed of the GPU encoder beside tiktoken, tokenizers and our own CPU encoder. Prints tables; --write puts them into
bench/RESULTS.md, the figures into bench/figures and every number into bench/gpu.json.

    python bench/gpu.py [check] [device] [kernels] [figure2] [figure3] [batches] [--write] [--smoke]

Figures 2 and 3 are those of BlockBPE (You, 2025), on whatever GPU there is. Times are medians. Device-only is from text
that lies on the device to ids that lie there; end to end is from a list of str to ids on the device. Every library's
ids are compared once; in blockbpe mode they differ by design. MB and GB are 10^6 and 10^9 bytes of UTF-8.

--smoke runs everything once, on batches of a few hundred bytes, with the kernels on the CPU as in the tests: it shows
that the command works where there is no GPU, and measures nothing.

`check` runs the tests of kernels on the GPU, and a batch of 64 KB under compute-sanitizer if that is there.

Of ../shared/data it wants tokenizers/gpt2/tokenizer.json, tokenizers/openai/{gpt2,cl100k_base}.tiktoken and
corpora/{war-and-peace,zh-hongloumeng}.txt, 12 MB; the tests use more tokenizers if they are there. Without network
(TOKENWEIR_OFFLINE=1 scripts/bench gpu) it wants, among Python's packages or as wheels in .wheels/, CuPy, what tokenweir
and its build depend on, tiktoken, tokenizers, matplotlib, pytest, pytest-asyncio, pytest-timeout and hypothesis.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from gpu_figures import draw_merge_times, draw_throughput
from gpu_peers import CL100K, GPT2, Batch, batch_texts, beside, median_seconds
from report import DATA, ROOT, machine, table, write_between
from texts import TEXTS

from tokenweir.encode.errors import DeviceError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import GpuEncoder
from tokenweir.gpu.blockbpe import BlockBpeBatch
from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.encoder import SLACK
from tokenweir.gpu.exact import ExactBatch

BLOCKS = (256, 512, 1024)
LANGUAGES = ("English", "Chinese", "code")
MERGE_BATCHES = ((64, 2048), (64, 4096), (1024, 128), (1024, 256))
THROUGHPUT_BATCHES = tuple((n, length) for n in (256, 512, 1024) for length in (128, 256, 512, 1024, 2048, 4096))
BATCHES = {"1024 x 2 KB": (1024, 2048), "64 x 4 KB": (64, 4096), "1 x 4 KB": (1, 4096), "64 MB": (1024, 65536)}

Results = dict[str, Any]


# -- clocks ------------------------------------------------------------------------------------------------------------


class Bench:
    """What the sections share: the device, how often a time is taken, and how large the batches are.

    Args:
        smoke: On the CPU, once, and a few bytes a text.

    """

    def __init__(self, *, smoke: bool) -> None:
        self.smoke = smoke
        self.repeats = 1 if smoke else 20
        self.threads = (1,) if smoke else tuple(sorted({1, 4, os.cpu_count() or 1}))
        self.device: Device = _shim() if smoke else CupyDevice()

    def seconds(self, run: Callable[[], object]) -> float:
        """Median wall time of a run, the device's work included, of as many as take two seconds."""

        def timed() -> None:
            run()
            self.device.synchronize()

        self.device.synchronize()
        return median_seconds(timed, 1 if self.smoke else self.repeats)

    def batch(self, language: str, n: int, size: int) -> Batch:
        """A batch, made small if this is only to see that it works."""
        return Batch(language, min(n, 3), min(size, 64)) if self.smoke else Batch(language, n, size)


def _shim() -> Device:
    sys.path.insert(0, str(ROOT / "tests" / "gpu"))
    from shim_device import ShimDevice

    from tokenweir.gpu.kernels import kernel_sources

    return ShimDevice(kernel_sources())


class TimedDevice:
    """A CUDA device that notes how long each kernel runs."""

    def __init__(self, device: Device) -> None:
        import cupy

        self._device, self._event = device, cupy.cuda.Event
        self._elapsed = cupy.cuda.get_elapsed_time
        self._events: list[tuple[str, Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def launch(self, kernel: str, grid: int, block: int, *args: Any) -> None:
        start, end = self._event(), self._event()
        start.record()
        self._device.launch(kernel, grid, block, *args)
        end.record()
        self._events.append((kernel, start, end))

    def milliseconds(self) -> dict[str, float]:
        """The time of each kernel since the last call."""
        self._device.synchronize()
        total: defaultdict[str, float] = defaultdict(float)
        for kernel, start, end in self._events:
            total[kernel] += self._elapsed(start, end)
        self._events.clear()
        return dict(total)


def on_device(device: Device, texts: Sequence[str]) -> tuple[Any, Any]:
    """A batch as the modes take it: its text and offsets."""
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int64)
    return device.to_device(np.frombuffer(b"".join(data) + bytes(SLACK), np.uint8)), device.to_device(offsets)


def kernel_times(bench: Bench, mode: Callable[[Any], Any], texts: Sequence[str]) -> dict[str, float]:
    """Median milliseconds of each kernel of a mode for one batch; without a GPU, the wall time of all."""
    if bench.smoke:
        encoder = mode(bench.device)
        text, offsets = on_device(bench.device, texts)
        return {"all": bench.seconds(lambda: encoder.encode(text, offsets)) * 1e3}
    device: Any = TimedDevice(bench.device)
    encoder = mode(device)
    text, offsets = on_device(device, texts)
    runs = []
    for _ in range(bench.repeats + 3):
        encoder.encode(text, offsets)
        runs.append(device.milliseconds())
    return {kernel: median(run.get(kernel, 0.0) for run in runs[3:]) for kernel in runs[-1]}


# -- the sections ------------------------------------------------------------------------------------------------------


def check(bench: Bench) -> tuple[str, Results]:
    """What runs before anything is timed."""
    tests = "tests/gpu/test_ragged.py" if bench.smoke else "tests/gpu"
    environment = os.environ if bench.smoke else {**os.environ, "REQUIRE_GPU": "1"}
    programs = {tests: [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]}
    if (sanitizer := shutil.which("compute-sanitizer")) and not bench.smoke:
        once = [sys.executable, str(Path(__file__).resolve()), "--once"]
        for tool in ("memcheck", "racecheck", "synccheck"):
            programs[tool] = [sanitizer, "--tool", tool, "--error-exitcode", "1", *once]
    numbers: Results = {}
    for name, program in programs.items():
        run = subprocess.run(program, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
        lines = (run.stdout + run.stderr).strip().splitlines() or [""]
        numbers[name] = {"status": run.returncode, "last line": lines[-1]}
        if run.returncode:
            print("\n".join(lines[-60:]), file=sys.stderr)
    return table(
        ("", "status", "its last line"), [(k, str(v["status"]), v["last line"]) for k, v in numbers.items()]
    ), numbers


def device(bench: Bench) -> tuple[str, Results]:
    """The device alone: copies from the host, and what a launch costs."""
    size = 1 << (10 if bench.smoke else 28)
    pinned, pageable = bench.device.pinned(size), np.zeros(size, np.uint8)
    on_it = bench.device.empty(1024, np.int32), bench.device.zeros(2, np.int64)
    numbers = {
        "copy from pinned memory, GB/s": size / bench.seconds(lambda: bench.device.to_device(pinned)) / 1e9,
        "copy from pageable memory, GB/s": size / bench.seconds(lambda: bench.device.to_device(pageable)) / 1e9,
        "a launch and its end, us": bench.seconds(lambda: _pad(bench.device, on_it)) * 1e6,
        "1,000 launches, us each": bench.seconds(lambda: [_pad(bench.device, on_it) for _ in range(1000)]) * 1e3,
    }
    return table(("", bench.device.name), [(name, f"{value:.2f}") for name, value in numbers.items()]), numbers


def _pad(device: Device, arrays: tuple[Any, Any]) -> None:
    rows, offsets = arrays
    scalars = (np.int64(1), np.int64(1), np.int32(0), np.int32(0), np.int32(0))
    device.launch("pad_rows", 1, 256, rows, offsets, *scalars, rows, rows)


def kernels(bench: Bench) -> tuple[str, Results]:
    """Exact mode's kernels, cl100k. Microseconds."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / CL100K)
    numbers: Results = {}
    for name, (n, size) in BATCHES.items():
        for language in LANGUAGES:
            texts = batch_texts(bench.batch(language, n, size))
            times = kernel_times(bench, partial(ExactBatch, tok), texts)
            numbers[f"{name}, {language}"] = times
    columns = list(dict.fromkeys(kernel for times in numbers.values() for kernel in times))
    rows = [(name, *(f"{times.get(k, 0) * 1e3:.1f}" for k in columns)) for name, times in numbers.items()]
    return table(("", *columns), rows), numbers


def figure2(bench: Bench) -> tuple[str, Results]:
    """BlockBPE's Figure 2: milliseconds of the merging kernel, GPT-2's vocabulary, War and Peace, by threads a block."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / GPT2)
    numbers: Results = {}
    for n, length in MERGE_BATCHES:
        texts = batch_texts(bench.batch("English", n, length))
        for block in BLOCKS:
            times = kernel_times(bench, partial(BlockBpeBatch, tok, block=block), texts)
            numbers.setdefault(f"{n} x {length}", {})[str(block)] = times.get("blockbpe", sum(times.values()))
    rows = [(name, *(f"{times[str(block)]:.3f}" for block in BLOCKS)) for name, times in numbers.items()]
    return table(("strings x bytes", *(f"{block} threads" for block in BLOCKS)), rows), numbers


def figure3(bench: Bench) -> tuple[str, Results]:
    """BlockBPE's Figure 3: GB/s by strings and bytes a string, GPT-2's vocabulary, War and Peace, end to end; `d` is the
    bytes a thread has with 256 threads a block, and a library's number that of its threads.
    """
    tok = Tokenizer.from_file(DATA / "tokenizers" / GPT2)
    encoders = {mode: GpuEncoder(tok, mode=mode, device=bench.device) for mode in ("exact", "blockbpe")}  # type: ignore[arg-type]
    sizes = THROUGHPUT_BATCHES[:: 9 if bench.smoke else 1]
    batches = [bench.batch("English", n, length) for n, length in sizes]
    peers = beside(bench.threads, GPT2, batches)
    numbers: Results = {}
    for place, (n, length) in enumerate(sizes):
        texts = batch_texts(batches[place])
        seconds = {mode: bench.seconds(partial(e.encode_batch, texts)) for mode, e in encoders.items()}
        seconds |= {library: times[place] for library, times in peers.items()}
        numbers[f"{n} x {length}"] = rates(texts, seconds)
    columns = list(next(iter(numbers.values())))
    rows = [
        (name, f"{int(name.split()[-1]) / 256:g}", *(f"{row[c]:.3f}" for c in columns)) for name, row in numbers.items()
    ]
    return table(("strings x bytes", "d", *columns), rows), numbers


def batches(bench: Bench) -> tuple[str, Results]:
    """GB/s of batches: device-only, end to end, and beside the libraries, whose number is that of their threads."""
    numbers: Results = {}
    for vocabulary in (GPT2, CL100K):
        tok = Tokenizer.from_file(DATA / "tokenizers" / vocabulary)
        modes: dict[str, Any] = {"exact": ExactBatch(tok, bench.device), "blockbpe": BlockBpeBatch(tok, bench.device)}
        encoders = {mode: GpuEncoder(tok, mode=mode, device=bench.device) for mode in modes}  # type: ignore[arg-type]
        batches = {
            f"{Path(vocabulary).parts[0] if vocabulary == GPT2 else 'cl100k'}, {name}, {language}": bench.batch(
                language, n, length
            )
            for name, (n, length) in BATCHES.items()
            for language in LANGUAGES
        }
        peers = beside(bench.threads, vocabulary, list(batches.values()))
        for place, (name, batch) in enumerate(batches.items()):
            texts = batch_texts(batch)
            text, offsets = on_device(bench.device, texts)
            _check(tok, encoders["exact"], texts)
            seconds = {f"{k}, device": bench.seconds(partial(m.encode, text, offsets)) for k, m in modes.items()}
            seconds |= {k: bench.seconds(partial(e.encode_batch, texts)) for k, e in encoders.items()}
            seconds |= {library: times[place] for library, times in peers.items()}
            numbers[name] = rates(texts, seconds)
    columns = list(dict.fromkeys(c for row in numbers.values() for c in row))
    rows = [(name, *(f"{row[c]:.3f}" if c in row else "" for c in columns)) for name, row in numbers.items()]
    return table(("", *columns), rows), numbers


def once() -> None:
    """A batch of 64 KB in both modes, for compute-sanitizer to watch."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / GPT2)
    texts = ["".join(TEXTS[language]())[:1024] for language in LANGUAGES for _ in range(16)]
    _check(tok, GpuEncoder(tok), texts)
    GpuEncoder(tok, mode="blockbpe").encode_batch(texts)


def _check(tok: Tokenizer, encoder: GpuEncoder, texts: Sequence[str]) -> None:
    got, wanted = encoder.encode_batch(texts).to_host(), tok.encode_batch(texts)
    if not np.array_equal(got.ids, wanted.ids) or not np.array_equal(got.offsets, wanted.offsets):
        raise RuntimeError("the GPU's ids differ from the CPU's")


def rates(texts: Sequence[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """GB/s."""
    size = sum(len(text.encode()) for text in texts)
    return {name: size / taken / 1e9 for name, taken in seconds.items()}


SECTIONS: dict[str, Callable[[Bench], tuple[str, Results]]] = {
    "check": check,
    "device": device,
    "kernels": kernels,
    "figure2": figure2,
    "figure3": figure3,
    "batches": batches,
}
DRAWINGS = {"figure2": draw_merge_times, "figure3": draw_throughput}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)} (all)")
    parser.add_argument("--write", action="store_true", help="write tables, figures and bench/gpu.json")
    parser.add_argument("--smoke", action="store_true", help="run everything once on the CPU; measures nothing")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="where figures and gpu.json go (bench)")
    options = parser.parse_args()
    if unknown := set(options.sections) - SECTIONS.keys():
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if options.once:
        return once()
    if options.smoke and options.write:
        parser.error("--smoke measures nothing that could be written")
    bench = Bench(smoke=options.smoke)
    everything: Results = {}
    with bench.device.use():
        for name in options.sections or SECTIONS:
            rows, everything[name] = SECTIONS[name](bench)
            heading = " ".join((SECTIONS[name].__doc__ or "").split())
            result = f"{heading}\n\n{rows}\n\n{bench.device.name}; {machine()}"
            print(f"## {name}\n\n{result}\n", flush=True)
            if options.write:
                write_between(ROOT / "bench" / "RESULTS.md", f"gpu-{name}", result)
                (options.out / "gpu.json").write_text(json.dumps(everything, indent=1) + "\n")
                if draw := DRAWINGS.get(name):
                    draw(everything[name], options.out / "figures" / f"{name}.svg", bench.device.name)


if __name__ == "__main__":
    try:
        main()
    except DeviceError as error:
        sys.exit(f"bench/gpu.py: {error}")
