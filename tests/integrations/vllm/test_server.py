"""vLLM's engine client as an engine, and the endpoint plug-in over it: a client with recorded ids stands for vLLM's."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import Namespace
from types import SimpleNamespace

import fastapi
import httpx
import pytest
from starlette.testclient import TestClient

from tokenweir import EngineError, Sampling, Tokenizer
from tokenweir.integrations import vllm

TOK = Tokenizer.default()
IM_END = TOK.encode("<|im_end|>")[0]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


@pytest.fixture
def client(vllm_modules):
    """A client of an engine that gives recorded ids, two at a time."""
    base = vllm_modules("vllm.engine.protocol").EngineClient
    outputs = vllm_modules("vllm.outputs")

    class Recorded(base):
        def __init__(self, ids, end="stop", logprobs=False):
            self.ids, self.end, self.with_logprobs = ids, end, logprobs
            self.calls, self.closed = [], False
            self.model_config = SimpleNamespace(max_model_len=4096)

        async def generate(self, prompt, sampling_params, request_id, **options):
            self.calls.append((prompt, sampling_params, options))
            try:
                for place in range(0, len(self.ids), 2):
                    ids, ends = self.ids[place : place + 2], place + 2 >= len(self.ids)
                    logprob = vllm_modules("vllm.logprobs").Logprob
                    told = [{i: logprob(-0.5), 1: logprob(-9.0)} for i in ids] if self.with_logprobs else None
                    answer = outputs.CompletionOutput(0, "", ids, None, told, finish_reason=self.end if ends else None)
                    asked = prompt["prompt_token_ids"]
                    scored = sampling_params.prompt_logprobs is not None
                    scores = [None, *({i: logprob(-i / 8), 1: logprob(-0.25)} for i in asked[1:])] if scored else None
                    yield outputs.RequestOutput(request_id, None, asked, scores, [answer], ends, num_cached_tokens=1)
                    await asyncio.sleep(0)
            finally:
                self.closed = True

    Recorded.__abstractmethods__ = frozenset()
    return Recorded


@pytest.fixture
def engine(vllm_modules):
    return vllm_modules("tokenweir.integrations.vllm.engine").ClientEngine


async def collected(engine, sampling=None):
    sampling = sampling or Sampling()
    return [step async for step in engine.generate([5, 6], sampling)]


async def test_the_engine_takes_ids_and_gives_ids(client, engine, vllm_modules):
    there = client([10, 11, 12], logprobs=True)
    lora = object()
    steps = await collected(
        engine(there, lora_request=lora),
        Sampling(
            temperature=0.5,
            stop_token_ids=(7,),
            stop=("x",),
            logprobs=True,
            json_schema={"type": "object"},
            extra={"cache_salt": "s", "priority": 3, "bad_words": ["no"]},
        ),
    )
    assert [(list(step.ids), step.finish_reason) for step in steps] == [([10, 11], None), ([12], "stop")]
    assert steps[0].logprobs == [-0.5, -0.5]
    assert [step.cached for step in steps] == [1, 1]
    prompt, parameters, options = there.calls[0]
    assert prompt == {"type": "token", "prompt_token_ids": [5, 6], "cache_salt": "s"}
    assert options == {"lora_request": lora, "priority": 3}
    kind = vllm_modules("vllm.sampling_params").RequestOutputKind
    assert (parameters.detokenize, parameters.output_kind) == (False, kind.DELTA)
    assert (parameters.max_tokens, parameters.temperature, parameters.logprobs) == (None, 0.5, 0)
    assert (list(parameters.stop_token_ids), parameters.bad_words) == ([7], ["no"])
    assert parameters.structured_outputs.json == {"type": "object"}
    assert engine(there).context_size == 4096
    assert await collected(engine(there), Sampling(max_tokens=2))


async def test_the_likeliest_tokens_and_the_scores_of_a_prompt(client, engine):
    there = client([10, 11, 12], logprobs=True)
    steps = await collected(engine(there), Sampling(top_logprobs=2))
    assert there.calls[0][1].logprobs == 2
    assert [list(step.top_logprobs) for step in steps] == [
        [[(10, -0.5), (1, -9.0)], [(11, -0.5), (1, -9.0)]],
        [[(12, -0.5), (1, -9.0)]],
    ]
    scores = await engine(there).score([5, 6, 7], Sampling(top_logprobs=1, extra={"cache_salt": "s"}))
    assert (scores.logprobs, scores.top_logprobs) == ([None, -0.75, -0.875], [[], [(1, -0.25)], [(1, -0.25)]])
    prompt, parameters, _ = there.calls[-1]
    assert (prompt["cache_salt"], parameters.prompt_logprobs, parameters.max_tokens) == ("s", 1, 1)


async def test_closing_the_generator_closes_vllms(client, engine):
    there = client(list(range(100)))
    steps = engine(there).generate([5], Sampling())
    await anext(steps)
    await steps.aclose()
    assert there.closed


async def test_what_vllm_aborts_or_does_not_know_is_an_error(client, engine):
    with pytest.raises(EngineError, match=r"^vLLM ended answer 0 by 'abort'$"):
        await collected(engine(client([10], end="abort")))
    for name in ("model", "kv_transfer_params"):
        with pytest.raises(EngineError, match=rf"^vLLM's engine cannot honour extra\['{name}'\]$"):
            await collected(engine(client([10])), Sampling(extra={name: "x"}))


@pytest.fixture
def args():
    return Namespace(
        served_model_name=["small"],
        model="path",
        api_key=None,
        allowed_origins=["*"],
        chat_template=TEMPLATE,
        default_chat_template_kwargs=None,
    )


@pytest.fixture
def plugin(vllm_modules, monkeypatch, entry_points):
    """The object that the entry point makes, with the embedded tokenizer."""
    assert entry_points["vllm.endpoint_plugins"] == {"tokenweir_server": "tokenweir.integrations.vllm:endpoint_plugin"}
    module = vllm_modules("tokenweir.integrations.vllm.server")
    monkeypatch.setattr(module, "tokenizer_of", lambda model_config: TOK)
    return vllm.endpoint_plugin()


def http_of(app):
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://vllm.example")


def application(plugin, monkeypatch) -> fastapi.FastAPI:
    """An application of vLLM's kind, with routes of its own."""
    app = fastapi.FastAPI()

    @app.post("/v1/chat/completions")
    async def theirs():
        return {"from": "vLLM"}

    @app.get("/v1/models")
    async def models():
        return {"from": "vLLM"}

    if not hasattr(sys.modules["vllm"], "__file__"):  # a stand-in
        app.router.routes[:] = [route for route in app.routes if route.path != "/v1/chat/completions"]
        plugin.attach_router(app)
    else:
        from vllm import plugins
        from vllm.plugins.endpoint_plugins.interface import attach_endpoint_plugins

        monkeypatch.setattr(plugins, "load_endpoint_plugins", lambda tasks: [plugin])
        attach_endpoint_plugins(app, ("generate",))
    return app


