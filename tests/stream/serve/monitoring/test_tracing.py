"""Spans of answers, as the SDK of OpenTelemetry gets them."""

import asyncio

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from serving import Endless, Script, eventually, http_of, say, serving, socket_to, until

HI = [{"role": "user", "content": "my secret"}]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def provider():
    """The process's one provider of tracers, which can be set once."""
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    return provider


@pytest.fixture
def spans(provider):
    """The spans that have ended in this test."""
    exporter = InMemorySpanExporter()
    processor = SimpleSpanProcessor(exporter)
    provider.add_span_processor(processor)
    yield exporter.get_finished_spans
    processor.shutdown()


async def test_an_answer_has_a_span(spans):
    async with serving(Script("fine", "<|im_end|>")) as server, http_of(server) as http:
        body = {"messages": HI, "temperature": 0.5, "max_tokens": 7, "n": 2}
        reply = await http.post("/v1/chat/completions", json=body)
    (span,) = spans()
    usage = reply.json()["usage"]
    assert (span.name, span.kind, span.parent) == ("chat default", trace.SpanKind.SERVER, None)
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "default",
        "gen_ai.request.max_tokens": 7,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.choice.count": 2,
        "gen_ai.response.id": reply.json()["id"],
        "gen_ai.response.finish_reasons": ("stop", "stop"),
        "gen_ai.usage.input_tokens": usage["prompt_tokens"],
        "gen_ai.usage.output_tokens": usage["completion_tokens"],
    }
    assert [event.name for event in span.events] == ["tokenweir.engine_started", "tokenweir.first_token"]
    assert "secret" not in span.to_json() and "fine" not in span.to_json()


async def test_a_span_belongs_to_the_trace_of_its_request(spans):
    async with serving(Script("fine", "<|im_end|>")) as server:
        async with http_of(server) as http:
            await http.post("/v1/completions", json={"prompt": "hi"}, headers={"traceparent": PARENT})
        async with socket_to(server, additional_headers={"traceparent": PARENT}) as websocket:
            for _ in range(2):
                await say(websocket)
                await until(websocket, "response.completed")
        async with http_of(server) as http:
            await http.post("/v1/completions", json={"prompt": "hi"})
    *belonging, own = spans()
    assert [span.name for span in belonging] == ["text_completion default", "chat default", "chat default"]
    for span in belonging:
        assert f"{span.context.trace_id:032x}" in PARENT and f"{span.parent.span_id:016x}" in PARENT
    assert own.parent is None


def warned(caplog):
    """The names of the loggers that have written more than information, without those of other tests' exporters."""
    names = [record.name for record in caplog.records if record.levelname != "INFO"]
    return [name for name in names if not name.startswith("opentelemetry.sdk")]


@pytest.mark.parametrize("key", ["k", "wrong"])
async def test_long_headers_and_baggage_write_no_log(spans, key, caplog):
    odd = {"traceparent": "a" * 3000, "tracestate": "b" * 3000, "baggage": ",".join(["secret=1;", "é", "=="] * 500)}
    async with serving(Script("fine", "<|im_end|>"), api_key="k") as server, http_of(server) as http:
        headers = {name: value.encode() for name, value in odd.items()} | {"authorization": f"Bearer {key}"}
        reply = await http.post("/v1/completions", json={"prompt": "hi"}, headers=headers)
    assert reply.status_code == (200 if key == "k" else 401)
    assert warned(caplog) == []


@pytest.mark.parametrize("headers", [{"traceparent": PARENT, "tracestate": "=,=,==" * 80}, {"traceparent": "x" * 500}])
async def test_malformed_headers_of_traces_are_not_read_without_a_key(headers, spans, caplog):
    async with serving(Script("fine", "<|im_end|>"), api_key="k") as server, http_of(server) as http:
        assert (await http.post("/v1/completions", json={"prompt": "hi"}, headers=headers)).status_code == 401
        assert (await http.get("/v1/models", headers=headers)).status_code == 401
    assert warned(caplog) == []


async def test_a_span_of_an_application_is_the_parent(spans, provider):
    async with serving(Script("fine", "<|im_end|>")) as server:
        application = server._app
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            with provider.get_tracer("application").start_as_current_span("request") as outer:
                reply = await http.post("/v1/completions", json={"prompt": "hi"}, headers={"traceparent": PARENT})
    assert reply.status_code == 200
    span = next(span for span in spans() if span.name != "request")
    assert span.parent.span_id == outer.get_span_context().span_id


async def test_a_failure_is_told_by_its_code(spans):
    async with serving(Script("Hel", RuntimeError("at /secret"))) as server, http_of(server) as http:
        await http.post("/v1/chat/completions", json={"messages": HI})
    (span,) = spans()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.attributes["error.type"] == "server_error"
    assert "secret" not in span.to_json()


async def test_a_client_that_leaves_ends_the_span(spans):
    async with serving(Endless(), max_output_tokens=10**9) as server, http_of(server) as http:
        asking = asyncio.ensure_future(http.post("/v1/chat/completions", json={"messages": HI}))
        await eventually(lambda: server._app.service.admission.generations)
        asking.cancel()
        await eventually(spans)
    assert "error.type" not in spans()[0].attributes


class Broken:
    """Tracer or span of an SDK whose sampler or span processors fail."""

    def __init__(self, span=None):
        self._span = span

    def start_span(self, *args, **kwargs):
        if self._span is None:
            raise RuntimeError("the sampler is broken")
        return self._span

    def __getattr__(self, name):
        raise RuntimeError("the processor is broken")


@pytest.mark.parametrize("tracer", [Broken(), Broken(span=Broken())], ids=["sampler", "processor"])
async def test_a_tracer_that_fails_fails_no_answer(monkeypatch, caplog, tracer):
    monkeypatch.setattr(trace, "get_tracer", lambda name: tracer)
    async with serving(Script("fine", "<|im_end|>")) as server, http_of(server) as http:
        reply = await http.post("/v1/chat/completions", json={"messages": HI})
        assert reply.json()["choices"][0]["message"]["content"] == "fine"
        await eventually(lambda: server._app.service.admission.generations == 0)
    assert "the span of an answer could not be recorded" in caplog.text
