"""A device without a GPU on which every CUDA thread is a real one, so that ThreadSanitizer can judge the kernels.

As a program it encodes a few documents in one mode and compares their ids with the CPU's. It has to run with
ThreadSanitizer's library preloaded, which writes its reports to standard error; `test_threads.py` runs it so, and
`scripts/mutate_kernels --threads` runs that test.

    threads_device.py KIND [FOLDER OF KERNELS]

The kinds are those of `DOCUMENTS`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from shim_device import ShimDevice, kernels_in, library_of

from tokenweir.encode.spec import (
    BPE,
    AddedToken,
    BertNormalizer,
    BertPreTokenizer,
    ByteFallback,
    DecoderSequence,
    Fuse,
    NormalizerSequence,
    Pattern,
    Prepend,
    Replace,
    SentencePiece,
    SentencePieceNormalizer,
    TokenizerSpec,
    WordPiece,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import GpuDecoder, GpuEncoder
from tokenweir.gpu.kernels import SOURCES
from tokenweir.gpu.modes import batch, exact

FLAGS = ("-DTW_THREADS", "-g", "-fsanitize=thread")
COPIES = 3
"""Blocks that run at once. Each runs in a library of its own, since a library has one copy of the shared memory."""

ENGLISH = "The weir holds the river back, just long enough that it flows over clean; 1,024 times a day. "
CHINESE = "堰拦住河水，只够它清澈地流过；一天一千零二十四次。"
DOCUMENTS: dict[str, list[str | bytes]] = {
    "plain": [ENGLISH * 95, "", f"{ENGLISH}<|im_end|>x<|im_start|><|im_end|>", CHINESE * 20, "a", b"\xff\xfeab"],
    "medium": ["qwzxkj" * 12, "ab" * 60, "x" * 200, *(word * 8 for word in ENGLISH.split())],
    "long": ["abcdefghij" * 60, "a" * 600, "acgt" * 300],
    "blockbpe": [ENGLISH * 3, "", f"<|im_end|>{ENGLISH}", "aaaa" * 20, ENGLISH * 8],
    "algorithm1": [ENGLISH, "", f"<|im_end|>{ENGLISH}", "aaaa" * 20],
    "characters": [ENGLISH * 95, "", f"{ENGLISH}<x>x<x><x>", CHINESE * 20, "aa" * 60, "a" * 600, b"\xff\xfeab", " a"],
    "unigram": [ENGLISH * 25, "", f"{ENGLISH}<x>x<x><x>", CHINESE * 20, "a" * 900, b"\xff\xfeab", "é " * 40],
    "words": [ENGLISH * 95, "", f"{ENGLISH}<x>x<x><x>", CHINESE * 20, "a\u0301" * 90, b"\xff\xfeab"],
}
"""Documents by what they exercise: a tile and its neighbours, merges by a warp, merges by a block, the paper's mode and its
own algorithm, BPE of characters, Unigram, WordPiece.
"""


class ThreadsDevice(ShimDevice):
    """A device whose blocks run at once, each with a real thread for each CUDA thread."""

    def __init__(self, sources: Iterable[Path]) -> None:
        super().__init__(sources, seed=1)
        self._copies: dict[Path, list[dict[str, Any]]] = {}
        self._folder = tempfile.TemporaryDirectory()
        self._pool = ThreadPoolExecutor(COPIES)

    def _run_kernel(self, kernel: str, *args: Any) -> bytes:
        source = self._source_of[kernel]
        if source not in self._copies:
            self._copies[source] = [self._copy(source, number) for number in range(COPIES)]
        running = [self._pool.submit(kernels[kernel], *args) for kernels in self._copies[source]]
        return next((error for error in [run.result() for run in running] if error), b"")

    def _copy(self, source: Path, number: int) -> dict[str, Any]:
        copy = Path(self._folder.name) / f"{source.stem}.{number}.so"
        shutil.copy(library_of(source, *FLAGS), copy)
        ctypes.CDLL(str(copy)).share_blocks(number, COPIES)
        return kernels_in(copy, source)


def tokenizer_of(kind: str) -> Tokenizer:
    """Return the tokenizer that encodes the documents of a kind."""
    letters = sorted({*ENGLISH.lower(), "aa", "th", "the", "##e", "##aa"})
    if kind == "words":
        return Tokenizer.from_spec(
            TokenizerSpec(
                model=WordPiece(vocab={token: i for i, token in enumerate(["[UNK]", *letters])}),
                normalizer=BertNormalizer(),
                pre_tokenizer=BertPreTokenizer(),
                added_tokens=(AddedToken("<x>"),),
            )
        )
    if kind == "unigram":
        pieces = ["<unk>", "▁", *letters, *map("▁".__add__, letters), "拦", "aaa", "aa▁"]
        return Tokenizer.from_spec(
            TokenizerSpec(
                model=SentencePiece(
                    algorithm="Unigram",
                    pieces=(found := list(dict.fromkeys(pieces))),
                    scores=[-1000.0 - 1000 * (len(piece) % 3) for piece in found],  # sums begin anew at 100,000
                    types=bytes([2, *(1 for _ in found[1:])]),
                    unk_id=0,
                ),
                normalizer=SentencePieceNormalizer(),
                decoder=DecoderSequence((ByteFallback(), Fuse())),
                added_tokens=(AddedToken("<x>"),),
            )
        )
    if kind == "characters":
        tokens = ["<unk>", "▁", *(f"<0x{byte:02X}>" for byte in range(256)), *letters, "▁a", "aaaa"]
        return Tokenizer.from_spec(
            TokenizerSpec(
                model=BPE(
                    vocab={token: i for i, token in enumerate(tokens)},
                    merges=[("t", "h"), ("th", "e"), ("▁", "a"), ("a", "a"), ("aa", "aa")],
                    unk_token="<unk>",
                    byte_fallback=True,
                ),
                normalizer=NormalizerSequence((Prepend("▁"), Replace(pattern=Pattern(String=" "), content="▁"))),
                decoder=DecoderSequence((ByteFallback(), Fuse())),
                added_tokens=(AddedToken("<x>"),),
            )
        )
    return Tokenizer.default()


def main(kind: str, kernels: str = str(SOURCES)) -> int:
    os.environ.pop("LD_PRELOAD", None)  # the compiler, which a device runs, takes five times as long with it
    tok = tokenizer_of(kind)
    batch.SMALL_BYTES, exact.BY_WARPS_BYTES = 1 << 13, 1 << 10  # so that some documents are a large batch
    device = ThreadsDevice(sorted(Path(kernels).glob("*.cu")))
    options: dict[str, Any] = {} if kind in ("unigram", "words") else {"workers": 2}
    if of_the_paper := kind in ("blockbpe", "algorithm1"):
        options = {"mode": "blockbpe", "block": 64, "literal": kind == "algorithm1"}
    encoder = GpuEncoder(tok, device=device, min_bytes=0, replay=False, **options)
    documents = DOCUMENTS[kind]
    ids = encoder.encode_batch(documents)
    rows = ids.to_host()
    if not of_the_paper:  # whose ids are its own; test_blockbpe.py compares them with the paper's algorithm
        texts = [d if isinstance(d, str) else d.decode("utf-8", "replace") for d in documents]
        expected = tok.encode_batch(texts)
        assert all(np.array_equal(rows[i], expected[i]) for i in range(len(documents)))
    assert GpuDecoder(tok, device=device).decode_batch(ids).to_host() == tok.decode_batch(rows)
    sys.stdout.write(f"{kind}: {len(documents)} documents, {len(device.launches)} launches\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
