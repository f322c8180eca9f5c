"""Objects left of an answer once it is over: nothing that lasts until garbage is collected, and no reader's place."""

import asyncio
import gc
import json
import logging
from collections import Counter
from contextlib import aclosing

import pytest
from serving import TOK, Endless, Script, eventually, http_of, posting, raw_socket, say, serving, socket_to, until

from tokenweir.encode.errors import EngineError, TemplateError
from tokenweir.stream.engines.engine_server import MAX_EVENT_BYTES
from tokenweir.stream.engines.llama_server import LlamaServerEngine
from tokenweir.stream.serve.answers import generation
from tokenweir.stream.serve.answers.engines import Engines
from tokenweir.stream.serve.answers.response_task import ResponseTask
from tokenweir.stream.serve.wire.shared.errors import RequestError


class Failing:
    """Engine whose error is another each time, so that nothing else refers to it."""

    async def generate(self, prompt_ids, sampling):
        yield TOK.encode("one ", add_special_tokens=False)
        raise EngineError("no")


class BehindHttp:
    """Client of an engine's server that sends one answer, whatever it is asked."""

    def __init__(self, answer):
        self._answer = answer

    async def generate(self, prompt_ids, sampling):
        async def respond(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self._answer)
            writer.close()

        async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with aclosing(LlamaServerEngine(f"http://127.0.0.1:{port}", TOK).generate([5], sampling)) as steps:
                async for step in steps:
                    yield step


ENGINES = {
    "good": Script("one two ", "<|im_end|>"),
    "calling": Script('<tool_call>{"name": "f", "arguments": {}}</tool_call>', "<|im_end|>"),
    "failing": Failing(),
    "refusing": BehindHttp(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"),
    "one long line": BehindHttp(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + b"x" * (MAX_EVENT_BYTES + 1)
    ),
    "endless": Endless(),
}
TOOL = {"type": "function", "function": {"name": "f", "description": "does", "parameters": {"type": "object"}}}
MESSAGES = [{"role": "user", "content": "hi"}]


async def post(server, path, *, read_all=True, **body):
    async with raw_socket(server) as (reader, writer):
        writer.write(posting(f"/v1/{path}", json.dumps(body).encode(), more=b"Connection: close\r\n"))
        await reader.read(-1 if read_all else 300)


async def over_a_websocket(server, last="response.completed", **event):
    async with socket_to(server) as websocket:
        await say(websocket, **event)
        await until(websocket, last)


async def cancelled(server):
    async with socket_to(server) as websocket:
        await say(websocket, model="endless")
        await until(websocket, "response.output_text.delta")
        await websocket.send('{"type": "response.cancel"}')
        await until(websocket, "response.incomplete")


WAYS = {
    "websocket": lambda server: over_a_websocket(server),
    "websocket, left": lambda server: over_a_websocket(server, "response.output_text.delta", model="endless"),
    "websocket, cancelled": cancelled,
    "websocket, failing": lambda server: over_a_websocket(server, "response.failed", model="failing"),
    "events": lambda server: post(server, "responses", input="hi", stream=True),
    "events, left": lambda server: post(server, "responses", read_all=False, input="hi", stream=True, model="endless"),
    "events, failing": lambda server: post(server, "responses", input="hi", stream=True, model="failing"),
    "response": lambda server: post(server, "responses", input="hi"),
    "chat": lambda server: post(server, "chat/completions", messages=MESSAGES, stream=True),
    "chat, three": lambda server: post(server, "chat/completions", messages=MESSAGES, n=3),
    "chat, a call": lambda server: post(
        server, "chat/completions", messages=MESSAGES, tools=[TOOL], stream=True, model="calling"
    ),
    "chat, failing": lambda server: post(server, "chat/completions", messages=MESSAGES, model="failing"),
    "chat, refused by the engine": lambda server: post(server, "chat/completions", messages=MESSAGES, model="refusing"),
    "chat, a long line": lambda server: post(server, "chat/completions", messages=MESSAGES, model="one long line"),
    "completions": lambda server: post(server, "completions", prompt="hi", stream=True),
}


@pytest.fixture(autouse=True)
def unlogged(caplog):
    """Keep no record of failures: it would refer to their tracebacks, so that they were no garbage."""
    caplog.set_level(logging.CRITICAL, "tokenweir.serve")


def garbage():
    """Return the objects that only the collector frees, of this project, and of httpx for its engines; clients of the test leave theirs."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        types = [type(thing) for thing in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    return Counter(kind.__qualname__ for kind in types if kind.__module__.partition(".")[0] in ("tokenweir", "httpx"))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_an_answer_leaves_no_garbage(way):
    async with serving(ENGINES) as server:
        await way(server)  # what is made once
        await eventually(lambda: not server._app.service._running)
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                await way(server)
            await eventually(lambda: not server._app.service._running)
            await asyncio.sleep(0.05)  # connections close a little later
            left = garbage()
        finally:
            gc.enable()
    assert not left


REFUSALS = {
    "no place": lambda: RequestError("full", code="server_overloaded", status=503),
    "a template": lambda: TemplateError("no such role"),
    "a bug": lambda: ZeroDivisionError("of ours"),
}


@pytest.mark.parametrize("way", ["events, failing", "chat", "chat, three", "completions"])
@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS)
async def test_a_refused_prompt_leaves_no_garbage(monkeypatch, error, way):
    """Errors have tracebacks, whose frames have the conversation: a megabyte each, until the collector runs."""

    async def refuse(engines, job):
        raise error()

    monkeypatch.setattr(Engines, "prompt_ids", refuse)
    await test_an_answer_leaves_no_garbage(WAYS[way])


async def test_a_response_in_the_background_that_was_read_whole_gives_up_its_place():
    """A reader counted forever would keep it from expiring and from being evicted."""
    async with serving(Script("one", "<|im_end|>")) as server:
        await post(server, "responses", input="hi", background=True)
        responses = server._app.responses
        assert len(responses._background) == 1
        assert not any(task.generation.watched for task in responses._background.values())


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
async def test_a_place_is_free_although_the_end_of_an_answer_fails(path, monkeypatch, caplog):
    def fail(*args):
        raise RuntimeError("broken")

    caplog.set_level(logging.ERROR, "tokenweir.serve")
    monkeypatch.setattr(generation, "explain", fail)
    monkeypatch.setattr(ResponseTask, "_last_events", fail)
    async with serving(Failing()) as server, http_of(server) as http:
        for stream in (False, True):
            body = {"messages": MESSAGES} if "chat" in path else {"input": "hi"}
            reply = await http.post(path, json=body | {"stream": stream})
            assert "the server failed; its log says why" in reply.text
        await eventually(lambda: server._app.service.admission.generations == 0)
    assert "its last items could not be made" in caplog.text
