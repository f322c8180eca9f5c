"""Hostile inference servers: encoded bodies, endless bodies, and counts of ids that were never sent."""

from __future__ import annotations

import gzip
import json
import socketserver
import sys
import threading
from contextlib import aclosing, contextmanager

import httpx
import pytest

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines import engine_server
from tokenweir.stream.engines.engine_server import (
    MAX_ANSWER_BYTES,
    MAX_ERROR_BYTES,
    MAX_EVENT_VALUES,
    MAX_MESSAGE,
    THREAD_BYTES,
)
from tokenweir.stream.engines.llama_server import LlamaServerEngine
from tokenweir.stream.engines.sglang import SglangEngine
from tokenweir.stream.engines.vllm import VllmEngine
from tokenweir.stream.events.sampling import Sampling

pytestmark = pytest.mark.anyio

BLOCK = 1 << 16
BUFFERED = 16 * BLOCK
"""More than an event loop has received by itself when a connection is closed."""
BOMB = gzip.compress(bytes(1 << 22))  # 4 MB in 4 KB
ENGINES = {
    "vllm": lambda url, tok: VllmEngine(url),
    "vllm, no stream": lambda url, tok: VllmEngine(url, stream=False),
    "sglang": lambda url, tok: SglangEngine(url),
    "llama-server": LlamaServerEngine,
}
EVERY = pytest.mark.parametrize("name", ENGINES)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


class _Handler(socketserver.StreamRequestHandler):
    def handle(self):
        lines = list(iter(self.rfile.readline, b"\r\n"))
        fields = dict(line.lower().split(b": ") for line in lines[1:])
        self.rfile.read(int(fields.get(b"content-length", 0)))
        self.server.heads.append(b"".join(lines))
        try:
            for data in self.server.answer():
                self.wfile.write(data)
        except OSError:
            pass


@contextmanager
def answering(*answer):
    """A server that answers anything by some bytes; a list among them comes again and again."""

    def given():
        for part in answer:
            if isinstance(part, bytes):
                yield part
            while isinstance(part, list):
                yield from part

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        server.answer, server.heads = given, []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", server.heads
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def read(monkeypatch):
    """The sizes of what is read of bodies; reading one whole is an error."""
    sizes = []
    raw = httpx.Response.aiter_raw

    async def counted(response, chunk_size=None):
        async for chunk in raw(response, chunk_size):
            sizes.append(len(chunk))
            yield chunk

    async def refused(response):
        raise AssertionError("a body is read without a bound")

    monkeypatch.setattr(httpx.Response, "aiter_raw", counted)
    monkeypatch.setattr(httpx.Response, "aread", refused)
    monkeypatch.setattr(engine_server, "RETRY_DELAYS", (0.0, 0.0))
    return sizes


def head(status="200 OK", **fields):
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def failure(name, url, tok):
    async with aclosing(ENGINES[name](url, tok).generate([1, 2], Sampling(max_tokens=5))) as steps:
        with pytest.raises(EngineError) as failed:
            async for _ in steps:
                pass
    return str(failed.value)


@EVERY
async def test_no_coding_is_asked_for(name, tok, read):
    with answering(head("500 No", content_length=0)) as (url, heads):
        await failure(name, url, tok)
    assert b"accept-encoding: identity\r\n" in heads[0].lower()


@EVERY
@pytest.mark.parametrize("status", ["200 OK", "500 No"])
async def test_an_encoded_body_is_refused_unread(name, tok, read, status):
    sent = head(status, content_encoding="gzip", content_length=len(BOMB), content_type="application/json")
    with answering(sent, BOMB) as (url, _):
        assert "content-encoding 'gzip'" in await failure(name, url, tok)
    assert sum(read) <= len(BOMB)


@EVERY
async def test_an_error_without_end_is_read_up_to_its_bound(name, tok, read):
    with answering(head("500 No"), [b"no and again no " * 256]) as (url, _):
        message = await failure(name, url, tok)
    assert "answers 500: no and again no" in message
    assert (
        f"(cut off after {MAX_MESSAGE} of {MAX_ERROR_BYTES} characters) (cut off after {MAX_ERROR_BYTES} bytes)"
        in message
    )
    assert sum(read) < MAX_ERROR_BYTES + BUFFERED


@pytest.mark.parametrize("name", ["vllm", "llama-server"])
async def test_an_error_that_trickles_is_left(name, tok, read, monkeypatch):
    monkeypatch.setattr(engine_server, "ERROR_SECONDS", 0.05)
    stop = threading.Event()

    class Slowly(list):
        def __iter__(self):
            stop.wait(0.001)
            return iter([b"x"])

    with answering(head("500 No"), Slowly()) as (url, _):
        message = await failure(name, url, tok)
    assert "answers 500: x" in message and message.endswith(" bytes)")


@EVERY
async def test_an_answer_without_end_is_read_up_to_its_bound(name, tok, read, monkeypatch):
    monkeypatch.setattr(engine_server, "MAX_ANSWER_BYTES", 8 * BLOCK)
    with answering(head(content_type="application/json"), [b" " * BLOCK]) as (url, _):
        assert f"sends an answer of more than {8 * BLOCK} bytes" in await failure(name, url, tok)
    assert sum(read) < 8 * BLOCK + BUFFERED


