"""Speed: the device and its kernels, end to end by kind of input, beside the peers, and the cost of each choice."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from statistics import mean
from typing import Any

import numpy as np
from device.clock import Bench, Row, Rows, check_ids, on_device, rates
from device.peers import BERT, CL100K, GPT2, LLAMA2, T5, Batch, beside
from shared.report import DATA

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import DeviceRagged, GpuDecoder, GpuEncoder, device_pipeline
from tokenweir.gpu.device import Device
from tokenweir.gpu.modes.blockbpe import BlockBpeMode
from tokenweir.gpu.modes.exact import ByteLevelMode

LANGUAGES = ("English", "Chinese", "code")
BATCHES = {"1024 x 2 KB": (1024, 2048), "64 x 4 KB": (64, 4096), "1 x 4 KB": (1, 4096), "64 MB": (1024, 65536)}
COUNTS, LENGTHS = (1, 16, 256, 1024, 4096), (16, 256, 2048, 16384, 65536)


def device(bench: Bench) -> Rows:
    """The device alone: copies from the host and back, and the cost of a launch."""
    size = 1 << (10 if bench.smoke else 28)
    pinned, pageable = bench.device.pinned(size), np.zeros(size, np.uint8)
    there = bench.device.to_device(pageable)
    on_it = bench.device.empty(1024, np.int32), bench.device.zeros(2, np.int64)
    numbers = {
        "from pinned memory, GB/s": size / bench.seconds(lambda: bench.device.to_device(pinned)) / 1e9,
        "from pageable memory, GB/s": size / bench.seconds(lambda: bench.device.to_device(pageable)) / 1e9,
        "to the host, GB/s": size / bench.seconds(lambda: bench.device.to_host(there)) / 1e9,
        "a launch and its end, us": bench.seconds(lambda: _pad(bench.device, on_it)) * 1e6,
        "1,000 launches, us each": bench.seconds(lambda: [_pad(bench.device, on_it) for _ in range(1000)]) * 1e3,
    }
    for name, value in numbers.items():
        yield name, {bench.device.name: value}


def _pad(device: Device, arrays: tuple[Any, Any]) -> None:
    rows, offsets = arrays
    scalars = (np.int64(1), np.int64(1), np.int32(0), np.int32(0), np.int32(0))
    device.launch("pad_rows", 1, 256, rows, offsets, *scalars, rows, rows)


def _batches(bench: Bench) -> dict[str, Batch]:
    named = [(name, language) for name in BATCHES for language in LANGUAGES]
    return {
        f"{name}, {language}": bench.batch(language, *BATCHES[name])
        for name, language in named[:: 9 if bench.smoke else 1]
    }


def kernels(bench: Bench) -> Rows:
    """Microseconds of exact mode's kernels, cl100k."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / CL100K)
    for name, batch in _batches(bench).items():
        texts = bench.texts(*batch)
        check_ids(tok, GpuEncoder(tok, device=bench.device), texts)
        times = bench.kernel_milliseconds(partial(ByteLevelMode, tok), texts)
        yield name, {**{kernel: value * 1e3 for kernel, value in times.items()}, "all": sum(times.values()) * 1e3}


def ends(bench: Bench) -> Rows:
    """GB/s of exact mode, cl100k, by texts and bytes a text: from what comes in to ids on the device, and from text that
    already lies there.
    """
    import pyarrow

    tok = Tokenizer.from_file(DATA / "tokenizers" / CL100K)
    made = GpuEncoder(tok, device=bench.device)
    alone = ByteLevelMode(tok, bench.device)
    sizes = [(n, length) for length in LENGTHS for n in COUNTS]
    for language in LANGUAGES[:2]:
        for n, length in sizes[:: 12 if bench.smoke else 1]:
            texts = bench.texts(language, n, length)
            check_ids(tok, made, texts)
            given: dict[str, Any] = {
                "str": texts,
                "bytes": [text.encode() for text in texts],
                "Arrow": pyarrow.array(texts),
            }
            text, offsets = on_device(bench.device, texts)
            seconds = {name: bench.seconds(partial(made.encode_batch, value)) for name, value in given.items()}
            seconds["on the device"] = bench.seconds(
                partial(alone.encode, text, offsets, parse_special=True, guards=None)
            )
            yield f"{n} x {length}, {language}", {**rates(texts, seconds), "Arrow, us": seconds["Arrow"] * 1e6}


