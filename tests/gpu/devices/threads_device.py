"""A device without a GPU on which every CUDA thread is a real one, so that ThreadSanitizer can judge the kernels.

As a program it encodes a few documents in one mode and compares their ids with the CPU's. It has to run with
ThreadSanitizer's library preloaded, which writes its reports to standard error; `test_threads.py` and
`scripts/check --threads` run it so.

    threads_device.py plain|medium|long|blockbpe [FOLDER OF KERNELS]
"""

from __future__ import annotations

import ctypes
import shutil
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from shim_device import ShimDevice, kernels_in, library_of

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import GpuEncoder
from tokenweir.gpu.kernels import SOURCES

FLAGS = ("-DTW_THREADS", "-g", "-fsanitize=thread")
COPIES = 3
"""Blocks that run at once. Each runs in a library of its own, since a library has one copy of the shared memory."""

ENGLISH = "The weir holds the river back, just long enough that it flows over clean; 1,024 times a day. "
CHINESE = "堰拦住河水，只够它清澈地流过；一天一千零二十四次。"
DOCUMENTS: dict[str, list[str | bytes]] = {
    "plain": [ENGLISH * 95, "", f"{ENGLISH}<|im_end|>x<|im_start|><|im_end|>", CHINESE * 20, "a", b"\xff\xfeab"],
    "medium": ["qwzxkj" * 12, "ab" * 60, "жщ" * 40, CHINESE.replace("，", "") * 2, "x" * 200],
    "long": ["abcdefghij" * 60, "a" * 600, "acgt" * 300],
    "blockbpe": [ENGLISH * 3, "", f"<|im_end|>{ENGLISH}", "aaaa" * 20, ENGLISH * 8],
}
"""Documents by what they exercise: a tile and its neighbours, merges by a warp, merges by a block, the paper's mode."""


class ThreadsDevice(ShimDevice):
    """A device whose blocks run at once, each with a real thread for each CUDA thread."""

    def __init__(self, sources: Iterable[Path]) -> None:
        super().__init__((), seed=1)
        self._copies: list[dict[str, Any]] = [{} for _ in range(COPIES)]
        self._folder = tempfile.TemporaryDirectory()
        self._pool = ThreadPoolExecutor(COPIES)
        for source in sources:
            library = library_of(source.resolve(), *FLAGS)
            for number, kernels in enumerate(self._copies):
                copy = Path(self._folder.name) / f"{source.stem}.{number}.so"
                shutil.copy(library, copy)
                kernels |= kernels_in(copy, source)
                ctypes.CDLL(str(copy)).share_blocks(number, COPIES)

    def _run_kernel(self, kernel: str, *args: Any) -> bytes:
        running = [self._pool.submit(kernels[kernel], *args) for kernels in self._copies]
        return next((error for error in [run.result() for run in running] if error), b"")


def main(kind: str, kernels: str = str(SOURCES)) -> int:
    tok = Tokenizer.default()
    device = ThreadsDevice(sorted(Path(kernels).glob("*.cu")))
    encoder = (
        GpuEncoder(tok, mode="blockbpe", device=device, block=64)
        if kind == "blockbpe"
        else GpuEncoder(tok, device=device, workers=2)
    )
    documents = DOCUMENTS[kind]
    rows = encoder.encode_batch(documents).to_host()
    if kind != "blockbpe":  # whose ids are its own; test_blockbpe.py compares them with the paper's algorithm
        texts = [d if isinstance(d, str) else d.decode("utf-8", "replace") for d in documents]
        expected = tok.encode_batch(texts)
        assert all(np.array_equal(rows[i], expected[i]) for i in range(len(documents)))
    sys.stdout.write(f"{kind}: {len(documents)} documents, {len(device.launches)} launches\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
