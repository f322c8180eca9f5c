"""The contract of all engines, each behind a server that speaks its protocol or with a model in this process."""

from __future__ import annotations

import threading
from contextlib import aclosing, contextmanager

import anyio
import numpy as np
import pytest
from anyio import to_thread
from case_tables import cases
from engine_doubles import DOUBLES, END, answer, running
from msgspec.structs import replace

from tokenweir.encode.errors import EngineError
from tokenweir.stream.chat import chat
from tokenweir.stream.engines import transformers, vllm
from tokenweir.stream.engines.ctranslate2 import CTranslate2Engine
from tokenweir.stream.engines.llama_server import LlamaServerEngine
from tokenweir.stream.engines.sglang import SglangEngine
from tokenweir.stream.engines.sync import SyncEngine
from tokenweir.stream.engines.transformers import TransformersEngine
from tokenweir.stream.engines.vllm import VllmEngine
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

CASES = cases(__file__)

pytestmark = pytest.mark.anyio

PROMPT = [1, 2, 90]
REMOTE = list(DOUBLES)
LOCAL = ["sync", "transformers", "ctranslate2"]


def connect(name, url, tok, **options):
    """The engine for a double; the first word of its name says which."""
    match name.split()[0]:
        case "vllm":
            return VllmEngine(url, stream="no stream" not in name, **options)
        case "sglang":
            return SglangEngine(url, **options)
        case "llama-server":
            return LlamaServerEngine(url, tok, **options)
        case _:
            raise AssertionError(f"no engine speaks to the double {name!r}")


class Case:
    """An engine, and what is known of the side that it talks to."""

    def __init__(self, engine, double, ended):
        self.engine = engine
        self.double = double
        self.ended = ended  # waits until the engine's side has ended

    async def steps(self, prompt_ids=PROMPT, **sampling):
        async with aclosing(self.engine.generate(prompt_ids, Sampling(**sampling))) as generated:
            return [step async for step in generated]

    async def ids(self, prompt_ids=PROMPT, **sampling):
        return [token_id for step in await self.steps(prompt_ids, **sampling) for token_id in step.ids]


class Arithmetic:
    """A model as transformers has them, which does the arithmetic of the doubles."""

    class generation_config:
        eos_token_id = END

    class config:
        max_position_embeddings = 4000

    device = "cpu"

    def __init__(self):
        self.asked = []

    def generate(self, input_ids, streamer, stopping_criteria, attention_mask=None, **options):
        self.asked.append(options)
        streamer.put(input_ids)
        prompt = input_ids[0].tolist()
        endless = options["max_new_tokens"] > 10**5
        ids = iter(lambda: prompt[-1] + 1, None) if endless else answer(prompt, options["max_new_tokens"])[0]
        for token_id in ids:
            if stopping_criteria[0](None, None):
                break
            streamer.put(np.array([token_id]))
        streamer.end()


@contextmanager
def made(name, tok, tiny_model):
    if name in DOUBLES:
        with running(DOUBLES[name]) as double:
            yield Case(connect(name, double.url, tok), double, lambda: double.cancelled.wait(30))
        return
    if name == "sync":
        closed = threading.Event()

        def generate(prompt_ids, sampling):
            try:
                while sampling.max_tokens > 10**5:
                    yield EngineStep([prompt_ids[-1] + 1])
                *ids, last = answer(prompt_ids, sampling.max_tokens)[0]
                yield from (EngineStep([token_id]) for token_id in ids)
                yield EngineStep([last], None, "stop" if last == END else "length")
            finally:
                closed.set()

        yield Case(SyncEngine(generate, max_concurrency=2), None, lambda: closed.wait(30))
        return
    engine = (
        TransformersEngine(Arithmetic()) if name == "transformers" else CTranslate2Engine(tiny_model, intra_threads=1)
    )

    def ended():
        line = engine._engine
        with line._moved:
            return line._moved.wait_for(lambda: not line._line, 30)

    yield Case(engine, None, ended)


@pytest.fixture
def case(request, tok, tiny_model, monkeypatch):
    monkeypatch.setattr(
        transformers,
        "prompt_tensor",
        lambda model, ids: {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)))},
    )
    monkeypatch.setattr("tokenweir.stream.engines.engine_server.RETRY_DELAYS", (0.0, 0.0))
    with made(request.param, tok, tiny_model) as engine_case:
        yield engine_case


EVERY = pytest.mark.parametrize("case", REMOTE + LOCAL, indirect=True)
ARITHMETIC = pytest.mark.parametrize("case", [*REMOTE, "sync", "transformers"], indirect=True)
BEHIND_HTTP = pytest.mark.parametrize("case", REMOTE, indirect=True)
STREAMED = [name for name in REMOTE if "no stream" not in name]
STREAMING = pytest.mark.parametrize("case", STREAMED, indirect=True)
IN_PIECES = pytest.mark.parametrize("case", STREAMED + LOCAL, indirect=True)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


