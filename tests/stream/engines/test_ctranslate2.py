"""CTranslate2 with a real, tiny model: ids in, ids out, sampling, refusals and cancelling."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import aclosing
from itertools import chain

import anyio
import pytest
from case_tables import cases
from engine_runs import steps_of

pytest.importorskip("ctranslate2")

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.ctranslate2 import CTranslate2Engine
from tokenweir.stream.events.sampling import Sampling

CASES = cases(__file__)

pytestmark = pytest.mark.anyio

PROMPT = [1, 77, 78]


@pytest.fixture(scope="module")
def engine(tiny_model):
    return CTranslate2Engine(tiny_model, intra_threads=1)


async def ids(engine, prompt_ids=PROMPT, **sampling):
    return [token_id for step in await steps_of(engine, prompt_ids, **sampling) for token_id in step.ids]


async def test_ids_are_those_of_the_library(engine, tiny_model):
    import ctranslate2

    prompt = [str(token_id) for token_id in PROMPT]
    (expected,) = ctranslate2.Generator(str(tiny_model), intra_threads=1).generate_batch(
        [prompt], max_length=20, include_prompt_in_result=False
    )
    assert await ids(engine, max_tokens=20) == expected.sequences_ids[0]


async def test_the_prompt_and_the_greedy_settings(engine):
    greedy = await ids(engine, max_tokens=10)
    assert len(greedy) == 10
    assert await ids(engine, [1, 77, 79], max_tokens=10) != greedy
    assert await ids(engine, max_tokens=10, temperature=0, seed=7) == greedy
    assert await ids(engine, max_tokens=10, top_k=1, temperature=2.0) == greedy
    assert await ids(engine, max_tokens=10, top_p=1e-6) == greedy


@pytest.mark.parametrize("sampling", [{}, {"temperature": 3.0}, {"top_k": 20}], ids=["greedy", "temperature", "top_k"])
async def test_logprobs_are_those_of_the_library(tiny_model, sampling):
    import ctranslate2

    generated = await steps_of(
        CTranslate2Engine(tiny_model, logprobs=True, intra_threads=1), PROMPT, max_tokens=8, **sampling
    )
    tokens = [str(token_id) for token_id in [*PROMPT, *(step.ids[0] for step in generated)]]
    (scored,) = ctranslate2.Generator(str(tiny_model), intra_threads=1).score_batch([tokens])
    assert [step.logprobs[0] for step in generated] == pytest.approx(scored.log_probs[len(PROMPT) - 1 :], rel=1e-3)


async def test_temperature_and_top_k_sample(engine):
    greedy = await ids(engine, max_tokens=30)
    assert await ids(engine, max_tokens=30, temperature=5.0) != greedy
    all_of_them = 10**6  # candidates, more than the vocabulary has
    answers = [await ids(engine, max_tokens=30, top_k=all_of_them, temperature=5.0) for _ in range(10)]
    assert len(set(chain(*answers))) > 10  # of several, since an end may be drawn early


async def test_a_repetition_penalty_ends_repetitions(engine, tiny_model):
    import ctranslate2

    prompt = [str(token_id) for token_id in PROMPT]
    (expected,) = ctranslate2.Generator(str(tiny_model), intra_threads=1).generate_batch(
        [prompt], max_length=20, include_prompt_in_result=False, repetition_penalty=1.5
    )
    assert await ids(engine, max_tokens=20, repetition_penalty=1.5) == expected.sequences_ids[0]


async def test_the_last_step_says_why(engine):
    by_length = await steps_of(engine, PROMPT, max_tokens=5)
    assert [step.finish_reason for step in by_length] == [None] * 4 + ["length"]
    third = by_length[2].ids[0]
    by_stop = await steps_of(engine, PROMPT, max_tokens=5, stop_token_ids=(third, 10**9))
    assert [step.finish_reason for step in by_stop] == [None] * (len(by_stop) - 1) + ["stop"]
    assert by_stop[-1].ids == [third]


async def test_min_tokens_holds_a_stop_back(engine):
    first = (await ids(engine, max_tokens=1))[0]
    assert await ids(engine, max_tokens=8, stop_token_ids=(first,)) == [first]
    held = await ids(engine, max_tokens=8, stop_token_ids=(first,), min_tokens=5)
    assert len(held) > 5
    assert first not in held[:5]
    assert len(await ids(engine, max_tokens=3, min_tokens=9)) == 3


async def test_the_models_end_token_ends_unless_ignored(engine, tiny_model, tmp_path):
    greedy = await ids(engine, max_tokens=6)
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text()) | {"eos_token": str(greedy[2])}
    (folder / "config.json").write_text(json.dumps(config))
    ending = CTranslate2Engine(folder, intra_threads=1)
    assert ending.eos_ids == (greedy[2],)
    assert await ids(ending, max_tokens=6) == greedy[: greedy.index(greedy[2]) + 1]
    assert await ids(ending, max_tokens=6, ignore_eos=True) == greedy


def test_a_context_of_no_number_of_ids(tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text()) | {"context_size": "2048"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EngineError, match=r"config\.json: context_size must be int, not '2048'$"):
        CTranslate2Engine(folder)


@pytest.mark.parametrize(("prompt_ids", "sampling", "message"), CASES["what_cannot_be_honoured_is_named"])
async def test_what_cannot_be_honoured_is_named(engine, prompt_ids, sampling, message):
    with pytest.raises(EngineError, match=message) as refused:
        await ids(engine, prompt_ids, **sampling)
    by_client = {"seed", "min_p"} & set(sampling)  # the others are checked before an engine is asked
    assert (refused.value.kind == "unsupported", refused.value.option) == (bool(by_client), next(iter(by_client), None))


async def test_two_generations_at_the_same_time(tiny_model):
    engine = CTranslate2Engine(tiny_model, intra_threads=1, inter_threads=2)
    endless = engine.generate(PROMPT, Sampling(max_tokens=10**6, temperature=1.0))
    async with aclosing(endless):
        await anext(endless)
        with anyio.fail_after(20):
            assert len(await ids(engine, max_tokens=3)) == 3


EARLY_END = """
import sys
from contextlib import aclosing
from itertools import chain
import anyio
from tokenweir.stream.engines.ctranslate2 import CTranslate2Engine
from tokenweir.stream.events.sampling import Sampling