async def test_our_routes_answer_from_vllms_engine(plugin, client, args, monkeypatch):
    there = client([*TOK.encode("Hello there, you."), IM_END])
    app = application(plugin, monkeypatch)
    adapter = SimpleNamespace(lora_name="tuned")
    state = SimpleNamespace(openai_serving_models=SimpleNamespace(lora_requests={"tuned": adapter}))
    await plugin.init_state(there, state, args)
    user = [{"role": "user", "content": "Hi <|im_end|>"}]
    async with http_of(app) as http:
        body = {"model": "small", "messages": user, "max_completion_tokens": 40}
        answer = (await http.post("/v1/chat/completions", json=body)).json()
        assert answer["choices"][0]["message"]["content"] == "Hello there, you."
        text = TOK.decode(there.calls[0][0]["prompt_token_ids"], skip_special_tokens=False)
        assert text == "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant"
        assert there.calls[0][0]["prompt_token_ids"].count(IM_END) == 1  # the user's is text
        await http.post("/v1/chat/completions", json=body | {"model": "tuned"})
        assert there.calls[-1][2]["lora_request"] is adapter
        streamed = (await http.post("/v1/chat/completions", json=body | {"stream": True})).text
        parts = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
        contents = [part["choices"][0]["delta"].get("content") or "" for part in parts if part["choices"]]
        assert "".join(contents) == "Hello there, you."
        message = {"model": "small", "messages": user, "max_tokens": 40}
        assert (await http.post("/v1/messages", json=message)).json()["content"][0]["text"] == "Hello there, you."
        assert (await http.get("/v1/models")).json() == {"from": "vLLM"}


