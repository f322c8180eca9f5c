"""Streams that cannot begin: the answer behind them is stopped, and its place is free."""

import asyncio
import json

import pytest
from case_tables import cases
from serving import TOK, Endless, eventually

import tokenweir
from tokenweir.stream.serve.limits.limits import Limits

CASES = cases(__file__)


async def post(app, path, body, send):
    messages = [{"type": "http.request", "body": json.dumps(body).encode()}]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
    }

    async def receive():
        return messages.pop() if messages else await asyncio.Event().wait()

    await app(scope, receive, send)


@pytest.mark.parametrize("sent", ["http.response.start", "http.response.body"])
@pytest.mark.parametrize(("path", "body"), CASES["a_stream_that_cannot_be_sent_ends_its_answer"])
async def test_a_stream_that_cannot_be_sent_ends_its_answer(path, body, sent):
    engine = Endless()
    app = tokenweir.asgi_app(engine=engine, tokenizer=TOK, limits=Limits(max_pending_bytes=1000))

    async def send(message):
        if message["type"] == sent:
            raise OSError("the client is gone")

    with pytest.raises(OSError, match="the client is gone"):
        await post(app, path, body | {"stream": True}, send)
    await eventually(lambda: app.service.admission.generations == 0)
    assert engine.closed
    await app.close()


async def test_one_of_several_prompts_that_cannot_begin_ends_the_others(monkeypatch):
    engine = Endless()
    app = tokenweir.asgi_app(engine=engine, tokenizer=TOK)
    begin, begun, sent = app.service.metrics.meter, [], []

    def meter(metrics, *args, **kwargs):
        if len(begun) == 2:
            raise RuntimeError("no third")
        begun.append(begin(*args, **kwargs))
        return begun[-1]

    async def send(message):
        sent.append(message)

    monkeypatch.setattr(type(app.service.metrics), "meter", meter)
    with pytest.raises(RuntimeError, match="no third"):
        await post(app, "/v1/completions", {"prompt": ["a", "b", "c"]}, send)
    assert sent[0]["status"] == 500
    await eventually(lambda: app.service.admission.generations == 0)
    await app.close()
