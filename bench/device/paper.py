"""BlockBPE (You, ES-FoMo at ICML 2025) on whatever GPU there is: its Figures 2 and 3, its Table 1, and what it claims."""

from __future__ import annotations

from functools import partial

import tokenizers
from device.clock import Bench, Row, Rows, rates
from device.peers import GPT2, beside
from shared.agieval import AGIEVAL, NO_AGIEVAL
from shared.report import DATA
from shared.table1 import PAPER, prompts, similarities

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import GpuEncoder
from tokenweir.gpu.modes.blockbpe import BlockBpeMode
from tokenweir.gpu.modes.exact import ByteLevelMode

BLOCKS = (256, 512, 1024)
MERGE_BATCHES = ((64, 2048), (64, 4096), (1024, 128), (1024, 256))
THROUGHPUT_BATCHES = tuple((n, length) for n in (256, 512, 1024) for length in (128, 256, 512, 1024, 2048, 4096))


def figure2(bench: Bench) -> Rows:
    """BlockBPE's Figure 2: milliseconds of the merging kernel, GPT-2's vocabulary, War and Peace, by threads a block.
    "Algorithm 1" merges one pair a pass, as the paper prints it; the other columns are of our kernel.
    """
    tok = Tokenizer.from_file(DATA / "tokenizers" / GPT2)
    for n, length in MERGE_BATCHES:
        texts = bench.texts("English", n, length)
        row: Row = {}
        for block in BLOCKS:
            for name, kernel in (("", "blockbpe"), (", Algorithm 1", "algorithm1")):
                mode = partial(BlockBpeMode, tok, block=block, literal=kernel == "algorithm1")
                row[f"{block} threads{name}"] = bench.kernel_milliseconds(mode, texts)[kernel]
        yield f"{n} x {length}", row


def figure3(bench: Bench) -> Rows:
    """BlockBPE's Figure 3: GB/s by strings and bytes a string, GPT-2's vocabulary, War and Peace, end to end; `d` is
    the bytes a thread has with 256 threads a block, and a library's number that of its threads. `blockbpe` leaves the
    regex out, as the paper does; "Algorithm 1" does the same by one merge a pass.
    """
    tok = Tokenizer.from_file(DATA / "tokenizers" / GPT2)
    modes = {
        "exact": GpuEncoder(tok, device=bench.device),
        "blockbpe": GpuEncoder(tok, mode="blockbpe", device=bench.device),
        "Algorithm 1": GpuEncoder(tok, mode="blockbpe", literal=True, device=bench.device),
    }
    sizes = THROUGHPUT_BATCHES[:: 9 if bench.smoke else 1]
    for n, length in sizes:
        texts = bench.texts("English", n, length)
        seconds = {mode: bench.seconds(partial(encoder.encode_batch, texts)) for mode, encoder in modes.items()}
        yield f"{n} x {length}", {"d": f"{length / 256:g}", **rates(texts, seconds)}
    batches = {f"{n} x {length}": bench.batch("English", n, length) for n, length in sizes}
    for name, row in beside(bench.threads[:1], GPT2, batches, bench.repeats):
        yield name, {**row}


def table1(bench: Bench) -> Rows:
    """BlockBPE's Table 1, the similarity of ids to HuggingFace's: Llama 3.1's vocabulary, GSM8K's test problems and
    AGIEval's, 1 - distance by the characters of a prompt or by its tokens. "Algorithm 1" is the paper's own, one merge
    a pass. MMLU and GPQA are not measured: their texts are not at hand.
    """
    path = DATA / "tokenizers" / "llama-3.1" / "tokenizer.json"
    tok, reference = Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(str(path))
    encoders = {
        "blockbpe": GpuEncoder(tok, mode="blockbpe", device=bench.device),
        "Algorithm 1": GpuEncoder(tok, mode="blockbpe", literal=True, device=bench.device),
        "exact": GpuEncoder(tok, device=bench.device),
    }
    for form, texts in prompts().items():
        if bench.smoke:
            texts = [text[:80] for text in texts[:2]]
        theirs = [one.ids for one in reference.encode_batch(texts, add_special_tokens=False)]
        row: Row = {}
        for mode, encoder in encoders.items():
            ours = [ids.tolist() for ids in encoder.encode_batch(texts, add_special_tokens=False).to_host()]
            row[f"{mode}, by characters"] = similarities(theirs, ours, [len(text) for text in texts])
            row[f"{mode}, by tokens"] = similarities(theirs, ours, [len(ids) for ids in theirs])
        yield form, row
    for name, value in PAPER.items():
        yield f"{name}, the paper", {"blockbpe, by characters": value}
    if not AGIEVAL.exists():
        yield NO_AGIEVAL, {}


def claims(bench: Bench) -> Rows:
    """The claims of BlockBPE (H100, Xeon 8470, GPT-2's vocabulary) beside our measurements: 1024 strings of 4096 bytes
    of War and Peace, end to end; a library's number is that of its threads. Memory is what CuPy's pool has taken, for
    which the paper has no figure.
    """
    import cupy

    tok = Tokenizer.from_file(DATA / "tokenizers" / GPT2)
    batch = bench.batch("English", 1024, 4096)
    texts = bench.texts(*batch)
    options = {"blockbpe": {}, "Algorithm 1": {"literal": True}}
    seconds, memory = {}, {}
    for name in ("exact", *options):
        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.total_bytes()
        encoder = GpuEncoder(
            tok, mode="blockbpe" if name in options else "exact", device=bench.device, **options.get(name, {})
        )
        seconds[name] = bench.seconds(partial(encoder.encode_batch, texts))
        memory[name] = f"{(pool.total_bytes() - before) / 1e6:.1f} MB"
        del encoder
    kernels = bench.kernel_milliseconds(partial(ByteLevelMode, tok), texts)
    share = kernels["cut_pieces"] / sum(kernels.values())
    yield "share of the time that splitting takes", {"the paper": "up to 0.75, on a CPU", "exact": share}
    without = seconds["exact"] / seconds["blockbpe"]
    yield "times as fast without the pattern", {"the paper": "up to 3, of splitting", "blockbpe": without}
    yield "memory of tables and a batch", {"the paper": "", **memory}
    paper, ours = {"tiktoken": "up to 2", "tokenizers": "up to 2.5"}, rates(texts, seconds)
    for _, row in beside(bench.threads, GPT2, {"": batch}, bench.repeats):
        ((library, theirs),) = row.items()
        if claimed := paper.get(library.partition(",")[0]):
            times = {mode: rate / theirs for mode, rate in ours.items()}
            yield f"times as fast as {library}", {"the paper": claimed, **times}
