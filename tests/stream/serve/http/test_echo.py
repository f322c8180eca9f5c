"""Completions that repeat their prompt, with logprobs as evaluation harnesses read them."""

import openai
import pytest
from serving import TOK, Script, client_of, serving

from tokenweir.stream.events.prompt_scores import PromptScores
from tokenweir.stream.events.step import EngineStep

PROMPT = "The capital of France is Paris"
IDS = TOK.encode(PROMPT)


class Scoring:
    """Engine double that gives logprobs of prompts: the last id is the likeliest one, the others are not."""

    scored = ()

    async def generate(self, prompt_ids, sampling):
        for token_id in TOK.encode(" now")[: sampling.max_tokens]:
            yield EngineStep([token_id], logprobs=[-0.5])

    async def score(self, prompt_ids, sampling):
        self.scored = [*self.scored, (list(prompt_ids), sampling.top_logprobs)]
        logprobs = [None, *(-1.0 - place for place in range(len(prompt_ids) - 1))]
        tops = [[] if place == 0 else [(TOK.encode("x")[0], -0.1)] for place in range(len(prompt_ids))]
        tops[-1] = [(prompt_ids[-1], logprobs[-1])]
        return PromptScores(logprobs, tops if sampling.top_logprobs else [])


def loglikelihood(choice, context):
    """Return the sum of logprobs of the continuation, and whether it is the greedy one, as lm-eval computes them."""
    rows = choice.logprobs
    tops = rows.top_logprobs[context:-1]
    greedy = all(max(top, key=top.get) == token for top, token in zip(tops, rows.tokens[context:-1], strict=True))
    return sum(rows.token_logprobs[context:-1]), greedy


@pytest.mark.parametrize("prompt", [PROMPT, IDS])
async def test_a_harness_reads_the_likelihood_of_a_continuation(prompt):
    engine = Scoring()
    async with serving(engine) as server, client_of(server) as client:
        completion = await client.completions.create(
            model="default", prompt=[prompt] * 2, max_tokens=1, temperature=0, logprobs=1, echo=True, seed=1234
        )
    assert engine.scored == [(IDS, 1)] * 2
    for choice in completion.choices:
        assert choice.text == PROMPT + " now"
        assert choice.logprobs.tokens == [TOK.decode([each]) for each in IDS] + [" now"]
        assert choice.logprobs.token_logprobs[0] is None
        assert choice.logprobs.top_logprobs[0] is None
        assert loglikelihood(choice, len(IDS) - 1) == (1.0 - len(IDS), True)
        assert loglikelihood(choice, len(IDS) - 2) == (3.0 - 2 * len(IDS), False)
        assert choice.logprobs.text_offset[-1] == len(PROMPT)


@pytest.mark.parametrize(("logprobs", "tops"), [(0, 0), (1, 1), (3, 3)])
async def test_the_prompt_alone_can_be_scored(logprobs, tops):
    engine = Scoring()
    async with serving(engine) as server, client_of(server) as client:
        asked = {"model": "default", "prompt": PROMPT, "max_tokens": 0, "logprobs": logprobs, "echo": True}
        completion = await client.completions.create(**asked)
        stream = await client.completions.create(**asked, stream=True)
        chunks = [chunk.choices[0] async for chunk in stream]
    (choice,) = completion.choices
    assert (choice.text, choice.finish_reason) == (PROMPT, "length")
    assert len(choice.logprobs.tokens) == len(choice.logprobs.top_logprobs) == len(IDS)
    assert "".join(chunk.text for chunk in chunks) == PROMPT
    assert [token for chunk in chunks if chunk.logprobs for token in chunk.logprobs.tokens] == choice.logprobs.tokens
    assert engine.scored == [(IDS, tops)] * 2
    assert completion.usage.completion_tokens == 0


async def test_without_logprobs_any_engine_repeats_the_prompt():
    async with serving(Script(" is", " it", "<|im_end|>")) as server, client_of(server) as client:
        completion = await client.completions.create(
            model="default", prompt=["What", TOK.encode("What")][0], echo=True, n=2
        )
        plain = await client.completions.create(model="default", prompt="What", extra_body={"echo": False})
    assert [choice.text for choice in completion.choices] == ["What is it"] * 2
    assert completion.choices[0].logprobs is None
    assert plain.choices[0].text == " is it"


async def test_what_cannot_be_given_is_refused_by_name():
    async with serving(Script("a")) as server, client_of(server) as client:
        with pytest.raises(openai.BadRequestError, match="engine gives no logprobs of a prompt") as caught:
            await client.completions.create(model="default", prompt="a", echo=True, logprobs=1)
        assert caught.value.param == "echo"
        with pytest.raises(openai.BadRequestError, match="Expected `int` >= 1, got 0"):
            await client.completions.create(model="default", prompt="a", max_tokens=0)
        with pytest.raises(openai.BadRequestError, match="does not repeat its prompt"):
            await client.post("/completions/render", cast_to=object, body={"prompt": "a", "echo": True})
