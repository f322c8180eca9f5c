"""Many callers, one batch: prompts that come at the same time are encoded together.

While one batch is encoded the next one gathers, so batches grow with the load by themselves: a lone prompt goes at
once, and where prompts come faster than a processor encodes them, batches become large enough for a GPU to be worth it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from types import TracebackType
from typing import Self

import anyio
import numpy as np
from anyio import to_thread
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer, check_tokenizer
from tokenweir.stream.prompts.batching.calibrate import measure_crossover
from tokenweir.stream.prompts.batching.prompt_encoding import BatchEncoder, check_encoder, encode_batch
from tokenweir.templates.prompt import Prompt

logger = logging.getLogger("tokenweir.batcher")

BATCH_CHARACTERS = 1 << 24
"""A batch that has as many is full, so that what is encoded at once stays bounded where prompts are long."""

Outcome = NDArray[np.int32] | Exception


@dataclass(eq=False)
class _Caller:
    """A call of `PromptBatcher.encode` that waits for the ids of its prompt.

    Attributes:
        prompt: The prompt.
        since: The time of its arrival, by the event loop's clock.
        answered: Set when `outcome` is set.
        outcome: The ids, or the error to raise; None while the prompt waits.

    """

    prompt: str | Prompt
    since: float
    answered: anyio.Event = field(default_factory=anyio.Event)
    outcome: Outcome | None = None

    def answer(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.answered.set()


class PromptBatcher:
    """Gather prompts of many tasks into batches and encode each batch in one call.

        async with PromptBatcher(GpuEncoder(tokenizer)) as batcher:
            ids = await batcher.encode(prompt)          # in any number of tasks

    Batches are encoded one at a time, in a worker thread, in the order in which prompts came. Where there is a choice,
    batches below `crossover` bytes go to the tokenizer and the others to the batch encoder; the ids are the same.

    A prompt that cannot be encoded harms no other: if a batch fails, its prompts are encoded one by one, by the
    tokenizer if there is one, and each caller gets the error of its own prompt only. So a batch encoder that dies costs
    time and a line in the log, "tokenweir.batcher", while there is a tokenizer.

    A caller that is cancelled leaves the line. Leaving the context waits until all who called have their ids; leaving
    it by an exception or a cancellation waits for the batch under way, and those still in line get a RuntimeError.

    Runs under asyncio and trio. A batcher is entered once, and belongs to the event loop in which it was.

    Attributes:
        crossover: Bytes of UTF-8 from which a batch goes to the batch encoder; None until it is measured, which is when
            the context is entered.
        batches: Batches encoded so far.
        cpu_batches: Those of them that the tokenizer encoded.
        failed_batches: Those of them that failed, and whose prompts were encoded one by one.

    """

    def __init__(
        self,
        encoder: Tokenizer | BatchEncoder,
        *,
        cpu: Tokenizer | None = None,
        max_batch: int = 256,
        max_delay: float = 0.0,
        max_waiting: int = 4096,
        crossover: float | None = None,
    ) -> None:
        """Create a batcher, which takes prompts once its context is entered.

        Args:
            encoder: Encodes the batches: a `Tokenizer`, or a batch encoder of texts and `Prompt` objects, such as a
                `tokenweir.gpu.GpuEncoder`.
            cpu: The tokenizer of the same vocabulary, for batches too small to be worth the encoder; None is the
                `tokenizer` of the encoder itself, as a `GpuEncoder` has one.
            max_batch: Most prompts in a batch.
            max_delay: Most seconds that a prompt waits for others. There is no delay after a batch of one prompt, so a lone
                caller does not wait. 0 gathers the prompts of one iteration of the event loop, and those that arrive
                while another batch is encoded.
            max_waiting: Most prompts in line or being encoded; callers beyond that wait for room.
            crossover: Bytes of UTF-8 from which a batch goes to `encoder`, and not to the tokenizer. None measures it when
                the context is entered, which takes about half a second; 0 gives `encoder` all batches. It has no effect
                unless there are both a batch encoder and a tokenizer.

        Raises:
            TypeError: `encoder` or `cpu` is of the wrong type.
            ValueError: `max_batch` or `max_waiting` is below 1, or `max_delay` or `crossover` below 0.

        """
        check_encoder(encoder)
        if not isinstance(encoder, BatchEncoder):
            raise TypeError(f"a PromptBatcher's encoder has encode_batch(), and {type(encoder).__name__} has none")
        if cpu is not None:
            check_tokenizer(cpu, "cpu")
        for name, value, least in (
            ("max_batch", max_batch, 1),
            ("max_waiting", max_waiting, 1),
            ("max_delay", max_delay, 0),
            ("crossover", crossover or 0, 0),
        ):
            if not value >= least:
                raise ValueError(f"{name}={value} is below {least}")
        self._encoder: Tokenizer | BatchEncoder = encoder
        own = encoder if isinstance(encoder, Tokenizer) else getattr(encoder, "tokenizer", None)
        self._tokenizer = cpu if cpu is not None else own if isinstance(own, Tokenizer) else None
        self._max_batch = max_batch
        self._max_delay = max_delay
        self._max_waiting = max_waiting
        self.crossover = inf if isinstance(encoder, Tokenizer) else 0.0 if self._tokenizer is None else crossover
        self.batches = self.cpu_batches = self.failed_batches = 0
        self._line: OrderedDict[_Caller, None] = OrderedDict()
        self._callers = 0  # in `encode`, whether in line or not
        self._last_batch = 0  # prompts in it
        self._tasks: TaskGroup | None = None
        self._open = self._ended = False  # takes prompts; takes them no more, and encodes none

    async def __aenter__(self) -> Self:
        """Measure the crossover if it is not given, and begin to take prompts.

        Raises:
            RuntimeError: The batcher was entered before.
            Exception: What the encoder raises for the measurement's texts.

        """
        if self._tasks is not None:
            raise RuntimeError("a PromptBatcher is entered once")
        self._tasks = anyio.create_task_group()
        if self.crossover is None and self._tokenizer is not None:
            self.crossover = await to_thread.run_sync(measure_crossover, self._encoder, self._tokenizer)
        self._room = anyio.Semaphore(self._max_waiting, fast_acquire=True)
        self._thread = anyio.CapacityLimiter(1)  # of its own: the shared ones may all be busy for long
        self._changed = anyio.Event()
        await self._tasks.__aenter__()
        self._open = True
        self._tasks.start_soon(self._encode_batches)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Refuse new prompts.

        Wait until all waiting ones are encoded, or, after an exception, only for the batch under way.
        """
        assert self._tasks is not None
        self._open = False
        self._changed.set()
        if error is not None:
            self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)  # with the error it would come out as a group

    async def encode(self, prompt: str | Prompt) -> NDArray[np.int32]:
        """Wait until a prompt is encoded in a batch; return its ids, int32[n].

        The ids are those of `Tokenizer.encode(text)`, and of `Prompt.encode(tokenizer)`.

        Args:
            prompt: A text, encoded with the tokenizer's own special tokens, or a rendered `Prompt`, without.

        Raises:
            TypeError: The prompt is neither.
            TextError: It has a lone surrogate.
            RuntimeError: The batcher is not open, or was left by an exception before the prompt's turn came.
            Exception: What the encoder raises for this prompt alone.

        """
        if not isinstance(prompt, str | Prompt):
            raise TypeError(f"a prompt must be str or Prompt, not {type(prompt).__name__}")
        if not self._open:
            raise RuntimeError("the PromptBatcher is not open: prompts are encoded inside its `async with`")
        self._callers += 1
        try:
            async with self._room:
                if self._ended:  # while it waited for room
                    raise _cut_off()
                caller = _Caller(prompt, anyio.current_time())
                self._line[caller] = None
                self._changed.set()
                try:
                    await caller.answered.wait()
                finally:
                    self._line.pop(caller, None)
        finally:
            self._callers -= 1
            if not self._callers:  # the last one, perhaps
                self._changed.set()
        if isinstance(caller.outcome, Exception):
            raise caller.outcome
        assert caller.outcome is not None
        return caller.outcome

    # -- the task that encodes -----------------------------------------------------------------------------------------

    async def _encode_batches(self) -> None:
        try:
            while batch := await self._gather():
                await self._answer(batch)
        finally:
            self._ended = True
            for caller in self._line:
                caller.answer(_cut_off())

    async def _gather(self) -> list[_Caller]:
        """Wait for callers, and return the next batch; an empty list once the context is left and no caller waits."""
        for _ in range(2):  # callers whose ids have just come may have another prompt; trio runs them in any order
            await checkpoint()
        while True:
            while not self._line:
                if not self._open and self._callers == 0:
                    return []
                await self._change()
            if self._max_delay and self._last_batch > 1:
                await self._company(next(iter(self._line)).since + self._max_delay)
            if self._line:
                return self._take()

    async def _company(self, deadline: float) -> None:
        with anyio.move_on_after(deadline - anyio.current_time()):
            while self._open and len(self._line) < self._max_batch:
                await self._change()

    def _take(self) -> list[_Caller]:
        batch: list[_Caller] = []
        characters = 0
        while self._line and len(batch) < self._max_batch and characters < BATCH_CHARACTERS:
            caller, _ = self._line.popitem(last=False)
            batch.append(caller)
            characters += len(_text(caller.prompt))
        return batch

    async def _change(self) -> None:
        """Wait until a caller joins the line, the last caller leaves `encode`, or the context is left."""
        self._changed = anyio.Event()
        await self._changed.wait()

    async def _answer(self, batch: Sequence[_Caller]) -> None:
        outcomes: Sequence[Outcome] = [_cut_off() for _ in batch]
        try:
            prompts = [caller.prompt for caller in batch]
            outcomes = await to_thread.run_sync(self._encode, prompts, limiter=self._thread)
        except Exception as error:  # noqa: BLE001 - no thread can be had; the next batch may get one
            outcomes = [error for _ in batch]
        finally:
            for caller, outcome in zip(batch, outcomes, strict=True):
                caller.answer(outcome)
        self._last_batch = len(batch)

    # -- in the worker thread ------------------------------------------------------------------------------------------

    def _encode(self, prompts: Sequence[str | Prompt]) -> Sequence[Outcome]:
        tokenizer, encoder = self._tokenizer, self._encoder
        self.batches += 1
        if tokenizer is not None and sum(map(_size, prompts)) < (self.crossover or 0):
            self.cpu_batches += 1
            encoder = tokenizer
        try:
            # Copies: an array of its own does not keep the ids of the whole batch alive.
            return [ids.copy() for ids in encode_batch(prompts, encoder)]
        except Exception as error:  # noqa: BLE001 - an encoder can fail in any way
            self.failed_batches += 1
            outcomes = [self._encode_alone(prompt) for prompt in prompts]
            if not any(isinstance(outcome, Exception) for outcome in outcomes):
                logger.warning(
                    "a batch of %d prompts failed, each of which can be encoded alone: %s: %s",
                    len(prompts),
                    type(error).__name__,
                    error,
                )
            return outcomes

    def _encode_alone(self, prompt: str | Prompt) -> Outcome:
        try:
            if self._tokenizer is None:
                return encode_batch([prompt], self._encoder)[0].copy()
            ids = prompt.encode(self._tokenizer) if isinstance(prompt, Prompt) else self._tokenizer.encode_array(prompt)
            return np.asarray(ids, dtype=np.int32)
        except Exception as error:  # noqa: BLE001 - likewise
            return error


def _text(prompt: str | Prompt) -> str:
    return prompt if isinstance(prompt, str) else prompt.text


def _size(prompt: str | Prompt) -> int:
    text = _text(prompt)
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _cut_off() -> RuntimeError:
    return RuntimeError("the PromptBatcher was left by an exception before this prompt was encoded")
