"""From which size on a batch is worth a batch encoder: measured, since it depends on both machines and the bus between."""

from __future__ import annotations

from math import inf
from time import perf_counter

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.prompt_encoding import BatchEncoder, encode_batch

SIZES = tuple(1 << power for power in range(13, 23, 2))
"""Bytes of the batches tried: 8 KiB, 32 KiB, and so on to 2 MiB."""
PROMPT_BYTES = 2048
ROUNDS = 3
"""How often a batch is encoded; the best time counts."""
PATIENCE = 0.5
"""Seconds after which no further size is tried. The first batch, for which kernels may be compiled, is not counted."""

SAMPLE = (
    "Question {0}: how many of the {1} parcels that left the warehouse on Monday had arrived by noon, and what did each "
    'of them cost?\nThe driver\'s list says: "37 boxes (a naive estimate), 4.5 kg, No. 8".\n'
    "    total = sum(price[i] * count[i] for i in range({1}))  # in cents\n"
)
"""The words come again, as they do in what people write: a tokenizer that remembers words is measured as it will be."""


def measure_crossover(encoder: Tokenizer | BatchEncoder, tokenizer: Tokenizer) -> float:
    """The size of the smallest batch that `encoder` encodes sooner than `tokenizer`, in bytes; infinite if none is found.

    Blocks: two tiny batches, then sizes one after the other until one is found or half a second has passed.

    Raises:
        Exception: What the encoder raises.

    """
    prompts = [_prompt(number) for number in range(SIZES[-1] // PROMPT_BYTES)]
    encode_batch(prompts[:1], encoder)
    encode_batch(prompts[:1], tokenizer)
    deadline = perf_counter() + PATIENCE
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