async def main():
    engine = CTranslate2Engine(sys.argv[1], intra_threads=1)
    async with aclosing(engine.generate([1, 77], Sampling(max_tokens=10**6))) as generated:
        await anext(generated)

anyio.run(main)
"""


@pytest.mark.parametrize("attempt", range(3))
def test_a_process_may_end_at_once(tiny_model, attempt):
    command = [sys.executable, "-c", EARLY_END, tiny_model]
    result = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, b"")


def broken(tmp_path, tiny_model, **files):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    for name, content in files.items():
        (folder / f"{name}.json").write_text(content)
    return folder


@pytest.mark.parametrize(("files", "message"), CASES["a_lying_folder_is_refused"])
def test_a_lying_folder_is_refused(tmp_path, tiny_model, files, message):
    with pytest.raises(EngineError, match=message):
        CTranslate2Engine(broken(tmp_path, tiny_model, **files))


def test_a_broken_model_file(tmp_path, tiny_model):
    folder = broken(tmp_path, tiny_model)
    (folder / "model.bin").write_bytes(b"not a model")
    with pytest.raises(EngineError, match="model: CTranslate2 cannot load the model: "):
        CTranslate2Engine(folder)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(EngineError, match="absent/vocabulary.json"):
        CTranslate2Engine(tmp_path / "absent")


def test_options_reach_the_library(tiny_model):
    with pytest.raises(EngineError, match="cannot load the model.*float3"):
        CTranslate2Engine(tiny_model, compute_type="float3")
