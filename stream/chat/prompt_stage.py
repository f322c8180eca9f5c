"""The async stage that encodes prompts, in order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable

import numpy as np
from numpy.typing import NDArray

from tokenweir.stream.chat.stages import Owned, Stage
from tokenweir.stream.prompts.batching.prompt_encoding import Encoder, encode_all
from tokenweir.templates.prompt import Prompt


def encode_prompts(
    prompts: Iterable[str | Prompt] | AsyncIterable[str | Prompt], encoder: Encoder, *, batch_size: int = 64
) -> AsyncGenerator[NDArray[np.int32], None]:
    """Encode prompts as they arrive; yield the ids of each, int32[n], in order.

    Encoding runs in a worker thread. The stage owns `prompts` and closes it if it can be closed. It reads at most
    `batch_size` prompts ahead of what it has yielded.

    Args:
        prompts: Texts, encoded with the tokenizer's own special tokens, or each a rendered `Prompt`, without.
        encoder: The tokenizer, or an encoder in its place. A `PromptBatcher` adds the prompts to batches that all of
            its callers share.
        batch_size: Prompts a batch. The stage waits for a full batch; use 1 where prompts trickle in.

    Raises:
        TypeError: `prompts` is a single prompt.
        ValueError: `batch_size` is below 1.
        TextError: A text has no UTF-8 form. The batches before it have been yielded.

    """
    if isinstance(prompts, str | Prompt):
        kind = type(prompts).__name__
        raise TypeError(f"prompts must be several prompts, not one {kind}: write encode_prompts([prompt], encoder)")
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} is below 1")
    source = Owned(prompts if isinstance(prompts, AsyncIterable) else _each(prompts))
    return Stage(_encode_prompts(source, encoder, batch_size), source)


async def _encode_prompts(prompts: Owned, encoder: Encoder, batch_size: int) -> AsyncGenerator[NDArray[np.int32], None]:
    batch: list[str | Prompt] = []
    try:
        async for prompt in prompts:
            batch.append(prompt)
            if len(batch) == batch_size:
                for ids in await encode_all(batch, encoder):
                    yield ids
                batch = []
        if batch:
            for ids in await encode_all(batch, encoder):
                yield ids
    finally:
        await prompts.aclose()


async def _each(prompts: Iterable[str | Prompt]) -> AsyncGenerator[str | Prompt, None]:
    for prompt in prompts:
        yield prompt
