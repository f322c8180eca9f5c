"""What a server tells a monitor: vLLM's names under the prefix `tokenweir:`, in Prometheus' text format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from time import monotonic
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from tokenweir.stream.events import Delta, Finish

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class _Histogram:
    """A histogram that costs half a microsecond to add to; prometheus_client's takes a lock."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_SECONDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_SECONDS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        total, rows = 0, []
        for bound, count in zip((*map(str, _SECONDS), "+Inf"), self.counts, strict=True):
            total += count
            rows.append((bound, float(total)))
        return rows


class _Model:
    """What is counted for one model."""

    def __init__(self) -> None:
        self.running = self.waiting = 0
        self.prompt_tokens = self.generation_tokens = 0
        self.ended: dict[str, int] = {}
        self.first_token, self.inter_token, self.whole, self.queue = (_Histogram() for _ in range(4))


class Metrics:
    """All that is counted. Not for threads: everything happens in the server's event loop."""

    def __init__(self, models: list[str]) -> None:
        self.cut_off = 0
        self.refused: dict[str, int] = {}
        self.connections = 0
        self._models = {name: _Model() for name in models}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def meter(self, model: str) -> Meter:
        """Count a request that begins now."""
        return Meter(self._models[model])

    def refuse(self, code: str) -> None:
        """Count a request that was refused."""
        self.refused[code] = self.refused.get(code, 0) + 1

    def text(self) -> bytes:
        """The metrics as a monitor reads them."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """Give the metrics to prometheus_client."""
        name = "tokenweir:"
        gauges = {
            "num_requests_running": ("Requests whose engine is at work.", "running"),
            "num_requests_waiting": ("Requests whose prompt is not encoded yet.", "waiting"),
        }
        for key, (text, attribute) in gauges.items():
            gauge = GaugeMetricFamily(name + key, text, labels=["model_name"])
            for model, counted in self._models.items():
                gauge.add_metric([model], getattr(counted, attribute))
            yield gauge
        counters = {
            "prompt_tokens": "Tokens of prompts.",
            "generation_tokens": "Tokens of answers.",
        }
        for key, text in counters.items():
            counter = CounterMetricFamily(name + key, text, labels=["model_name"])
            for model, counted in self._models.items():
                counter.add_metric([model], getattr(counted, key))
            yield counter
        success = CounterMetricFamily(
            name + "request_success", "Answers, by why they ended.", labels=["model_name", "finished_reason"]
        )
        for model, counted in self._models.items():
            for reason, number in counted.ended.items():
                success.add_metric([model, reason], number)
        yield success
        histograms = {
            "time_to_first_token_seconds": ("From the request to its first token.", "first_token"),
            "inter_token_latency_seconds": ("Between two pieces of an answer, for each token.", "inter_token"),
            "e2e_request_latency_seconds": ("From the request to the end of its answer.", "whole"),
            "request_queue_time_seconds": ("From the request to the start of its engine.", "queue"),
        }
        for key, (text, attribute) in histograms.items():
            histogram = HistogramMetricFamily(name + key, text, labels=["model_name"])
            for model, counted in self._models.items():
                measured: _Histogram = getattr(counted, attribute)
                histogram.add_metric([model], measured.buckets(), measured.sum)
            yield histogram
        yield GaugeMetricFamily(name + "connections", "Websockets that are open.", self.connections)
        yield CounterMetricFamily(name + "readers_cut_off", "Readers that were too slow.", self.cut_off)
        refused = CounterMetricFamily(name + "requests_refused", "Requests refused, by error code.", labels=["code"])
        for code, number in self.refused.items():
            refused.add_metric([code], number)
        yield refused


class Meter:
    """Counts one request."""

    def __init__(self, model: _Model) -> None:
        self._model = model
        self._begun = monotonic()
        self._last = 0.0
        self._started = self._ended = False
        model.waiting += 1

    def start(self) -> None:
        """The engine begins."""
        self._started = True
        self._model.waiting -= 1
        self._model.running += 1
        self._model.queue.add(monotonic() - self._begun)

    def count(self, delta: Delta) -> None:
        """Count the tokens of a delta."""
        model, now = self._model, monotonic()
        if isinstance(delta, Finish):
            usage = delta.usage
            model.prompt_tokens += usage.prompt_tokens
            model.generation_tokens += usage.completion_tokens
            reason = str(delta.reason)
            model.ended[reason] = model.ended.get(reason, 0) + 1
        elif self._last:
            model.inter_token.add(now - self._last)
        else:
            model.first_token.add(now - self._begun)
        self._last = now

    def end(self) -> None:
        """The request is over."""
        if not self._ended:
            self._ended = True
            if self._started:
                self._model.running -= 1
            else:
                self._model.waiting -= 1
            self._model.whole.add(monotonic() - self._begun)
