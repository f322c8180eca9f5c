"""Checks of correctness before any timing: documents compared with the CPU, the tests, and compute-sanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from random import Random
from types import MappingProxyType

from device.clock import Bench, Row, Rows, check_ids, same_ids
from device.peers import BERT, CL100K, GPT2, LLAMA2, SENTENCEPIECE_JA, T5
from shared.report import DATA, ROOT
from shared.texts import TEXTS

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import GpuDecoder, GpuEncoder
from tokenweir.gpu.modes import batch, exact
from tokenweir.verify.adversarial import strings

VOCABULARIES = (
    GPT2,
    "openai/cl100k_base.tiktoken",
    "openai/o200k_base.tiktoken",
    "llama-3.1/tokenizer.json",
    "qwen3/tokenizer.json",
    BERT,
    LLAMA2,
    "llama-2/tokenizer.model",
    T5,
    SENTENCEPIECE_JA,
)
LANGUAGES = ("English", "Chinese", "Japanese", "chat")
DOCUMENTS = 1_000_000
AT_ONCE = 20_000


def correct(bench: Bench) -> Rows:
    """A million documents, half of them adversarial and half passages of real texts: how many have other ids than on the CPU.
    Each vocabulary has a process of its own.
    """
    count = 40 if bench.smoke else DOCUMENTS // len(VOCABULARIES)
    workers = 1 if bench.smoke else min(len(VOCABULARIES), len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        rows = [(name, pool.submit(_compared, name, count, bench.smoke)) for name in VOCABULARIES]
        for name, row in rows:
            yield name, row.result()


def _compared(name: str, count: int, smoke: bool) -> Row:
    bench = Bench(smoke=smoke)
    with bench.device.use():
        tok = Tokenizer.from_file(DATA / "tokenizers" / name)
        encoder = GpuEncoder(tok, device=bench.device)
        differ = 0
        for texts in _documents(tok, name, count):
            got, wanted = encoder.encode_batch(texts).to_host(), tok.encode_batch(texts, threads=1)
            wrong = (
                [] if same_ids(got, wanted) else [i for i in range(len(texts)) if got[i].tolist() != wanted[i].tolist()]
            )
            if wrong and not differ:
                print(f"{name}: {texts[wrong[0]]!r} has other ids", file=sys.stderr)
            differ += len(wrong)
    reasons: Counter[str] = encoder.stats.on_cpu
    return {
        "documents": f"{encoder.stats.documents:,}",
        "MB": encoder.stats.bytes / 1e6,
        "other ids": str(differ),
        "left to the CPU": "; ".join(f"{n:,}: {reason}" for reason, n in reasons.items()) or "none",
    }


def _documents(tok: Tokenizer, seed: str, count: int) -> Iterator[list[str]]:
    special = [token.content for token in tok.added_tokens]
    real = ["".join(TEXTS[language]()) for language in LANGUAGES]
    for first in range(0, count, AT_ONCE):
        rng, size = Random(f"{seed} {first}"), min(AT_ONCE, count - first)
        groups = strings(size // 2, seed=f"{seed} {first}", special_tokens=special).values()
        texts = [text for group in groups for text in group][: size // 2]
        while len(texts) < size:
            text = rng.choice(real)
            begin = rng.randrange(len(text))
            texts.append(text[begin : begin + rng.randrange(400)])
        rng.shuffle(texts)
        yield texts


def tests(bench: Bench) -> Rows:
    """The tests that run on the device. Warnings do not fail them, because a machine's packages may cause many."""
    path, device = ("tests/gpu/test_ragged.py", "cupy") if bench.smoke else ("tests/gpu", "cuda")
    environment = {} if bench.smoke else {"REQUIRE_GPU": "1"}
    pytest = [sys.executable, "-P", "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider", "-k", device]
    if find_spec("xdist"):
        pytest += ["-n", "0" if bench.smoke else str(min(8, len(os.sched_getaffinity(0))))]
    yield path, _run([*pytest, path], environment)


def sanitize(bench: Bench) -> Rows:
    """A batch of 64 KB by every kernel under each tool of compute-sanitizer, without CuPy's pool."""
    sanitizer = shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if bench.smoke or sanitizer is None:
        once(bench)
        yield "compute-sanitizer", {"status": "not run", "its last line": "it needs a GPU, and to be on the PATH"}
        return
    program = [sys.executable, str(ROOT / "bench" / "gpu.py"), "--once"]
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        yield tool, _run([sanitizer, "--tool", tool, "--error-exitcode", "1", *program])


def _run(program: list[str], environment: Mapping[str, str] = MappingProxyType({})) -> Row:
    """Run a program; return how it ended, and its output if it failed."""
    run = subprocess.run(
        program, check=False, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )
    lines = (run.stdout + run.stderr).strip().splitlines() or [""]
    if run.returncode:
        print(*lines, sep="\n", file=sys.stderr)
    return {"status": str(run.returncode), "its last line": lines[-1].strip("= ").replace("|", "/")}


def profiled(bench: Bench) -> None:
    """A batch of 16 MB of each language by exact mode, for a profiler."""
    tok = Tokenizer.from_file(DATA / "tokenizers" / CL100K)
    encoder = GpuEncoder(tok, device=bench.device)
    for language in ("English", "Chinese", "code"):
        encoder.encode_batch(bench.texts(language, 256, 65536))
        bench.device.synchronize()


def once(bench: Bench) -> None:
    """A batch of 64 KB by every kernel, for compute-sanitizer to watch: each array has memory of its own."""
    import cupy

    cupy.cuda.set_allocator(None)
    texts = [text for language in ("English", "Chinese", "code") for text in bench.texts(language, 16, 1024)]
    texts.append("".join(Random(1).choices("acgt", k=4096)))  # a piece that no shared memory holds
    # All of it is a large batch, and the part that is replayed a small one.
    batch.SMALL_BYTES = exact.BY_WARPS_BYTES = sum(map(len, texts)) - 1
    for name in (GPT2, LLAMA2, BERT, T5, SENTENCEPIECE_JA):
        tok = Tokenizer.from_file(DATA / "tokenizers" / name)
        encoder = GpuEncoder(tok, device=bench.device)
        check_ids(tok, encoder, texts)
        encoder.encode_batch(texts).padded(0)
        check_ids(tok, GpuEncoder(tok, device=bench.device, replay=True), texts[:16])
    tok = Tokenizer.from_file(DATA / "tokenizers" / LLAMA2)
    GpuDecoder(tok, device=bench.device).decode_batch(tok.encode_batch(texts)).to_host()
    tok = Tokenizer.from_file(DATA / "tokenizers" / GPT2)
    for literal in (False, True):
        GpuEncoder(tok, mode="blockbpe", literal=literal, device=bench.device).encode_batch(texts).to_host()