def replay(bench: Bench) -> Rows:
    """Microseconds from `str` to ids on the device, exact mode, cl100k: kernels launched one by one, and by one launch of a
    CUDA graph (`replay=True`).
    """
    tok = Tokenizer.from_file(DATA / "tokenizers" / CL100K)
    encoders = {name: GpuEncoder(tok, device=bench.device, replay=name == "a graph") for name in ("kernels", "a graph")}
    for language in LANGUAGES[:2]:
        for n, length in ((1, 512), (16, 512), (64, 512), (1, 4096), (64, 4096), (256, 2048)):
            texts = bench.texts(language, n, length)
            for encoder in encoders.values():
                check_ids(tok, encoder, texts)
            seconds = {name: bench.seconds(partial(one.encode_batch, texts)) for name, one in encoders.items()}
            yield f"{n} x {length}, {language}", {name: taken * 1e6 for name, taken in seconds.items()}


def decode(bench: Bench) -> Rows:
    """GB/s of decoded text, ids on the device to texts on the device, beside our own CPU to `str`; the texts are compared."""
    for vocabulary in (CL100K, LLAMA2):
        tok = Tokenizer.from_file(DATA / "tokenizers" / vocabulary)
        decoder = GpuDecoder(tok, device=bench.device)
        for name, batch in _batches(bench).items():
            texts = bench.texts(*batch)
            rows = tok.encode_batch(texts)
            there = DeviceRagged(bench.device.to_device(rows.ids), bench.device.to_device(rows.offsets), bench.device)
            if decoder.decode_batch(there).to_host() != tok.decode_batch(rows):
                raise RuntimeError("the GPU's texts differ from the CPU's")
            seconds = {
                "GPU": bench.seconds(partial(decoder.decode_batch, there)),
                "CPU": bench.seconds(partial(tok.decode_batch, rows)),
            }
            yield f"{vocabulary.partition('/')[0]}, {name}", {**rates(texts, seconds)}


def peers_gpt2(bench: Bench) -> Rows:
    """GB/s of batches, GPT-2's vocabulary, beside the libraries, whose number is that of their threads."""
    return _beside_peers(bench, GPT2)


def peers_cl100k(bench: Bench) -> Rows:
    """GB/s of batches, cl100k, beside the libraries, whose number is that of their threads."""
    return _beside_peers(bench, CL100K)


def _beside_peers(bench: Bench, vocabulary: str) -> Rows:
    import pyarrow

    tok = Tokenizer.from_file(DATA / "tokenizers" / vocabulary)
    exact, blockbpe = GpuEncoder(tok, device=bench.device), GpuEncoder(tok, mode="blockbpe", device=bench.device)
    alone = ByteLevelMode(tok, bench.device), BlockBpeMode(tok, bench.device)
    batches = _batches(bench)
    arrow_rates: dict[str, float] = {}
    best: dict[str, tuple[float, str]] = {}
    for name, batch in batches.items():
        texts = bench.texts(*batch)
        text, offsets = on_device(bench.device, texts)
        check_ids(tok, exact, texts)
        ours = {
            f"{mode}, on the device": bench.seconds(partial(one.encode, text, offsets, parse_special=True, guards=None))
            for mode, one in zip(("exact", "blockbpe"), alone, strict=True)
        }
        arrow = pyarrow.array(texts)
        ours |= {
            "blockbpe, str": bench.seconds(partial(blockbpe.encode_batch, texts)),
            "str": bench.seconds(partial(exact.encode_batch, texts)),
            "Arrow": bench.seconds(partial(exact.encode_batch, arrow)),
        }
        found = rates(texts, ours)
        arrow_rates[name] = found["Arrow"]
        yield name, {**found}
    for name, rates_of in beside(bench.threads, vocabulary, batches, bench.repeats):
        ((library, rate),) = rates_of.items()
        if not library.startswith("tokenweir"):
            best[name] = max(best.get(name, (0.0, "")), (rate, library))
        fastest, who = best[name]
        yield name, {library: rate, "Arrow / best": f"{arrow_rates[name] / fastest:.2f} ({who})"}


