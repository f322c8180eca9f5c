"""The ASGI application: mounted, guarded, and what it answers besides text."""

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager

import httpx
import pytest
from case_tables import cases
from fastapi import FastAPI
from openai import AsyncOpenAI
from serving import TOK, Endless, Script, eventually, metrics_of, say, serving, small_socket, socket_to, uvicorn_of
from starlette.middleware import Middleware
from starlette.testclient import TestClient

import tokenweir
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.wire.shared.checking import LONG

CASES = cases(__file__)

HI = [{"role": "user", "content": "hi"}]


async def test_mounted_in_fastapi():
    app = FastAPI()
    app.mount("/llm", tokenweir.asgi_app(engine=Script("Hello", "<|im_end|>"), tokenizer=TOK))
    async with (
        uvicorn_of(app) as address,
        AsyncOpenAI(base_url=f"{address}/llm/v1", api_key="none", max_retries=0) as client,
    ):
        whole = await client.chat.completions.create(model="default", messages=HI)
        assert whole.choices[0].message.content == "Hello"
        async with client.responses.connect() as connection:
            await connection.response.create(model="default", input="hi")
            async for event in connection:
                if event.type == "response.completed":
                    break
        assert event.response.output_text == "Hello"


def client_of(**options):
    app = tokenweir.asgi_app(engine={"demo": Script("Hello", "<|im_end|>")}, tokenizer=TOK, **options)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


async def test_a_refused_origin_is_logged_once_with_the_option_that_lets_it_in(caplog):
    async with client_of() as client:
        for origin in ["http://localhost:8413"] * 2 + [f"http://evil-{number}\n.example" for number in range(200)]:
            await client.get("/v1/models", headers={"origin": origin.encode("unicode_escape")})
    lines = [record.message for record in caplog.records if "refused a page" in record.message]
    assert lines[0] == "refused a page of origin 'http://localhost:8413'; --origin 'http://localhost:8413' lets it in"
    assert len(lines) == len({*lines}) == 100


async def test_only_json_of_allowed_pages_and_under_known_names_comes_in():
    body = {"messages": HI}
    async with client_of(origins=["https://chat.example"], hosts=["api.example"]) as client:
        for status, code, options in CASES["only_json_of_allowed_pages_and_under_known_names_comes_in"]:
            headers = {"content-type": "application/json"} | options["headers"]
            reply = await client.post("/v1/chat/completions", content=json.dumps(body), headers=headers)
            assert reply.status_code == status, reply.text
            if code is not None:
                assert reply.json()["error"]["code"] == code
            taken = "identity" if code == "unsupported_content_coding" else None
            assert reply.headers.get("accept-encoding") == taken
            allowed = "https://chat.example" if headers.get("origin") == "https://chat.example" else None
            assert reply.headers.get("access-control-allow-origin") == allowed
        assert (await client.get("/v1/models", headers={"host": "evil.example"})).status_code == 403


async def test_preflight():
    ask = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    async with client_of(origins=["https://chat.example"], api_key="k") as client:
        headers = ask | {"origin": "https://chat.example"}
        for method, path in CASES["preflight"]:
            reply = await client.options(path, headers=headers | {"access-control-request-method": method})
            assert reply.status_code == 204
            assert reply.headers["access-control-allow-origin"] == "https://chat.example"
            assert "authorization" in reply.headers["access-control-allow-headers"]
            assert method in reply.headers["access-control-allow-methods"].split(", ")
        headers["origin"] = "https://evil.example"
        reply = await client.options("/v1/chat/completions", headers=headers)
        assert reply.status_code == 403 and "access-control-allow-origin" not in reply.headers