# -- all of them -------------------------------------------------------------------------------------------------------


@ARITHMETIC
async def test_the_ids_are_the_models_and_the_end_token_is_the_last(case):
    assert await case.ids(max_tokens=1000) == list(range(91, END + 1))


@EVERY
async def test_max_tokens_ends_the_answer_by_its_length(case):
    steps = await case.steps(max_tokens=3)
    assert sum(len(step.ids) for step in steps) == 3
    assert [step.finish_reason for step in steps] == [None] * (len(steps) - 1) + ["length"]


@IN_PIECES
async def test_closing_early_ends_the_engine(case):
    if case.double is not None:
        case.double.endless = True
    async with aclosing(case.engine.generate(PROMPT, Sampling(max_tokens=10**6, ignore_eos=True))) as steps:
        await anext(steps)
    assert await to_thread.run_sync(case.ended)


@IN_PIECES
async def test_cancelling_the_reader_ends_the_engine(case):
    if case.double is not None:
        case.double.endless = True
    with anyio.CancelScope() as scope:
        async with aclosing(case.engine.generate(PROMPT, Sampling(max_tokens=10**6, ignore_eos=True))) as steps:
            async for _ in steps:
                scope.cancel()
    assert await to_thread.run_sync(case.ended)


@ARITHMETIC
async def test_two_at_once_do_not_mix(case):
    got = {}

    async def one(last):
        got[last] = await case.ids([1, last], max_tokens=20)

    async with anyio.create_task_group() as group:
        group.start_soon(one, 30)
        group.start_soon(one, 70)
    assert got == {30: list(range(31, 51)), 70: list(range(71, 91))}


@pytest.mark.parametrize("case", [*REMOTE, "transformers", "ctranslate2"], indirect=True)
async def test_what_cannot_be_honoured_is_refused_before_anything_is_asked(case):
    for name, value in {
        "grammar": "root ::= x",
        "json_schema": {},
        "presence_penalty": 0.5,
        "extra": {"cache_salt": "a", "nonsense": 1},
    }.items():
        if name not in case.engine.supports or name == "extra":
            with pytest.raises(EngineError, match=name) as refusal:
                await case.ids(max_tokens=3, **{name: value})
            assert refusal.value.kind == "unsupported"
    assert case.double is None or case.double.requests == []


@pytest.mark.parametrize("case", [*REMOTE, "transformers", "ctranslate2"], indirect=True)
async def test_none_asked_none_given(case):
    assert await case.ids(max_tokens=0) == []
    assert case.double is None or case.double.requests == []


# -- behind HTTP -------------------------------------------------------------------------------------------------------


@BEHIND_HTTP
@pytest.mark.parametrize("failures", [[503, 429], ["close", 502]])
async def test_what_fails_before_the_first_byte_is_tried_again(case, failures):
    case.double.fail = list(failures)
    assert await case.ids(max_tokens=3) == [91, 92, 93]
    asked = [request for request in case.double.requests if request[0] in case.double.routes]
    assert len(asked) == 3 and asked[0] == asked[1] == asked[2]


@BEHIND_HTTP
@pytest.mark.parametrize(("failures", "kind", "message"), CASES["a_failure_has_the_servers_words_and_a_kind"])
async def test_a_failure_has_the_servers_words_and_a_kind(case, failures, kind, message):
    case.double.fail = list(failures)
    with pytest.raises(EngineError, match=message) as failure:
        await case.ids(max_tokens=3)
    assert failure.value.kind == kind
    assert len([path for path, _ in case.double.requests if path in case.double.routes]) == len(failures)


@STREAMING
@pytest.mark.parametrize(("failure", "message"), CASES["a_failure_later_keeps_what_came_and_is_not_tried_again"])
async def test_a_failure_later_keeps_what_came_and_is_not_tried_again(case, failure, message):
    case.double.fail = [failure]
    got = []
    async with aclosing(case.engine.generate(PROMPT, Sampling(max_tokens=9))) as steps:
        with pytest.raises(EngineError, match=message):
            async for step in steps:
                got += step.ids
    assert got == [91, 92]
    assert len([path for path, _ in case.double.requests if path in case.double.routes]) == 1


