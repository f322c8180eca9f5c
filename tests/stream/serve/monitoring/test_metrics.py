"""Counters of the server, by themselves and joined over workers."""

from __future__ import annotations

import pytest

from tokenweir.stream.events.deltas import Finish, FinishReason, Usage
from tokenweir.stream.serve.monitoring.metrics import Metrics


@pytest.mark.parametrize(("cached", "counted"), [([5], 5), ([5, 5], 5), ([5, 7, 3], 7), ([0, 4], 4)])
def test_the_answers_to_one_prompt_count_its_tokens_once(cached, counted):
    metrics = Metrics.of(["m"])
    meter = metrics.meter("m")
    for tokens in cached:
        meter.finish(Finish(FinishReason.STOP, usage=Usage(9, 2, 0, tokens)))
    model = metrics.models["m"]
    assert (model.prompt_tokens, model.cached_tokens, model.generation_tokens) == (9, counted, 2 * len(cached))


def test_the_text_joins_workers():
    one, other = Metrics.of(["m"]), Metrics.of(["m"])
    for metrics in (one, one, other):
        metrics.refuse("busy")
        metrics.models["m"].first_token.add(0.2)
    one.connections, other.connections = 2, 3
    one.prompts.declined["cut"] = 1
    lines = one.text([other]).decode().splitlines()
    assert 'tokenweir:requests_refused_total{code="busy"} 3.0' in lines
    assert "tokenweir:connections 5.0" in lines
    assert 'tokenweir:prompts_declined_total{reason="cut"} 1.0' in lines
    assert 'tokenweir:time_to_first_token_seconds_bucket{le="0.1",model_name="m"} 0.0' in lines
    assert 'tokenweir:time_to_first_token_seconds_bucket{le="0.25",model_name="m"} 3.0' in lines
    assert (one.connections, one.refused) == (2, {"busy": 2})
