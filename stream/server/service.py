"""What all connections of a server share: its models, its limits, what is counted, and the responses in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from tokenweir.stream.delivery.replay_buffer import ReplayBuffer
from tokenweir.stream.events import Delta
from tokenweir.stream.server.admission import Admission
from tokenweir.stream.server.conversations import Conversations
from tokenweir.stream.server.generation import Generation
from tokenweir.stream.server.job import Answer, Job
from tokenweir.stream.server.limits import Limits
from tokenweir.stream.server.metrics import Metrics
from tokenweir.stream.server.wire.errors import RequestError

T = TypeVar("T")

DEFAULT = "default"
"""The name that always means the first model."""
MAX_INTERVAL = 0.1
CLOSE_GRACE = 1.0
"""Seconds that an engine gets to stop when the server closes."""


class Service:
    """What all connections of a server share.

    Args:
        answer: What answers.
        models: The names of the models; the first is the default.
        limits: What clients may cost.
        reasoning_events: `reasoning_text` names the events of thinking as OpenAI does, `reasoning` as Open Responses.

    Attributes:
        draining: Whether the server takes no more requests.

    """

    def __init__(
        self,
        answer: Answer,
        models: Sequence[str],
        limits: Limits | None = None,
        *,
        reasoning_events: str = "reasoning_text",
    ) -> None:
        if reasoning_events not in ("reasoning_text", "reasoning"):
            raise ValueError(f"reasoning_events is reasoning_text or reasoning, not {reasoning_events!r}")
        self.models = list(models)
        self.limits = limits or Limits()
        self.reasoning_events = reasoning_events
        self.metrics = Metrics(self.models)
        self.admission = Admission(self.limits)
        self.conversations = Conversations(self.limits.max_stored_bytes, self.limits.max_message_bytes)
        self.draining = False
        self._answer = answer
        self._running: set[Generation[Any]] = set()

    @property
    def interval(self) -> float:
        """Seconds between two events of a stream, at the server's present load."""
        limits = self.limits
        adaptive = limits.send_interval + limits.send_interval_per_stream * len(self._running)
        return max(limits.send_interval, min(MAX_INTERVAL, adaptive))

    def model(self, name: str | None) -> str:
        """The model that a request means.

        Raises:
            RequestError: There is none of this name; names those that there are.

        """
        if name is None or (name == DEFAULT and name not in self.models):
            return self.models[0]
        if name not in self.models:
            raise RequestError(
                f"no model {name[:80]!r}; served are {', '.join(self.models)}",
                code="model_not_found",
                param="model",
                status=404,
            )
        return name

    def check_max_tokens(self, asked: int | None, field: str) -> None:
        """Refuse more tokens than an answer may have."""
        limit = self.limits.max_output_tokens
        if asked is not None and asked > limit:
            raise RequestError(f"{field} is {asked}; this server gives {limit} at most", param=field)

    def check_open(self) -> None:
        """Refuse a request while the server is closing."""
        if self.draining:
            raise RequestError("the server is shutting down", code="server_shutting_down", status=503, retry_after=5)

    def generate(
        self,
        answer_id: str,
        job: Job,
        client: str,
        *,
        replay: ReplayBuffer[T],
        make: Callable[[Iterable[Delta]], Iterable[T]],
        ending: Callable[[RequestError | None], Iterable[T]] | None = None,
        on_end: Callable[[], object] = lambda: None,
        grace: float = 0.0,
    ) -> Generation[T]:
        """Make an answer, which is to be started; arguments as for `Generation`.

        Raises:
            RequestError: There is no place for it, or the server is closing.

        """
        self.check_open()
        free = self.admission.generate(client)
        meter = self.metrics.meter(job.model)

        def end() -> None:
            free()
            self._running.discard(generation)
            on_end()

        generation = Generation(
            answer_id,
            self._answer(job, meter),
            replay=replay,
            make=make,
            limits=self.limits,
            meter=meter,
            ending=ending,
            on_end=end,
            grace=grace,
        )
        self._running.add(generation)
        return generation

    async def close(self, also: Iterable[Coroutine[Any, Any, None]] = ()) -> None:
        """Stop all that is in flight, and wait until it has ended or was abandoned, and for `also`."""
        self.draining = True
        running = list(self._running)
        for generation in running:
            generation.drop()
        await asyncio.gather(*also, *(generation.wait_ended(CLOSE_GRACE) for generation in running))