@pytest.mark.parametrize("name", REMOTE)
async def test_nobody_there_and_nobody_answering(name, tok, monkeypatch):
    monkeypatch.setattr("tokenweir.stream.engines.engine_server.RETRY_DELAYS", (0.0, 0.0))
    with running(DOUBLES[name]) as double:
        double.fail = ["hang"]
        with pytest.raises(EngineError, match=r"http://127\.0\.0\.1:\d+ does not answer in time") as failure:
            await Case(connect(name, double.url, tok, read_timeout=0.1), double, None).ids(max_tokens=1)
        assert failure.value.kind == "timeout"
    with pytest.raises(EngineError, match=r"http://127\.0\.0\.1:\d+ cannot be reached") as failure:
        await Case(connect(name, double.url, tok), double, None).ids(max_tokens=1)
    assert failure.value.kind == "unreachable"


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://", "http://h:port"])
def test_an_address_that_is_none(name, tok, url):
    with pytest.raises(EngineError, match="is no address of"):
        connect(name, url, tok)


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize("key", ["", "clé", "a\nb"])
def test_a_key_that_no_header_can_have(name, tok, key):
    with pytest.raises(EngineError, match="^the API key of .+ must be printable ASCII and not empty$") as failure:
        connect(name, "http://localhost:8000", tok, api_key=key)
    assert failure.value.kind == "refused"


@pytest.mark.parametrize("name", REMOTE)
def test_a_flag_of_a_wrong_type(name, tok):
    with pytest.raises(TypeError, match="^logprobs=5 is neither True nor False$"):
        connect(name, "http://localhost:8000", tok, logprobs=5)


@STREAMING
async def test_logprobs_and_the_key(case, tok, request):
    name = request.node.callspec.params["case"]
    case.engine = connect(name, case.double.url, tok, logprobs=True, api_key="secret")
    steps = await case.steps(max_tokens=3)
    case.engine = connect(name, case.double.url, tok, api_key="secret")
    asked = await case.steps(max_tokens=3, logprobs=True)
    for given in (steps, asked):
        assert [pair for step in given for pair in zip(step.ids, step.logprobs or (), strict=False)] == [
            (token_id, -token_id / 8) for token_id in (91, 92, 93)
        ]
    assert {headers.get("authorization") for headers in case.double.headers} == {"Bearer secret"}


@STREAMING
async def test_the_likeliest_tokens_come_with_each_id(case):
    """As many as asked for, the likeliest first, each once; servers also send the id itself among them."""
    steps = await case.steps(max_tokens=3, top_logprobs=2)
    assert [top for step in steps for top in step.top_logprobs or ()] == [
        [(token_id, -token_id / 8), (token_id - 1, -token_id / 4)] for token_id in (91, 92, 93)
    ]
    assert [logprob for step in steps for logprob in step.logprobs or ()] == [-91 / 8, -92 / 8, -93 / 8]
    assert all(step.top_logprobs is None for step in await case.steps(max_tokens=3, logprobs=True))


@BEHIND_HTTP
async def test_the_server_tells_of_its_model(case, request):
    served = await case.engine.served()
    if request.node.callspec.params["case"] == "llama-server":
        assert (served.path, served.template, served.context_size) == ("/models/double.gguf", "{{ messages }}", 99)
    else:
        assert (served.path, served.template, served.context_size) == ("/models/double", None, 4000)
    assert case.engine.context_size == served.context_size


@pytest.mark.parametrize("max_tokens", [5, 1000])
@BEHIND_HTTP
async def test_the_usage_has_what_the_engine_had_in_its_cache(case, tok, max_tokens):
    """The stream is closed at the end token, and some servers tell behind it."""
    async with chat.answer(
        PROMPT, {"eos_ids": {END}}, engine=case.engine, tokenizer=tok, sampling=Sampling(max_tokens=max_tokens)
    ) as deltas:
        *_, finish = [delta async for delta in deltas]
    assert finish.usage.cached_tokens == len(PROMPT) - 1
    assert finish.usage.completion_tokens == min(max_tokens, END - PROMPT[-1])


@pytest.mark.parametrize("case", ["vllm generate", "vllm completions"], indirect=True)
@pytest.mark.parametrize("after", ["silence", "error"])
async def test_the_last_ids_do_not_need_the_usage(case, after, monkeypatch):
    monkeypatch.setattr(vllm, "USAGE_SECONDS", 0.05)
    path = next(path for path in case.double.routes if path != "/v1/models")
    route = case.double.routes[path]

    def without_usage(body, endless):
        for event in route(body, endless):
            if not event["choices"]:
                if after == "silence":
                    case.double.leaving.wait(10)
                event = {"error": {"message": "out of luck"}}
            yield event

    case.double.routes[path] = without_usage
    steps = await case.steps(max_tokens=3)
    assert [token_id for step in steps for token_id in step.ids] == [91, 92, 93]
    assert [step.cached for step in steps] == [None] * 3


@pytest.mark.parametrize("told", [-5, 10**9])
async def test_a_count_that_cannot_be_is_bounded(tok, told):
    class Boasting:
        async def generate(self, prompt_ids, sampling):
            yield EngineStep([65, END], cached=told)

    async with chat.answer(PROMPT, {"eos_ids": {END}}, engine=Boasting(), tokenizer=tok, sampling=Sampling()) as deltas:
        *_, finish = [delta async for delta in deltas]
    assert finish.usage.cached_tokens == (0 if told < 0 else len(PROMPT))


