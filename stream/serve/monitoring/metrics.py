"""Metrics in Prometheus' text format: vLLM's names under the prefix `tokenweir:`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec
from msgspec import Struct
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from tokenweir.stream.events.deltas import Finish
from tokenweir.stream.prompts.cache.prompt_cache import CacheCounts
from tokenweir.stream.serve.monitoring.tracing import AnswerSpan

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the histograms' buckets, in seconds."""


class _Histogram(Struct):
    """Histogram of durations in seconds, with one bucket for each bound in `_BOUNDS` and one above them.

    It has no lock, which makes it faster than prometheus_client's.
    """

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    sum: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        total, rows = 0, []
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self.counts, strict=True):
            total += count
            rows.append((bound, float(total)))
        return rows

    def join(self, other: _Histogram) -> None:
        self.counts = [one + two for one, two in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum


class _Family(NamedTuple):
    """Metric of a counter, as Prometheus shows it.

    Attributes:
        kind: The class of the metric.
        name: Its name, without the prefix.
        text: Its help text.
        label: The label that has the keys of a counter that is a dict.

    """

    kind: type[Any]
    name: str
    text: str
    label: str = ""


_gauge, _counter = partial(_Family, GaugeMetricFamily), partial(_Family, CounterMetricFamily)
_histogram = partial(_Family, HistogramMetricFamily)


class _Model(Struct):
    """Counters of one model, and histograms of its durations in seconds, each with its metric."""

    running: Annotated[int, _gauge("num_requests_running", "Requests whose engine is at work.")] = 0
    waiting: Annotated[
        int, _gauge("num_requests_waiting", "Requests whose prompt is not encoded yet: the depth of the queue.")
    ] = 0
    pending_bytes: Annotated[int, _gauge("pending_bytes", "Memory of deltas that wait for their readers.")] = 0
    prompt_tokens: Annotated[int, _counter("prompt_tokens", "Tokens of prompts.")] = 0
    generation_tokens: Annotated[int, _counter("generation_tokens", "Tokens of answers.")] = 0
    cached_tokens: Annotated[
        int, _counter("prompt_tokens_cached", "Tokens of prompts that the engine had in its prefix cache.")
    ] = 0
    cut_off: Annotated[int, _counter("readers_cut_off", "Readers that were too slow.")] = 0
    ended: Annotated[dict[str, int], _counter("request_success", "Answers, by why they ended.", "finished_reason")] = {}
    first_token: Annotated[
        _Histogram, _histogram("time_to_first_token_seconds", "From the request to its first token.")
    ] = msgspec.field(default_factory=_Histogram)
    inter_token: Annotated[
        _Histogram, _histogram("inter_token_latency_seconds", "Between two pieces of a request's answers.")
    ] = msgspec.field(default_factory=_Histogram)
    whole: Annotated[
        _Histogram, _histogram("e2e_request_latency_seconds", "From the request to the end of its answer.")
    ] = msgspec.field(default_factory=_Histogram)
    queue: Annotated[
        _Histogram, _histogram("request_queue_time_seconds", "From the request to the start of its engine.")
    ] = msgspec.field(default_factory=_Histogram)


class Counts(Struct):
    """All counters of one worker, as sent to other workers, each with its metric."""

    models: dict[str, _Model]
    connections: Annotated[int, _gauge("connections", "Sockets and requests that are open.")] = 0
    idle_connections: Annotated[int, _gauge("idle_connections", "Sockets without a request of a client.")] = 0
    incoming_bytes: Annotated[int, _gauge("incoming_bytes", "Bytes of requests that are arriving.")] = 0
    outgoing_bytes: Annotated[int, _gauge("outgoing_bytes", "Bytes of answers that wait for slow readers.")] = 0
    abandoned_engines: Annotated[
        int, _gauge("abandoned_engines", "Engines that go on although their answers have ended.")
    ] = 0
    stored_bytes: Annotated[
        int, _gauge("stored_bytes", "Memory of conversations and cached prompts, in the budget.")
    ] = 0
    evicted: Annotated[
        int, _counter("stored_evicted", "Conversations and prompts dropped, since the budget was full.")
    ] = 0
    refused: Annotated[dict[str, int], _counter("requests_refused", "Requests refused, by error code.", "code")] = {}
    slowed_down: Annotated[
        dict[str, int], _counter("rate_limited", "Requests above a rate of their client, by its unit.", "unit")
    ] = {}
    aborted: Annotated[
        dict[str, int], _counter("connections_aborted", "Sockets that were reset, by reason.", "reason")
    ] = {}
    prompts: CacheCounts = msgspec.field(default_factory=CacheCounts)


def _families_of(counts: type[Struct]) -> dict[str, _Family]:
    """Return the metrics that a struct declares, by the names of their fields."""
    hints = get_type_hints(counts, include_extras=True)
    return {name: family for name, hint in hints.items() for family in getattr(hint, "__metadata__", ())}


_OF_MODELS, _OF_WORKER = _families_of(_Model), _families_of(Counts)
_OF_PROMPTS = {
    "reused_ids": _counter("prompt_ids_reused", "Ids of prompts taken over from earlier prompts."),
    "encoded_ids": _counter("prompt_ids_encoded", "Ids of prompts encoded beside the cache of prompts."),
    "kept_ids": _counter("prompt_ids_kept", "Ids of prompts that are those an engine sampled."),
    "declined": _counter(
        "prompts_declined", "Prompts that keep less than all of an earlier answer, by reason.", "reason"
    ),
    "wrong": _counter("prompts_wrong", "Cached prompts that a check found wrong; any is a bug."),
}


class Metrics(Counts, eq=False):
    """All metrics of a server. Not thread-safe: used in the server's event loop only."""

    @classmethod
    def of(cls, models: Iterable[str]) -> Metrics:
        """Return metrics of these models, without counts."""
        return cls({name: _Model() for name in models})

    def meter(
        self, model: str, span: AnswerSpan | None = None, charge: Callable[[int], object] = lambda _: None
    ) -> Meter:
        """Count a request that begins now, and return the meter of its answers.

        Args:
            model: The name of the model.
            span: The span that the meter updates; None without tracing.
            charge: Called at the end of the request with the number of its tokens, those of the prompt included.

        """
        return Meter(self.models[model], span, charge)

    def cut_off(self, model: str) -> None:
        """Count a reader that was disconnected because it read too slowly."""
        self.models[model].cut_off += 1

    def refuse(self, code: str) -> None:
        """Count a refused request by its error code."""
        self.refused[code] = self.refused.get(code, 0) + 1

    def slow_down(self, unit: str) -> None:
        """Count a request that was refused because of the rate limit on "requests" or "tokens", as `unit` says."""
        self.slowed_down[unit] = self.slowed_down.get(unit, 0) + 1

    def abort(self, reason: str) -> None:
        """Count a socket that was reset, by the reason."""
        self.aborted[reason] = self.aborted.get(reason, 0) + 1

    def evict(self) -> None:
        """Count a conversation or prompt that was dropped because the memory budget was full."""
        self.evicted += 1

    def add(self, counts: Counts) -> None:
        """Add another worker's counters to these; the worker must serve the same models."""
        _join(self, counts)

    def text(self, others: Sequence[Counts] = ()) -> bytes:
        """Return the metrics in Prometheus' text format, with the counters of `others` (other workers) added."""
        shown = self
        if others:
            shown = Metrics.of(self.models)
            for counts in (self, *others):
                shown.add(counts)
        registry = CollectorRegistry()
        registry.register(shown)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families; prometheus_client calls it for each scrape."""
        by_model: dict[tuple[str, ...], Struct] = {(model,): counted for model, counted in self.models.items()}
        yield from _metrics(_OF_MODELS, ("model_name",), by_model)
        yield from _metrics(_OF_WORKER, (), {(): self})
        yield from _metrics(_OF_PROMPTS, (), {(): self.prompts})


def _metrics(
    families: Mapping[str, _Family], labels: tuple[str, ...], structs: Mapping[tuple[str, ...], Struct]
) -> Iterator[Metric]:
    """Yield the metrics of structs with the same fields, each with the values of its labels."""
    for field, family in families.items():
        names = (*labels, family.label) if family.label else labels
        metric = family.kind("tokenweir:" + family.name, family.text, labels=names)
        for values, struct in structs.items():
            match getattr(struct, field):
                case _Histogram() as measured:
                    metric.add_metric(values, measured.buckets(), measured.sum)
                case dict() as numbers:
                    for cause, number in numbers.items():
                        metric.add_metric((*values, cause), number)
                case number:
                    metric.add_metric(values, number)
        yield metric


def _join(own: Any, other: Struct) -> None:
    """Add the counters of `other` to those of `own` with the same names, histograms and dicts included."""
    for name in other.__struct_fields__:
        mine, more = getattr(own, name), getattr(other, name)
        match mine:
            case _Histogram():
                mine.join(more)
            case dict():
                for key, counted in more.items():
                    if isinstance(counted, _Model):
                        _join(mine[key], counted)
                    else:
                        mine[key] = mine.get(key, 0) + counted
            case _:
                setattr(own, name, mine + more)


class Meter:
    """Counts the tokens and durations of one request, for its model's metrics, its span and its client's rate limit."""

    def __init__(self, model: _Model, span: AnswerSpan | None, charge: Callable[[int], object]) -> None:
        self.tokens = self._prompt_tokens = self._cached = 0
        self._model = model
        self._charge = charge
        self._span = span
        self._begun = monotonic()
        self._last = 0.0
        self._started = self._ended = self._finished = False
        model.waiting += 1

    def start(self, prompt_tokens: int) -> None:
        """Record that the prompt is encoded, with `prompt_tokens` tokens, and that the engine starts."""
        self._started = True
        self._prompt_tokens = prompt_tokens
        self._model.waiting -= 1
        self._model.running += 1
        self._model.queue.add(monotonic() - self._begun)
        if self._span is not None:
            self._span.start()

    def arrive(self, now: float) -> None:
        """Record that the engine has given tokens; `now` is the time of `time.monotonic`."""
        if self._last:
            latency, histogram = now - self._last, self._model.inter_token
            # `add` inlined: this runs for every token
            histogram.counts[bisect_left(_BOUNDS, latency)] += 1
            histogram.sum += latency
        else:
            self._model.first_token.add(now - self._begun)
            if self._span is not None:
                self._span.first_token()
        self._last = now

    def finish(self, finish: Finish) -> None:
        """Count the tokens and the finish reason of one of the request's answers."""
        model, usage = self._model, finish.usage
        if not self._finished:  # several answers share one prompt
            self._finished = True
            model.prompt_tokens += usage.prompt_tokens
        model.cached_tokens += max(0, usage.cached_tokens - self._cached)
        self._cached = max(self._cached, usage.cached_tokens)
        model.generation_tokens += usage.completion_tokens
        reason = str(finish.reason)
        model.ended[reason] = model.ended.get(reason, 0) + 1
        if self._span is not None:
            self._span.finish(finish)

    def end(self, error: str | None = None) -> None:
        """Record the end of the request; `error` is the error code that its client gets, None for a success.

        Calls after the first are no-ops.
        """
        if not self._ended:
            self._ended = True
            self._charge(self._prompt_tokens + self.tokens)
            if self._started:
                self._model.running -= 1
            else:
                self._model.waiting -= 1
            self._model.whole.add(monotonic() - self._begun)
            if self._span is not None:
                self._span.end(error)
