"""Measurement of the batch size from which a batch encoder beats the tokenizer on this machine."""

from __future__ import annotations

from math import inf
from time import perf_counter

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.batching.prompt_encoding import BatchEncoder, encode_batch

SIZES = tuple(1 << power for power in range(13, 23, 2))
"""Bytes of the batches that are tried: 8 KiB, 32 KiB, and so on to 2 MiB."""
PROMPT_BYTES = 2048
ROUNDS = 3
"""Repetitions a batch; the best time counts."""
TIME_LIMIT = 0.5
"""Seconds after which no further size is tried. A first batch, which may compile kernels, is not counted."""

SAMPLE = (
    "Question {0}: how many of the {1} parcels that left the warehouse on Monday had arrived by noon, and what did each "
    'of them cost?\nThe driver\'s list says: "37 boxes (a naive estimate), 4.5 kg, No. 8".\n'
    "    total = sum(price[i] * count[i] for i in range({1}))  # in cents\n"
)
"""Words repeat as in real prompts, so that a word cache is measured under realistic hits."""


def measure_crossover(encoder: Tokenizer | BatchEncoder, tokenizer: Tokenizer) -> float:
    """Return the bytes of the smallest batch that `encoder` encodes faster than `tokenizer`, or infinity.

    Blocks: two tiny batches, then sizes one after the other until one is found or half a second has passed.

    Raises:
        Exception: What the encoder raises.

    """
    prompts = [_prompt(number) for number in range(SIZES[-1] // PROMPT_BYTES)]
    encode_batch(prompts[:1], encoder)
    encode_batch(prompts[:1], tokenizer)
    deadline = perf_counter() + TIME_LIMIT
    for size in SIZES:
        if perf_counter() > deadline:
            break
        batch = prompts[: size // PROMPT_BYTES]
        if _seconds(batch, encoder) < _seconds(batch, tokenizer):
            return size
    return inf


def _seconds(batch: list[str], encoder: Tokenizer | BatchEncoder) -> float:
    best = inf
    for _ in range(ROUNDS):
        start = perf_counter()
        encode_batch(batch, encoder)
        best = min(best, perf_counter() - start)
    return best


def _prompt(number: int) -> str:
    text = "".join(SAMPLE.format(number, line) for line in range(PROMPT_BYTES // len(SAMPLE) + 1))
    return text[:PROMPT_BYTES]  # all ASCII