# -- each by itself ----------------------------------------------------------------------------------------------------

ASKED = Sampling(
    max_tokens=5,
    temperature=0.5,
    top_p=0.9,
    top_k=7,
    seed=3,
    stop=("never sent",),
    stop_token_ids=(9,),
    ignore_eos=True,
    min_p=0.1,
    frequency_penalty=0.2,
    presence_penalty=0.3,
    repetition_penalty=1.1,
    logit_bias={5: -1.0},
    json_schema={"type": "object"},
)
COMMON = {"temperature": 0.5, "top_p": 0.9, "top_k": 7, "ignore_eos": True, "min_p": 0.1}
COMMON |= {"frequency_penalty": 0.2, "presence_penalty": 0.3}


async def request_of(case, sampling):
    async with aclosing(case.engine.generate(PROMPT, sampling)) as steps:
        async for _ in steps:
            pass
    return case.double.requests[-1][1]


@pytest.mark.parametrize("case", ["vllm generate", "vllm completions"], indirect=True)
async def test_vllms_names(case):
    extra = {"model": "lora", "cache_salt": "s", "priority": 2, "bad_words": ["x"]}
    body = await request_of(case, replace(ASKED, extra=extra))
    fields = COMMON | {"max_tokens": 5, "seed": 3, "stop_token_ids": [9], "repetition_penalty": 1.1}
    fields |= {"logit_bias": {"5": -1.0}, "structured_outputs": {"json": {"type": "object"}}, "bad_words": ["x"]}
    top = {"stream": True, "model": "lora", "cache_salt": "s", "priority": 2, "stream_options": {"include_usage": True}}
    if "token_ids" in body:
        assert body == top | {"token_ids": PROMPT, "sampling_params": fields | {"detokenize": False}}
    else:
        assert body == top | fields | {"prompt": PROMPT, "return_token_ids": True}


@pytest.mark.parametrize("case", ["sglang cumulative"], indirect=True)
async def test_sglangs_names(case):
    body = await request_of(case, replace(ASKED, extra={"lora_path": "a", "regex": "x+"}))
    fields = COMMON | {"max_new_tokens": 5, "sampling_seed": 3, "stop_token_ids": [9], "repetition_penalty": 1.1}
    fields |= {"logit_bias": {"5": -1.0}, "json_schema": '{"type":"object"}', "regex": "x+"}
    assert body == {"input_ids": PROMPT, "stream": True, "lora_path": "a", "sampling_params": fields}


@pytest.mark.parametrize("case", ["llama-server"], indirect=True)
async def test_llama_servers_names(case):
    body = await request_of(case, replace(ASKED, stop_token_ids=(), extra={"lora": [{"id": 0, "scale": 0.5}]}))
    assert body == COMMON | {"n_predict": 5, "seed": 3, "repeat_penalty": 1.1, "logit_bias": [[5, -1.0]]} | {
        "json_schema": {"type": "object"},
        "lora": [{"id": 0, "scale": 0.5}],
        "prompt": PROMPT,
        "stream": True,
        "return_tokens": True,
        "timings_per_token": True,
    }
    with pytest.raises(EngineError, match="llama-server cannot honour min_tokens=2"):
        await case.ids(min_tokens=2)


@pytest.mark.parametrize("case", ["vllm generate"], indirect=True)
async def test_vllm_gives_several_answers_together(case):
    steps = await case.steps(n=3, max_tokens=2)
    for index in range(3):
        assert [token_id for step in steps if step.index == index for token_id in step.ids] == [91, 92]
    assert len(case.double.requests) == 1


@pytest.mark.parametrize("case", ["vllm completions", "sglang cumulative"], indirect=True)
async def test_an_answer_may_fill_the_context_where_the_servers_default_is_short(case):
    assert await case.ids([1, 2]) == list(range(3, END + 1))  # 124 ids; the defaults are 16 and 128
    body = case.double.requests[-1][1]
    assert body.get("max_tokens", body.get("sampling_params", {}).get("max_new_tokens")) >= 3990


@pytest.mark.parametrize("case", ["vllm completions"], indirect=True)
@pytest.mark.parametrize("status", [403, 404, 405])
async def test_a_vllm_without_generate_is_asked_for_completions_from_then_on(case, status):
    if status != 404:  # 403 is vLLM's since 0.30, unless it runs with --enable-scale-out
        case.double.routes = {**case.double.routes, "/inference/v1/generate": None}
        case.double.fail = [status]
    for _ in range(2):
        await case.ids(max_tokens=1)
    assert [path for path, _ in case.double.requests] == [
        "/inference/v1/generate",
        "/v1/completions",
        "/v1/completions",
    ]
