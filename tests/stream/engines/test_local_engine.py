"""The small model's two engines: which answers what, and that llama.cpp holds answers to schemas and grammars."""

import json
from contextlib import aclosing

import jsonschema
import pytest
from case_tables import cases
from engine_runs import steps_of, text_of

from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines.local_engine import LocalEngine
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

CASES = cases(__file__)

pytestmark = pytest.mark.anyio

PERSON = CASES["person"]


@pytest.fixture(scope="module")
def engine(small_model):
    pytest.importorskip("xllamacpp")
    return small_model.load_engine()


@pytest.fixture(scope="module")
def tok(small_model):
    return Tokenizer.from_file(small_model.model_file())


@pytest.fixture
def anyio_backend():
    return "asyncio"


def prompt(tok, question="Tell me of a person, as JSON."):
    return tok.encode(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n")


def ids_of(steps):
    return [token_id for step in steps for token_id in step.ids]


class Noted:
    """An engine that notes what it is asked."""

    context_size = 100

    def __init__(self, *supports):
        self.supports = frozenset(supports)
        self.asked = []

    def generate(self, prompt_ids, sampling):
        self.asked.append(sampling)

        async def steps():
            yield EngineStep([1])

        return steps()


@pytest.mark.parametrize(("sampling", "plain"), CASES["requests_go_to_the_first_that_honours_them"])
def test_requests_go_to_the_first_that_honours_them(sampling, plain):
    plainly = ("temperature", "top_p", "top_k", "seed", "repetition_penalty")
    first, second = Noted(*plainly), Noted(*plainly, "min_p", "json_schema")
    LocalEngine(first, second).generate([1], Sampling(**sampling))
    LocalEngine(first).generate([1], Sampling(**sampling))
    assert (len(first.asked), len(second.asked)) == ((2, 0) if plain else (1, 1))


def test_there_is_a_default_temperature():
    first = Noted("temperature", "top_p")
    for sampling in (Sampling(), Sampling(temperature=0), Sampling(top_p=0.5)):
        LocalEngine(first).generate([1], sampling)
    assert [(sampling.temperature, sampling.top_p) for sampling in first.asked] == [(0.4, 0.9), (0, None), (None, 0.5)]


@pytest.mark.parametrize(("sampling", "penalty"), CASES["what_may_repeat_without_end_is_penalised"])
def test_what_may_repeat_without_end_is_penalised(sampling, penalty):
    first = Noted("temperature", "top_p", "repetition_penalty", "json_schema", "grammar")
    LocalEngine(first).generate([1], Sampling(**sampling))
    assert first.asked[0].repetition_penalty == penalty


def test_a_request_without_a_limit_has_one():
    assert LocalEngine(Noted()).default_max_tokens == 512


async def test_an_answer_fits_its_schema_and_has_the_models_ids(engine, tok):
    steps = await steps_of(engine, prompt(tok), json_schema=PERSON, temperature=0, max_tokens=60)
    person = json.loads(text := text_of(tok, ids_of(steps)))
    jsonschema.validate(person, PERSON)
    assert text == json.dumps(person)  # without white space in which a small model would get lost
    assert steps[-1].finish_reason == "stop"
    assert sum(step.inferred for step in steps) == 0
    assert sum(len(step.ids) for step in steps) == sum(len(step.logprobs or []) for step in steps)


async def test_ids_of_characters_in_several_tokens_are_inferred(engine, tok):
    steps = await steps_of(engine, prompt(tok), grammar='root ::= "🙂🙃"', max_tokens=20)
    assert text_of(tok, ids_of(steps)) == "🙂🙃"
    assert sum(step.inferred for step in steps) > 0


async def test_seeds_repeat_and_penalties_change(engine, tok):
    asked = prompt(tok, "Invent a word.")

    async def text(**sampling):
        steps = await steps_of(engine, asked, max_tokens=12, extra={"cache_prompt": False}, **sampling)
        return text_of(tok, ids_of(steps))

    first, again, other = await text(seed=1), await text(seed=1), await text(seed=2)
    assert first == again != other
    greedy = await text(temperature=0.0)
    biased = await text(temperature=0.0, logit_bias={tok.encode(greedy)[0]: -100.0})
    assert biased != greedy


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"$ref": "#/$defs/absent"}])
async def test_a_schema_that_is_not_enforced_is_refused(engine, tok, schema):
    with pytest.raises(EngineError, match="cannot hold an answer to json_schema") as refused:
        await steps_of(engine, prompt(tok), json_schema=schema, max_tokens=5)
    assert (refused.value.kind, refused.value.option) == ("unsupported", "json_schema")


async def test_a_grammar_that_does_not_parse_is_refused(engine, tok):
    with pytest.raises(EngineError, match="failed to parse grammar"):
        await steps_of(engine, prompt(tok), grammar="root ::= (", max_tokens=5)


async def test_the_context_is_the_limit(engine):
    with pytest.raises(EngineError, match="leaves no room"):
        await steps_of(engine, [1] * 8192, seed=1)


async def test_closing_stops_it(engine, tok):
    async with aclosing(engine.generate(prompt(tok), Sampling(seed=1, ignore_eos=True, max_tokens=4000))) as steps:
        await anext(steps)
    after = await steps_of(engine, prompt(tok), json_schema={"const": 1}, max_tokens=5)  # its place is free again
    assert text_of(tok, ids_of(after)) == "1"


async def test_the_likeliest_tokens_are_llama_cpps(engine, tok):
    """CTranslate2 gives none, so such a request goes to the other one; greedily, the id is the likeliest."""
    steps = await steps_of(engine, prompt(tok), top_logprobs=3, temperature=0, repetition_penalty=1.0, max_tokens=5)
    tops = [top for step in steps for top in step.top_logprobs or []]
    assert len(tops) >= 4
    told = [
        (i, p, t)
        for step in steps
        for i, p, t in zip(step.ids, step.logprobs or (), step.top_logprobs or (), strict=False)
    ]
    for token_id, logprob, top in told:
        assert len(top) == 3
        assert top[0][0] == token_id
        assert top[0][1] == pytest.approx(logprob)
        assert [each for _, each in top] == sorted((each for _, each in top), reverse=True)