def models(bench: Bench) -> Rows:
    """GB/s of batches by BPE of characters (Llama 2), by WordPiece (BERT) and by Unigram (T5), end to end, beside the libraries,
    whose number is that of their threads; and how many documents went to the CPU.
    """
    batches = _batches(bench)
    vocabularies = (LLAMA2, BERT, T5)
    for vocabulary in vocabularies:
        tok = Tokenizer.from_file(DATA / "tokenizers" / vocabulary)
        made = GpuEncoder(tok, device=bench.device)
        for name, batch in batches.items():
            texts = bench.texts(*batch)
            made.stats.on_cpu.clear()
            check_ids(tok, made, texts)
            on_cpu = f"{made.stats.on_cpu.total()} of {len(texts)}"
            seconds = {"GPU": bench.seconds(partial(made.encode_batch, texts))}
            yield f"{vocabulary.partition('/')[0]}, {name}", {"on the CPU": on_cpu, **rates(texts, seconds)}
    for vocabulary in vocabularies:
        for name, row in beside(bench.threads[:1], vocabulary, batches, bench.repeats):
            yield f"{vocabulary.partition('/')[0]}, {name}", {**row}


def sweep(bench: Bench) -> Rows:
    """GB/s of 64 MB from bytes, cl100k, by the blocks that merge (`workers`) and the MiB of a step."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / CL100K)
    before = device_pipeline.STEP_BYTES, device_pipeline.KEPT_BYTES
    try:
        for language in LANGUAGES:
            texts = bench.texts(language, *BATCHES["64 MB"])
            data = [text.encode() for text in texts]
            for workers in (128, 512, 2048):
                made = GpuEncoder(tok, device=bench.device, workers=workers)
                for step in (8, 16, 32, 128):
                    device_pipeline.STEP_BYTES, device_pipeline.KEPT_BYTES = step << 20, step << 21
                    check_ids(tok, made, texts)
                    seconds = {f"{step} MiB": bench.seconds(partial(made.encode_batch, data))}
                    yield f"{language}, {workers} workers", {**rates(texts, seconds)}
    finally:
        device_pipeline.STEP_BYTES, device_pipeline.KEPT_BYTES = before


def pieces(bench: Bench) -> Rows:
    """Milliseconds for a text that is one piece, cl100k: the GPU, whatever its length, beside our own CPU."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / CL100K)
    made = GpuEncoder(tok, device=bench.device, max_bytes=1 << 17)
    for kind, letters in (("a", "a"), ("acgt", "acgt"), ("letters", "abcdefghijklmnopqrstuvwxyz")):
        for size in (256,) if bench.smoke else (256, 4096, 16384, 65535):
            texts = ["".join(Random(1).choices(letters, k=size))]
            check_ids(tok, made, texts)
            seconds = {
                "GPU": bench.seconds(partial(made.encode_batch, texts)),
                "CPU": bench.seconds(partial(tok.encode_batch, texts)),
            }
            yield f"{kind}, {size:,} bytes", {where: taken * 1e3 for where, taken in seconds.items()}


def power(bench: Bench) -> Rows:
    """64 MB again and again for five seconds, cl100k, from bytes: speed, power, energy, and memory that CuPy's pool took."""
    import cupy

    tok = Tokenizer.from_file(DATA / "tokenizers" / CL100K)
    for language in LANGUAGES:
        texts = [text.encode() for text in bench.texts(language, *BATCHES["64 MB"])]
        cupy.get_default_memory_pool().free_all_blocks()
        made = GpuEncoder(tok, device=bench.device)
        with _watts() as watts:
            begin, done = time.perf_counter(), 0
            while time.perf_counter() - begin < (0 if bench.smoke else 5) or not done:
                made.encode_batch(texts)
                done += sum(map(len, texts))
            bench.device.synchronize()
            taken = time.perf_counter() - begin
        row: Row = {"GB/s": done / taken / 1e9}
        if watts:
            row |= {"watts": mean(watts), "joules a GB": mean(watts) * taken / (done / 1e9)}
        yield language, row | {"pool, MB": cupy.get_default_memory_pool().total_bytes() / 1e6}


@contextmanager
def _watts() -> Iterator[list[float]]:
    """Sample the board's power five times a second; empty without nvidia-smi."""
    watts: list[float] = []
    if shutil.which("nvidia-smi") is None:
        yield watts
        return
    query = ("nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits", "-lms", "200")
    with subprocess.Popen(query, stdout=subprocess.PIPE, text=True) as sampler:
        try:
            yield watts
        finally:
            sampler.terminate()
            said, _ = sampler.communicate()
    watts += [float(line) for line in said.split() if line.replace(".", "", 1).isdigit()]
