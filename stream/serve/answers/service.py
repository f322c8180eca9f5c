"""State shared by all connections of a server: models, limits, metrics and answers in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from tokenweir.stream.chat.replay_buffer import ReplayBuffer
from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.prompts.cache.ledger import Ledger
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.stream.serve.answers.conversations import Conversations
from tokenweir.stream.serve.answers.generation import Generation, abandoned
from tokenweir.stream.serve.answers.job import Job
from tokenweir.stream.serve.answers.job_runner import RunJob
from tokenweir.stream.serve.answers.pacer import Pacer
from tokenweir.stream.serve.limits.admission import Admission, undone_by
from tokenweir.stream.serve.limits.connections import Connections
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.limits.rates import Rates
from tokenweir.stream.serve.limits.turns import InputTurns
from tokenweir.stream.serve.monitoring.metrics import Counts, Metrics
from tokenweir.stream.serve.monitoring.tracing import INSTALLED, AnswerSpan
from tokenweir.stream.serve.wire.responses.response_object import Item
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.transport import Transport

T = TypeVar("T")

DEFAULT = "default"
"""The name that always means the first model."""
CLOSE_GRACE = 1.0
"""Timeout in seconds for engines to stop when the server closes."""


class PeerLinks(Protocol):
    """Links to the other worker processes of a server; `Peers` implements it."""

    async def conversation(self, response_id: str, client: str) -> bytes | None:
        """Return the messages up to and including another worker's response, as JSON; None if it is unknown."""
        ...

    async def items(self, item_ids: list[str], client: str) -> dict[str, Item]:
        """Return output items of stored answers that other workers have, by their ids; unknown ids are left out."""
        ...

    async def delete(self, response_id: str, client: str) -> bool:
        """Delete a response that another worker has, and stop it if it runs.

        Args:
            response_id: The response's id, which names its worker.
            client: The name of the client that asks; responses of other clients count as unknown.

        Returns:
            Whether it was deleted; False if it is unknown, if this worker has it, or if its worker is gone or does not
            answer in time.

        """
        ...

    async def converse(self, response_id: str, client: str) -> Transport | None:
        """Return a connection to the worker that has the response, on which its events can be read.

        None if that is this worker, or a worker that is gone.
        """
        ...

    async def counts(self) -> list[Counts]:
        """Return the metrics' counts of the other workers."""
        ...