async def test_bad_bodies():
    async with client_of(limits=Limits(max_message_bytes=100)) as client:
        headers = {"content-type": "application/json"}
        for body, status, code in [
            (b"{", 400, "invalid_json"),
            (b"[]", 400, "invalid_type"),
            (b'{"messages": "\\ud800"}', 400, "invalid_unicode"),
            (b"\xff", 400, "invalid_json"),
            (b'{"messages": "\xff"}', 400, "invalid_unicode"),
            (b"{}", 400, "missing_required_parameter"),
            (b"x" * 101, 413, "request_too_large"),
        ]:
            reply = await client.post("/v1/chat/completions", content=body, headers=headers)
            assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


NOT_UTF8 = {
    "a value": b'{"messages": [{"role": "user", "content": "\xff"}], "prompt": "\xff", "input": "\xff"}',
    "a key": b'{"\xc3(": 1}',
    "half a surrogate pair": b'{"model": "\xed\xa0\x80"}',
    "a long body": b'{"messages": [{"role": "user", "content": "' + b"a" * LONG + b'\xff"}], "input": "\xf0\x9f"}',
    "behind long messages": b'{"messages": [{"role": "user", "content": "' + b"a" * LONG + b'"}], "model": "\xff"}',
    "a key behind long messages": b'{"messages": [{"role": "user", "content": "' + b"a" * LONG + b'"}], "\xff": 1}',
}


@pytest.mark.parametrize("body", NOT_UTF8.values(), ids=NOT_UTF8)
async def test_bodies_that_are_not_utf8(body, caplog):
    app = tokenweir.asgi_app(engine=Script(), tokenizer=TOK)
    paths = [route.path for route in app.routes if "POST" in (route.methods or ())]
    assert len(paths) > 12
    async with client_of() as client:
        for path in paths:
            reply = await client.post(path, content=body, headers={"content-type": "application/json"})
            error = reply.json()["error"]
            assert reply.status_code == 400, (path, reply.text)
            assert (error.get("code") or error["details"]["error_code"]) == "invalid_unicode", path
            assert f"at byte {_first_bad(body)}" in error["message"], path
    assert not [record for record in caplog.records if record.name != "httpx"]


def _first_bad(body):
    with pytest.raises(UnicodeDecodeError) as caught:
        body.decode()
    return caught.value.start


async def test_models_and_what_is_not_there():
    async with client_of() as client:
        assert [model["id"] for model in (await client.get("/v1/models")).json()["data"]] == ["demo"]
        assert (await client.get("/v1/models/demo")).json()["id"] == "demo"
        assert (await client.get("/v1/models/default")).json()["id"] == "demo"  # always the first
        reply = await client.get("/v1/models/gpt-9")
        assert (reply.status_code, reply.json()["error"]["message"]) == (404, "no model 'gpt-9'; served are demo")
        for path, near in CASES["models_and_what_is_not_there"]:
            reply = await client.post(path, json={})
            assert reply.json()["error"]["message"] == f"nothing is served at {path}{near}"
        reply = await client.get("/v1/chat/completions")
        assert (reply.status_code, reply.json()["error"]["code"]) == (405, "method_not_allowed")


async def test_tokenize_and_detokenize():
    async with client_of() as client:
        text = "Hello wörld 🙂<|im_end|>"
        reply = (await client.post("/tokenize", json={"prompt": text, "return_token_strs": True})).json()
        assert reply["tokens"] == TOK.encode(text)
        assert (reply["count"], len(reply["token_strs"])) == (len(reply["tokens"]),) * 2
        assert (await client.post("/detokenize", json={"tokens": reply["tokens"]})).json() == {"prompt": text}
        told = (await client.post("/detokenize", json={"tokens": reply["tokens"], "return_tokens": True})).json()
        assert b"".join(bytes(token["bytes"]) for token in told["tokens"]).decode() == text == told["prompt"]
        assert [token["id"] for token in told["tokens"]] == reply["tokens"]
        assert [token["special"] for token in told["tokens"]] == [False] * (reply["count"] - 1) + [True]
        chat = (await client.post("/tokenize", json={"messages": HI})).json()
        assert TOK.decode(chat["tokens"], skip_special_tokens=False).endswith("<|im_start|>assistant\n")
        bare = (await client.post("/tokenize", json={"messages": HI, "add_generation_prompt": False})).json()
        assert bare["count"] < chat["count"]
        for path, body, param in CASES["tokenize_and_detokenize"]:
            reply = await client.post(path, json=body)
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def test_readiness_knows_the_engine():
    class Loading(Script):
        ready = False

    engine = Loading("Hello")
    app = tokenweir.asgi_app(engine=engine, tokenizer=TOK)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        reply = await client.get("/ready")
        assert (reply.status_code, reply.json()["status"]) == (503, "engine not ready")
        assert (await client.get("/health")).status_code == 200
        engine.ready = True
        assert (await client.get("/ready")).json() == {"status": "ready", "models": ["default"]}
        app.drain()
        assert (await client.get("/ready")).json()["status"] == "draining"
        reply = await client.post("/v1/chat/completions", json={"messages": HI})
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "server_shutting_down")
        assert reply.headers["retry-after"]


