"""Prompts in: the async stage that encodes many of them, in order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import anyio
import numpy as np
from anyio import to_thread
from numpy.typing import NDArray

from tokenweir.encode.options import check_integers
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.pipeline.stages import Owned, Stage
from tokenweir.templates.prompt import Prompt


@runtime_checkable
class BatchEncoder(Protocol):
    """What encodes many prompts in one blocking call, as a GPU does best."""

    def encode_batch(self, prompts: Sequence[str | Prompt], /) -> Any:
        """Prompts to something that iterates over arrays of ids, or whose `to_host()` does."""
        ...


@runtime_checkable
class PromptEncoder(Protocol):
    """What encodes one prompt and makes batches of those that are under way, as `PromptBatcher` does."""

    def encode(self, prompt: str | Prompt, /) -> Awaitable[Any]:
        """A prompt to a sequence or array of ids."""
        ...


Encoder = Tokenizer | BatchEncoder | PromptEncoder


def check_encoder(encoder: object) -> None:
    """Refuse what is no encoder, nor None.

    Raises:
        TypeError: It is neither.

    """
    if isinstance(encoder, type):
        raise TypeError(f"encoder is the class {encoder.__name__} itself, not one of its objects")
    if encoder is None or (isinstance(encoder, BatchEncoder | PromptEncoder) and not isinstance(encoder, str)):
        return
    raise TypeError(f"an encoder has encode_batch() or an async encode(), and {type(encoder).__name__} has neither")


def encode_prompts(
    prompts: Iterable[str | Prompt] | AsyncIterable[str | Prompt], encoder: Encoder, *, batch_size: int = 64
) -> AsyncGenerator[NDArray[np.int32], None]:
    """Encode prompts as they come; yield the ids of each, int32, in the prompts' order.

    Encoding runs in a worker thread. The stage owns `prompts` and closes it if it can be closed. It reads at most
    `batch_size` prompts ahead of what it has yielded.

    Args:
        prompts: Texts, encoded with the tokenizer's own special tokens, or each a rendered `Prompt`, without.
        encoder: The tokenizer or whatever encodes in its place. A `PromptBatcher` puts the prompts into the batches
            that it makes for everybody.
        batch_size: How many prompts are encoded at once. So many are waited for; 1 is right where they trickle in.

    Raises:
        TypeError: There is one prompt in place of several, or an argument is of the wrong type.
        ValueError: `batch_size` is below 1.
        TextError: A text has no UTF-8 form. The batches before it have been given.

    """
    if isinstance(prompts, str | Prompt):
        kind = type(prompts).__name__
        raise TypeError(f"prompts must be several prompts, not one {kind}: write encode_prompts([prompt], encoder)")
    if not isinstance(prompts, Iterable | AsyncIterable):
        raise TypeError(f"prompts must be several prompts, not {type(prompts).__name__}")
    check_integers(batch_size=batch_size)
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


async def encode_all(prompts: Sequence[str | Prompt], encoder: Encoder) -> list[NDArray[np.int32]]:
    """Encode some prompts at once, in their order.

    Args:
        prompts: Texts or rendered prompts.
        encoder: As for `encode_prompts`.

    Raises:
        TypeError: The encoder can encode nothing.

    """
    check_encoder(encoder)
    if isinstance(encoder, Tokenizer | BatchEncoder):
        return await to_thread.run_sync(encode_batch, prompts, encoder)
    results: list[Any] = [None] * len(prompts)
    failures: list[Exception] = []

    async def encode(place: int) -> None:
        try:
            results[place] = await encoder.encode(prompts[place])
        except Exception as error:  # noqa: BLE001 - raised below, and not as a group
            failures.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for place in range(len(prompts)):
            tasks.start_soon(encode, place)
    if failures:
        raise failures[0]
    return [np.asarray(ids, dtype=np.int32) for ids in results]


def encode_batch(prompts: Sequence[str | Prompt], encoder: Tokenizer | BatchEncoder) -> list[NDArray[np.int32]]:
    """Encode some prompts in one blocking call, in their order.

    Raises:
        RuntimeError: The encoder gave more or fewer results than there are prompts.

    """
    if isinstance(encoder, Tokenizer):
        return _encode(prompts, encoder)
    ragged = encoder.encode_batch(prompts)
    results = [np.asarray(ids, dtype=np.int32) for ids in (ragged.to_host() if hasattr(ragged, "to_host") else ragged)]
    if len(results) != len(prompts):
        raise RuntimeError(f"{type(encoder).__name__}.encode_batch() gave {len(results)} for {len(prompts)} prompts")
    return results


def _encode(prompts: Sequence[str | Prompt], tokenizer: Tokenizer) -> list[NDArray[np.int32]]:
    """What `tokenizer.encode` makes of texts and `Prompt.encode` of prompts, on several threads."""
    rendered = [prompt for prompt in prompts if isinstance(prompt, Prompt)]
    texts = iter(tokenizer.encode_batch(prompt for prompt in prompts if not isinstance(prompt, Prompt)))
    guarded = iter(
        tokenizer.encode_batch(
            [prompt.text for prompt in rendered],
            add_special_tokens=False,
            guarded=[prompt.guarded_for(tokenizer) for prompt in rendered],
        )
    )
    return [next(guarded if isinstance(prompt, Prompt) else texts) for prompt in prompts]


async def _each(prompts: Iterable[str | Prompt]) -> AsyncGenerator[str | Prompt, None]:
    for prompt in prompts:
        yield prompt