@EVERY
async def test_a_line_without_end_is_read_up_to_the_bound_of_an_event(name, tok, read, monkeypatch):
    monkeypatch.setattr(engine_server, "MAX_EVENT_BYTES", 8 * BLOCK)
    with answering(head(content_type="text/event-stream"), b"data: ", [b"x" * BLOCK]) as (url, _):
        assert f"sends a line of more than {8 * BLOCK} bytes" in await failure(name, url, tok)
    assert sum(read) < 8 * BLOCK + BUFFERED


@EVERY
@pytest.mark.parametrize("content_type, before", [("text/event-stream", b"data: "), ("application/json", b"")])
async def test_values_are_counted_before_any_is_made(name, tok, content_type, before):
    """Two million ids in one event would keep the event loop for a tenth of a second."""
    ids = b",".join([b"5"] * MAX_EVENT_VALUES)
    with answering(head(content_type=content_type), before, b'{"x": "[[,", "y": [', ids, b"], not JSON\n\n") as (
        url,
        _,
    ):
        assert f"sends more than {MAX_EVENT_VALUES} values in one event" in await failure(name, url, tok)


@pytest.mark.parametrize("name", ["vllm", "sglang", "llama-server"])
async def test_what_the_server_says_of_itself_is_bounded_too(name, tok, read):
    with (
        answering(head(content_type="application/json"), [b" " * BLOCK]) as (url, _),
        pytest.raises(EngineError, match="sends an answer of more than"),
    ):
        await ENGINES[name](url, tok).served()
    assert sum(read) < MAX_ANSWER_BYTES + BUFFERED


LONG = "no " * 100_000
EVENTS = {
    "vllm": {"choices": [{"token_ids": [], "finish_reason": LONG}]},
    "sglang": {
        "output_ids": [],
        "meta_info": {"completion_tokens": 0, "finish_reason": {"type": "a", "message": LONG}},
    },
    "llama-server": {"stop": True, "stop_type": LONG},
}


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("in_error", [True, False])
async def test_a_message_repeats_a_part_of_what_the_server_says(name, tok, read, in_error):
    event = json.dumps({"error": {"message": LONG}} if in_error else EVENTS[name]).encode()
    with answering(head(content_type="text/event-stream"), b"data: " + event + b"\n\n") as (url, _):
        message = await failure(name, url, tok)
    assert f"(cut off after {MAX_MESSAGE} of {len(LONG)} characters)" in message
    assert len(message) < MAX_MESSAGE + 200


async def test_ids_that_a_server_only_counts_are_not_made_up_without_end(tok, read):
    event = json.dumps({"content": "é" * 9, "tokens": [65], "tokens_predicted": 1 << 40}).encode()
    with answering(head(content_type="text/event-stream"), b"data: " + event + b"\n\n") as (url, _):
        assert f"counts {1 << 40} ids and has sent 1" in await failure("llama-server", url, tok)


@EVERY
async def test_an_event_that_is_not_utf8_is_an_error_of_the_engine(name, tok, read):
    data = b'{"error": "\xff"}'
    with answering(head(content_type="text/event-stream"), b"data: " + data + b"\n\n") as (url, _):
        assert "sends what is no answer of it" in await failure(name, url, tok)
    with answering(head("500 No"), data) as (url, _):
        assert "answers 500" in await failure(name, url, tok)


async def test_long_events_are_decoded_in_a_thread(tok, read, monkeypatch):
    threads = []
    decoded = engine_server.EngineServer._decoded
    monkeypatch.setattr(
        engine_server.EngineServer,
        "_decoded",
        lambda *args: threads.append(threading.current_thread()) or decoded(*args),
    )
    for size in (THREAD_BYTES - 100, THREAD_BYTES):
        event = b'{"x": [' + b"0.5," * (size // 4) + b"1]}"
        with answering(head(content_type="text/event-stream"), b"data: " + event + b"\n\n") as (url, _):
            await failure("llama-server", url, tok)
    assert [thread is threading.current_thread() for thread in threads] == [True, False]


def test_lines_without_data_make_no_objects():
    lines = engine_server._DataLines("it")
    with counting_calls() as calls:
        assert lines.feed(b"data: 1\n" + b"\n" * 1_000_000 + b": ping\n" * 100_000) == [b"1"]
    assert calls.count < 50


@contextmanager
def counting_calls():
    """Count the calls of functions, those of C included."""

    class Calls:
        count = 0

    def profile(frame, event, argument):
        Calls.count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        yield Calls
    finally:
        sys.setprofile(None)


def test_lines_come_whole_however_they_are_cut():
    text = b": ping\n\ndata: {1}\r\ndata:two\n" * 3
    for size in (1, 2, 5, len(text)):
        lines = engine_server._DataLines("it")
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert [line for piece in [*pieces, b""] for line in lines.feed(piece)] == [b"{1}", b"two"] * 3
