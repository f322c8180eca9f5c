"""Encoders of prompts: the protocols, and several prompts encoded at once."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

import anyio
import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.batching.worker_thread import run_in_thread
from tokenweir.templates.prompt import Prompt


@runtime_checkable
class BatchEncoder(Protocol):
    """An encoder of many prompts in one blocking call, such as a GPU's."""

    def encode_batch(self, prompts: Sequence[str | Prompt], /) -> Any:
        """Return the ids of each prompt, in order: an iterable of arrays, or an object whose `to_host()` returns one."""
        ...


@runtime_checkable
class PromptEncoder(Protocol):
    """An encoder of single prompts that batches concurrent calls, such as `PromptBatcher`."""

    def encode(self, prompt: str | Prompt, /) -> Awaitable[Any]:
        """Return an awaitable of the ids of a prompt, as a sequence or an array."""
        ...


Encoder = Tokenizer | BatchEncoder | PromptEncoder


def check_encoder(encoder: object) -> None:
    """Check that a value is an encoder of prompts or None.

    Raises:
        TypeError: It is neither, or it is a class instead of an object; the message names the type.

    """
    if isinstance(encoder, type):
        raise TypeError(f"encoder is the class {encoder.__name__} itself, not one of its objects")
    if encoder is None or (isinstance(encoder, BatchEncoder | PromptEncoder) and not isinstance(encoder, str)):
        return
    raise TypeError(f"an encoder has encode_batch() or an async encode(), and {type(encoder).__name__} has neither")


async def encode_all(prompts: Sequence[str | Prompt], encoder: Encoder) -> list[NDArray[np.int32]]:
    """Encode several prompts concurrently; return the ids of each, in their order.

    Args:
        prompts: Texts or rendered prompts.
        encoder: The tokenizer, or an encoder in its place.

    Raises:
        TypeError: The encoder has no encoding method.
        Exception: The first error of the encoder, which cancels the other prompts.

    """
    check_encoder(encoder)
    if isinstance(encoder, Tokenizer | BatchEncoder):
        return await run_in_thread(partial(encode_batch, prompts, encoder))
    results: list[Any] = [None] * len(prompts)
    failures: list[Exception] = []

    async def encode(place: int) -> None:
        try:
            results[place] = await encoder.encode(prompts[place])
        except Exception as error:  # noqa: BLE001 - raised below, without an ExceptionGroup
            failures.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for place in range(len(prompts)):
            tasks.start_soon(encode, place)
    if failures:
        raise failures[0]
    return [np.asarray(ids, dtype=np.int32) for ids in results]


def encode_batch(prompts: Sequence[str | Prompt], encoder: Tokenizer | BatchEncoder) -> list[NDArray[np.int32]]:
    """Encode several prompts in one blocking call; return the ids of each, in their order.

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
    """Encode texts as `tokenizer.encode` does and prompts as `Prompt.encode` does, on several threads."""
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
