"""Figures 2 and 3 of BlockBPE (You, 2025), on whatever GPU there is."""

from __future__ import annotations

from functools import partial

from device.clock import Bench, Numbers, rates
from device.peers import GPT2, beside
from shared.report import DATA

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import GpuEncoder
from tokenweir.gpu.blockbpe import BlockBpeBatch

BLOCKS = (256, 512, 1024)
MERGE_BATCHES = ((64, 2048), (64, 4096), (1024, 128), (1024, 256))
THROUGHPUT_BATCHES = tuple((n, length) for n in (256, 512, 1024) for length in (128, 256, 512, 1024, 2048, 4096))


def figure2(bench: Bench) -> Numbers:
    """BlockBPE's Figure 2: milliseconds of the merging kernel, GPT-2's vocabulary, War and Peace, by threads a block.
    "Algorithm 1" merges one pair a pass, as the paper prints it; the other columns are of our kernel.
    """
    tok = Tokenizer.from_file(DATA / "tokenizers" / GPT2)
    numbers: Numbers = {}
    for n, length in MERGE_BATCHES:
        texts = bench.texts("English", n, length)
        for block in BLOCKS:
            row = numbers.setdefault(f"{n} x {length}", {})
            for name, kernel in (("", "blockbpe"), (", Algorithm 1", "algorithm1")):
                mode = partial(BlockBpeBatch, tok, block=block, literal=kernel == "algorithm1")
                row[f"{block} threads{name}"] = bench.kernel_milliseconds(mode, texts)[kernel]
    return numbers


def figure3(bench: Bench) -> Numbers:
    """BlockBPE's Figure 3: GB/s by strings and bytes a string, GPT-2's vocabulary, War and Peace, end to end; `d` is the
    bytes a thread has with 256 threads a block, and a library's number that of its threads. `blockbpe` leaves the regex
    out, as the paper does; "Algorithm 1" does the same by one merge a pass.
    """
    tok = Tokenizer.from_file(DATA / "tokenizers" / GPT2)
    modes = {
        "exact": GpuEncoder(tok, device=bench.device),
        "blockbpe": GpuEncoder(tok, mode="blockbpe", device=bench.device),
        "Algorithm 1": GpuEncoder(tok, mode="blockbpe", literal=True, device=bench.device),
    }
    sizes = THROUGHPUT_BATCHES[:: 9 if bench.smoke else 1]
    batches = [bench.batch("English", n, length) for n, length in sizes]
    peers = beside(bench.threads, GPT2, batches, bench.repeats)
    numbers: Numbers = {}
    for place, (n, length) in enumerate(sizes):
        texts = bench.texts("English", n, length)
        seconds = {
            **{mode: bench.seconds(partial(encoder.encode_batch, texts)) for mode, encoder in modes.items()},
            **{library: times[place] for library, times in peers.items()},
        }
        numbers[f"{n} x {length}"] = {"d": f"{length / 256:g}", **rates(texts, seconds)}
    return numbers
