"""Requests to an engine: the given fields, and the refusal of a field that it does not honour, by name."""

from __future__ import annotations

from contextlib import aclosing

import msgspec
import numpy as np
import pytest
from case_tables import cases

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.ngram import NgramEngine
from tokenweir.stream.engines.protocol import refuse_unsupported
from tokenweir.stream.engines.replay import ReplayEngine
from tokenweir.stream.events.sampling import ENFORCED_BY_DECODER, NO_EFFECT, Sampling

CASES = cases(__file__)

ASKED = {
    "min_p": 0.1,
    "frequency_penalty": 0.5,
    "presence_penalty": -1.0,
    "repetition_penalty": 1.1,
    "logit_bias": {5: -100.0},
    "json_schema": {"type": "object"},
    "grammar": 'root ::= "yes"',
    "extra": {"cache_salt": "a"},
}


def test_given_is_what_differs_from_the_default():
    assert Sampling().given() == {}
    assert Sampling(temperature=0.0, n=1, stop=(), seed=0, logit_bias={}).given() == {"temperature": 0.0, "seed": 0}
    assert Sampling(**ASKED).given() == ASKED


@pytest.mark.parametrize(("fields", "message"), CASES["a_field_of_a_wrong_type_is_refused_at_once"])
def test_a_field_of_a_wrong_type_is_refused_at_once(fields, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        Sampling(**fields)


def test_stops_that_can_be_read_once_become_tuples():
    sampling = Sampling(stop=iter(["a", "b"]), stop_token_ids=np.array([1, 2]))
    assert (sampling.stop, sampling.stop_token_ids) == (("a", "b"), (1, 2))
    assert set(map(type, sampling.stop_token_ids)) == {int}
    assert set(sampling.given()) == {"stop", "stop_token_ids"}


def test_numbers_of_numpy_become_pythons():
    sampling = Sampling(seed=np.int64(7), temperature=np.float32(0.5), n=np.int32(2), ignore_eos=np.True_)
    assert sampling == Sampling(seed=7, temperature=0.5, n=2, ignore_eos=True)
    assert msgspec.json.encode(sampling) == msgspec.json.encode(Sampling(seed=7, temperature=0.5, n=2, ignore_eos=True))
    with pytest.raises(TypeError, match="^seed must be int, not 0.5$"):
        Sampling(seed=np.float64(0.5))


@pytest.mark.parametrize("name", ASKED)
def test_an_unsupported_field_is_named_with_its_value(name):
    sampling = Sampling(max_tokens=5, stop=("x",), **{name: ASKED[name]})
    refuse_unsupported("a toy", sampling, {name})
    with pytest.raises(EngineError) as refusal:
        refuse_unsupported("a toy", sampling, set(ASKED) - {name})
    assert str(refusal.value) == f"a toy cannot honour {name}={ASKED[name]!r}"
    assert (refusal.value.kind, refusal.value.option) == ("unsupported", name)


def test_what_changes_nothing_and_what_the_decoder_enforces_is_accepted():
    refuse_unsupported("a toy", Sampling(**NO_EFFECT), ())
    ends = Sampling(max_tokens=1, min_tokens=1, stop=("x",), stop_token_ids=(1,), ignore_eos=True, n=2)
    assert set(ends.given()) == ENFORCED_BY_DECODER
    refuse_unsupported("a toy", ends, ())


@pytest.mark.anyio
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("engine", [NgramEngine, ReplayEngine])
async def test_the_toys_refuse_what_they_cannot(engine, name):
    async with aclosing(engine().generate([5], Sampling(**{name: ASKED[name]}))) as ids:
        with pytest.raises(EngineError, match=rf"^an? .+ cannot honour {name}="):
            await anext(ids)