async def test_metrics():
    async with client_of() as client:
        for _ in range(3):
            await client.post("/v1/chat/completions", json={"messages": HI})
        await client.post("/v1/chat/completions", json={"messages": HI, "model": "gpt-9"})
        reply = await client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain")
    lines = dict(line.rsplit(" ", 1) for line in reply.text.splitlines() if not line.startswith("#"))
    assert lines['tokenweir:request_success_total{finished_reason="stop",model_name="demo"}'] == "3.0"
    assert lines['tokenweir:num_requests_running{model_name="demo"}'] == "0.0"
    assert lines['tokenweir:num_requests_waiting{model_name="demo"}'] == "0.0"
    assert lines['tokenweir:time_to_first_token_seconds_count{model_name="demo"}'] == "3.0"
    assert lines['tokenweir:e2e_request_latency_seconds_count{model_name="demo"}'] == "3.0"
    assert lines['tokenweir:requests_refused_total{code="model_not_found"}'] == "1.0"
    assert float(lines['tokenweir:generation_tokens_total{model_name="demo"}']) >= 6
    assert "tokenweir:inter_token_latency_seconds_bucket" in reply.text
    assert lines['tokenweir:request_queue_time_seconds_count{model_name="demo"}'] == "3.0"
    assert lines['tokenweir:readers_cut_off_total{model_name="demo"}'] == "0.0"


async def test_metrics_tell_what_waits_for_a_slow_reader_and_that_it_was_cut_off():
    async with serving(
        {"endless": Endless(), "other": Script()}, max_output_tokens=10**9, max_pending_bytes=20_000, stall_timeout=0.5
    ) as server:

        async def number(name, model="endless"):
            return (await metrics_of(server))[f'tokenweir:{name}{{model_name="{model}"}}']

        async with asyncio.timeout(30), socket_to(server, sock=small_socket(server), ping_interval=None) as websocket:
            websocket.transport.pause_reading()
            await say(websocket)
            most = 0.0
            while not await number("readers_cut_off_total"):
                most = max(most, await number("pending_bytes"))
            assert most >= 20_000
            websocket.transport.abort()
        assert await number("readers_cut_off_total", "other") == 0
        await eventually(lambda: server._app.service.admission.generations == 0)
        assert await number("pending_bytes") == 0


class Tracing:
    """A user's middleware: notes the requests that reach it."""

    def __init__(self, app, seen):
        self.app, self.seen = app, seen

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            self.seen.append(scope["path"])
        await self.app(scope, receive, send)


async def test_the_users_middleware_and_lifespan():
    seen = []

    @asynccontextmanager
    async def lifespan(app):
        seen.append("begun")
        yield
        seen.append("ended")

    app = tokenweir.asgi_app(
        engine=Script("Hello", "<|im_end|>"),
        tokenizer=TOK,
        api_key="secret",
        middleware=[Middleware(Tracing, seen=seen)],
        lifespan=lifespan,
    )
    async with uvicorn_of(app) as address, httpx.AsyncClient(base_url=address) as client:
        assert (await client.get("/v1/models", headers={"authorization": "Bearer secret"})).status_code == 200
        assert (await client.get("/v1/models")).status_code == 401  # refused before the middleware sees it
    assert seen == ["begun", "/v1/models", "ended"]