@pytest.mark.parametrize(("parser", "begins"), [("", "</think>\n\n"), ("qwen3", "<think>\n")])
async def test_a_schema_holds_behind_the_thinking_where_vllm_has_a_reasoning_parser(
    parser, begins, plugin, client, args, monkeypatch
):
    there = client([*TOK.encode("{}"), IM_END])
    app = application(plugin, monkeypatch)
    args.chat_template = TEMPLATE + "{% if enable_thinking %}<think>\n{% else %}<think>\n</think>\n{% endif %}"
    args.reasoning_parser = parser
    await plugin.init_state(there, SimpleNamespace(), args)
    shape = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    body = {"model": "small", "messages": [{"role": "user", "content": "Hi"}], "response_format": shape}
    async with http_of(app) as http:
        await http.post("/v1/chat/completions", json=body | {"chat_template_kwargs": {"enable_thinking": True}})
    prompt = TOK.decode(there.calls[0][0]["prompt_token_ids"], skip_special_tokens=False)
    assert prompt.endswith(begins)


def test_the_socket_of_responses_is_ours(plugin, client, args, monkeypatch):
    app = application(plugin, monkeypatch)

    @app.get("/start")
    async def start():
        await plugin.init_state(client([*TOK.encode("Hello"), IM_END]), SimpleNamespace(), args)

    with TestClient(app, base_url="http://vllm.example") as http:
        http.get("/start")
        with http.websocket_connect("/v1/responses") as socket:
            socket.send_text(json.dumps({"type": "response.create", "model": "small", "input": "hi"}))
            for _ in range(100):
                event = json.loads(socket.receive_text())
                if event["type"] == "response.completed":
                    break
    assert event["response"]["output"][0]["content"][0]["text"] == "Hello"


async def test_every_path_is_one_of_the_server(plugin, client, args, vllm_modules):
    await plugin.init_state(client([IM_END]), SimpleNamespace(), args)
    module = vllm_modules("tokenweir.integrations.vllm.server")
    async with http_of(plugin._ready()) as http:
        for path in module.ROUTES:
            assert (await http.post(path, json={})).status_code == 400, path


async def test_the_keys_of_vllm_are_checked(plugin, client, args):
    args.api_key = ["secret"]
    await plugin.init_state(client([IM_END]), SimpleNamespace(), args)
    async with http_of(plugin._ready()) as http:
        assert (await http.post("/v1/chat/completions", json={})).status_code == 401


async def test_arguments_that_would_change_answers_are_refused(plugin, client, args):
    args.default_chat_template_kwargs = {"enable_thinking": False}
    with pytest.raises(ValueError, match=r"tokenweir_server does not know --default-chat-template-kwargs$"):
        await plugin.init_state(client([]), SimpleNamespace(), args)


def test_the_tokenizer_and_the_template_are_those_of_vllms_arguments(vllm_modules, data, tmp_path):
    module = vllm_modules("tokenweir.integrations.vllm.server")
    folder = data("tokenizers/qwen3")
    tokenizer = module.tokenizer_of(SimpleNamespace(tokenizer=str(folder), tokenizer_revision=None))
    assert tokenizer.encode("Hi") == Tokenizer.from_file(folder).encode("Hi")
    (tmp_path / "t.jinja").write_text(TEMPLATE)
    given = [module.template_of(source, tokenizer) for source in (TEMPLATE, str(tmp_path / "t.jinja"))]
    messages = [{"role": "user", "content": "Hi"}]
    assert len({template.render(messages).text for template in given}) == 1
    assert "<|im_start|>" in module.template_of(None, tokenizer).render(messages).text