class Service:
    """State that all connections of a server share: models, limits, metrics and answers in progress.

    Args:
        answer: Callable that generates the answers to jobs.
        models: The names of the models; the first one is the default.
        limits: The server's limits; None takes the defaults.
        reasoning_events: Names of the events of thinking: `reasoning_text` as OpenAI has them, `reasoning` as Open
            Responses.
        ledger: Counts the bytes of what is stored; None makes a new one.
        prompts: Cache of prompts, whose counts become metrics; None without one.
        default_max_tokens: Most tokens of an answer to a request that sets no limit, by model; the server's limit for a model
            that is not there.

    Attributes:
        worker: The name of this process among the workers of a server; empty if it is the only one.
        peers: The other workers; None without workers.
        conversations: The conversations that `previous_response_id` can continue.
        draining: Whether the server takes no more requests.
        sockets: The open connections, with the bytes that arrive and those that wait for slow readers.

    """

    def __init__(
        self,
        answer: RunJob,
        models: Sequence[str],
        limits: Limits | None = None,
        *,
        reasoning_events: str = "reasoning_text",
        ledger: Ledger | None = None,
        prompts: PromptCache | None = None,
        default_max_tokens: Mapping[str, int] | None = None,
    ) -> None:
        self.models = list(models)
        self.limits = limits or Limits()
        self._default_max_tokens = default_max_tokens or {}
        self.reasoning_events = reasoning_events
        self.metrics = Metrics.of(self.models)
        self.admission = Admission(self.limits)
        self.sockets = Connections(self.limits, self.admission, self.metrics.abort)
        self.rates = Rates(self.limits, refused=self.metrics.slow_down)
        self.ledger = Ledger(self.limits.max_stored_bytes) if ledger is None else ledger
        self.ledger.on_evict = lambda _: self.metrics.evict()
        self.prompts = prompts
        self.conversations = Conversations(self.ledger, self.limits.max_message_bytes)
        self.worker = ""
        self.peers: PeerLinks | None = None
        self.draining = False
        self.turns = InputTurns()
        self.pacer = Pacer(self.limits.send_interval, self.limits.max_send_interval, lambda: self.turns.total)
        self._answer = answer
        self._running: dict[Generation[Any], str] = {}  # with their models

    def counts(self) -> Counts:
        """Update the metrics and return their current counts."""
        for model in self.metrics.models.values():
            model.pending_bytes = 0
        for generation, name in self._running.items():
            self.metrics.models[name].pending_bytes += generation.pending_bytes
        self.metrics.connections = self.admission.connections
        self.metrics.idle_connections = self.sockets.idle
        self.metrics.outgoing_bytes = self.sockets.outgoing.held
        self.metrics.incoming_bytes = self.sockets.incoming.held
        self.metrics.stored_bytes = self.ledger.bytes
        self.metrics.abandoned_engines = abandoned()
        if self.prompts is not None:
            self.metrics.prompts = self.prompts.counts
        return self.metrics

    def model(self, name: str | None) -> str:
        """Return the name of the model that a request selects; the default model if `name` is None.

        Raise `RequestError` with the list of models for an unknown name.
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
        """Raise `RequestError`, which names `field`, if more tokens are asked for than an answer may have."""
        limit = self.limits.max_output_tokens
        if asked is not None and asked > limit:
            raise RequestError(f"{field} is {asked}; this server gives {limit} at most", param=field)

    def max_tokens(self, asked: int | None, model: str) -> int:
        """Return the most tokens of an answer by a model to a request that asks for `asked` tokens, or sets no limit."""
        return asked or self._default_max_tokens.get(model, self.limits.max_output_tokens)

    def check_choices(self, n: int, prompts: int = 1) -> None:
        """Raise `RequestError` if `n` answers to each of `prompts` prompts are more than a request may have."""
        limit, field = self.limits.max_choices, "n" if n > 1 else "prompt"
        if n * prompts > limit:
            raise RequestError(
                f"{field} asks for {n * prompts} answers; this server gives {limit} at most", param=field
            )

    def check_open(self) -> None:
        """Raise `RequestError` if the server is shutting down."""
        if self.draining:
            raise RequestError("the server is shutting down", code="server_shutting_down", status=503, retry_after=5)

    def generate(
        self,
        answer_id: str,
        job: Job,
        client: str,
        *,
        replay: ReplayBuffer[T],
        make: Callable[[list[Delta]], Iterable[T]],
        ending: Callable[[RequestError | None], Iterable[T]] | None = None,
        grace: float = 0.0,
        first: Iterable[T] = (),
    ) -> Generation[T]:
        """Start the generation of an answer to a job.

        Args:
            answer_id: The id of the answer.
            job: The request.
            client: The name of the client.
            replay: As for `Generation`, like all other arguments.
            first: As for `Generation.start`.

        Raises:
            RequestError: Too many answers are in progress, or the server is closing.

        """
        self.check_open()
        free = self.admission.generate(client)
        with undone_by(free):
            span = AnswerSpan(answer_id, job.model, job) if INSTALLED else None
            meter = self.metrics.meter(job.model, span, charge=partial(self.rates.tokens, client))

        def end(generation: Generation[T]) -> None:
            generation.when_stopped(free)  # an abandoned engine keeps its place
            del self._running[generation]
            if not self._running:
                self.pacer.stop()

        generation = Generation(
            answer_id,
            self._answer(replace(job, tenant=client), meter),
            replay=replay,
            make=make,
            limits=self.limits,
            pacer=self.pacer,
            meter=meter,
            ending=ending,
            on_end=end,
            grace=grace,
        )
        self._running[generation] = job.model
        self.pacer.start()
        generation.start(first)
        return generation

    async def close(self, also: Iterable[Coroutine[Any, Any, None]] = ()) -> None:
        """Refuse new requests and stop all answers; wait until they have ended or been abandoned.

        `also` are coroutines that run, and are waited for, at the same time.
        """
        self.draining = True
        running = list(self._running)
        for generation in running:
            generation.drop()
        await asyncio.gather(*also, *(generation.wait_ended(CLOSE_GRACE) for generation in running))
