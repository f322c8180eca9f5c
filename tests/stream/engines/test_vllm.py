"""Logprobs of prompts from a vLLM server, which its completions give with `echo`."""

import pytest
from case_tables import cases
from engine_doubles import running

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.protocol import ScoringEngine
from tokenweir.stream.engines.vllm import VllmEngine
from tokenweir.stream.events.prompt_scores import PromptScores
from tokenweir.stream.events.sampling import Sampling

CASES = cases(__file__)

IDS = [5, 6, 7]
LOGPROBS = CASES["logprobs"]


async def scores(logprobs, sampling=None):
    def completions(body, endless):
        return {"id": "cmpl-1", "choices": [{"index": 0, "text": "?", "finish_reason": "length", "logprobs": logprobs}]}

    with running({"/v1/completions": completions}) as double:
        engine = VllmEngine(double.url)
        assert isinstance(engine, ScoringEngine)
        found = await engine.score(IDS, sampling or Sampling(top_logprobs=1, extra={"cache_salt": "s"}))
    return found, double.requests


async def test_the_prompt_is_scored_by_one_request():
    found, [(path, body)] = await scores(LOGPROBS)
    assert found == PromptScores([None, -1.0, -2.0], [[], [(9, -0.5)], [(7, -2.0)]])
    assert path == "/v1/completions"
    assert body == {
        "prompt": IDS,
        "echo": True,
        "stream": False,
        "logprobs": 1,
        "max_tokens": 1,
        "temperature": 0,
        "return_tokens_as_token_ids": True,
        "cache_salt": "s",
    }
    bare, _ = await scores(LOGPROBS, Sampling())
    assert bare == PromptScores([None, -1.0, -2.0])


@pytest.mark.parametrize("given", CASES["a_server_that_does_not_repeat_the_prompt_is_told_of"])
async def test_a_server_that_does_not_repeat_the_prompt_is_told_of(given):
    with pytest.raises(EngineError, match="vLLM gives no logprobs of the prompt"):
        await scores(given)