async def test_the_lifespan_of_a_mounted_application_is_entered_by_its_parent():
    seen, engine = [], Endless()

    @asynccontextmanager
    async def lifespan(app):
        seen.append(app)
        yield
        seen.append("ended")

    llm = tokenweir.asgi_app(engine=engine, tokenizer=TOK, lifespan=lifespan, limits=Limits(max_output_tokens=10**9))
    app = FastAPI(lifespan=llm.lifespan)
    app.mount("/llm", llm)
    async with uvicorn_of(app) as address, httpx.AsyncClient(base_url=address) as client:
        asked = {"input": "hi", "background": True, "stream": True}
        async with client.stream("POST", "/llm/v1/responses", json=asked) as reply:
            assert reply.status_code == 200
        await eventually(lambda: engine.given)
        assert not engine.closed
    assert seen == [app, "ended"]
    assert engine.closed and llm.service.admission.generations == 0


async def test_a_lifespan_that_nobody_enters_is_named():
    """Starlette and FastAPI run the lifespan of the outermost application alone."""

    @asynccontextmanager
    async def lifespan(app):
        yield

    app = FastAPI()
    app.mount("/llm", tokenweir.asgi_app(engine=Script("Hello", "<|im_end|>"), tokenizer=TOK, lifespan=lifespan))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        with pytest.raises(RuntimeError, match=r"lifespan= .* was not entered.*FastAPI\(lifespan=llm\.lifespan\)"):
            await client.get("/llm/v1/models")


def test_an_application_may_be_started_again():
    app = tokenweir.asgi_app(engine=Script("Hello", "<|im_end|>"), tokenizer=TOK)
    for _ in range(2):
        with TestClient(app, base_url="http://localhost") as client:
            assert client.post("/v1/chat/completions", json={"messages": HI}).status_code == 200
        assert client.post("/v1/chat/completions", json={"messages": HI}).status_code == 503


BACKGROUND = """
import asyncio, json, threading, urllib.request
import uvicorn
from fastapi import FastAPI
import tokenweir

TOK = tokenweir.Tokenizer.default()

class Endless:
    async def generate(self, prompt_ids, sampling):
        try:
            while True:
                await asyncio.sleep(0.001)
                yield TOK.encode("on ")
        finally:
            print("closed", flush=True)

app = FastAPI()
app.mount("/llm", tokenweir.asgi_app(engine=Endless(), tokenizer=TOK, limits=tokenweir.Limits(max_output_tokens=10**9)))
server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))

def ask():
    while not server.started:
        pass
    port = server.servers[0].sockets[0].getsockname()[1]
    body = json.dumps({"input": "hi", "background": True, "stream": True}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/llm/v1/responses", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        reply.readline()
    server.should_exit = True

threading.Thread(target=ask).start()
server.run()
print("ended", flush=True)
"""


def test_the_end_of_the_loop_ends_background_responses_of_a_mounted_application():
    done = subprocess.run([sys.executable, "-c", BACKGROUND], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "closed\nended\n"
    assert done.stderr == ""


@pytest.mark.parametrize("make", [tokenweir.asgi_app, lambda **options: aenter(tokenweir.serve(port=0, **options))])
def test_options_that_do_not_exist_or_are_missing(make):
    with pytest.raises(TypeError, match="^unexpected keyword argument 'key': the options of "):
        make(engine=Script(), tokenizer=TOK, key="x")
    with pytest.raises(TypeError, match="^missing keyword argument: tokenizer$"):
        make(engine=Script())


def aenter(context):
    asyncio.run(context.__aenter__())
