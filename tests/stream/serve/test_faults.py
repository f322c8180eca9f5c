"""Engines that break and clients that attack harm themselves only."""

import asyncio
import json
import logging
from contextlib import suppress
from itertools import count

import openai
import pytest
from serving import (
    TOK,
    Endless,
    Script,
    bearer,
    client_of,
    eventually,
    fetch,
    http_of,
    posting,
    raw_socket,
    say,
    serving,
    small_socket,
    socket_to,
    until,
)
from websockets.exceptions import InvalidStatus

from tokenweir.encode.base.visible_text import visible
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.serve.answers import service
from tokenweir.stream.serve.answers.generation import abandoned
from tokenweir.stream.serve.limits.limits import Limits

HI = [{"role": "user", "content": "hi"}]


class Panic(BaseException):
    """The exception that PyO3 raises for a panic in Rust, which is not an `Exception`."""


@pytest.mark.parametrize("failure", [Panic, GeneratorExit, SystemExit, asyncio.CancelledError], ids=str)
async def test_whatever_an_engine_raises_fails_its_own_response_only(failure):
    broken, fine = Script("Hel", failure("at /secret")), Script("one", 0.3, " two", "<|im_end|>")
    async with serving({"fine": fine, "broken": broken}) as server, socket_to(server) as one, socket_to(server) as two:
        await say(one)
        await until(one, "response.output_text.delta")
        for _ in range(2):
            await say(two, model="broken")
            failed = (await until(two, "response.failed"))[-1]["response"]
            assert "secret" not in json.dumps(failed)
            assert failed["output"][0]["content"][0]["text"] == "Hel"
        done = (await until(one, "response.completed"))[-1]["response"]
        assert done["output"][0]["content"][0]["text"] == "one two"
        assert (await fetch(server, "/health"))[0] == 200


class Stubborn:
    """An engine that swallows its cancellation, until it is told to let go."""

    def __init__(self):
        self.begun = 0
        self.cancelled = 0
        self.let_go = asyncio.Event()

    async def generate(self, prompt_ids, sampling):
        yield TOK.encode("one")
        self.begun += 1
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                self.cancelled += 1


async def test_an_engine_that_swallows_its_cancellation_is_abandoned(caplog):
    engine = Stubborn()
    async with serving(engine, abandon_timeout=0.2) as server:
        async with socket_to(server) as websocket:
            await say(websocket)
            await until(websocket, "response.output_text.delta")
            await websocket.send('{"type":"response.cancel"}')
            ended = (await until(websocket, "response.incomplete"))[-1]["response"]
            assert (ended["status"], ended["output"][0]["content"][0]["text"]) == ("cancelled", "one")
        assert "its engine continues after it was stopped, and is abandoned" in caplog.text
        assert abandoned() == 1
        assert engine.cancelled <= 2  # and not again and again
    engine.let_go.set()
    await eventually(lambda: abandoned() == 0)


class Clinging:
    """An engine that does not let itself be closed, until it is told to let go."""

    def __init__(self):
        self.let_go = asyncio.Event()

    async def generate(self, prompt_ids, sampling):
        try:
            while True:
                yield TOK.encode("one")
        finally:
            while not self.let_go.is_set():
                with suppress(asyncio.CancelledError):
                    await self.let_go.wait()


async def test_an_answer_ends_although_its_engine_does_not_let_itself_be_closed(caplog):
    engine = Clinging()
    async with serving(engine, abandon_timeout=0.2) as server:
        async with client_of(server) as client:
            whole = await client.completions.create(model="default", prompt="hi", max_tokens=3)
            assert (whole.choices[0].finish_reason, whole.usage.completion_tokens) == ("length", 3)
        assert "its engine continues after it was stopped, and is abandoned" in caplog.text
        service = server._app.service
        assert abandoned() == service.counts().abandoned_engines == 1
        assert service.admission.generations == 1  # it costs as much as one that has not ended
    engine.let_go.set()
    await eventually(lambda: abandoned() == service.admission.generations == 0)


async def test_abandoned_engines_are_bounded():
    engine = Clinging()
    async with (
        serving(engine, abandon_timeout=0.2, max_generations_per_client=2) as server,
        client_of(server) as client,
    ):
        try:
            for _ in range(2):
                await client.completions.create(model="default", prompt="hi", max_tokens=3)
            await eventually(lambda: abandoned() == 2)
            with pytest.raises(openai.RateLimitError, match="you have 2 answers at once"):
                await client.with_options(max_retries=0).completions.create(model="default", prompt="hi", max_tokens=3)
        finally:
            engine.let_go.set()
        await eventually(lambda: server._app.service.admission.generations == 0)
        await client.completions.create(model="default", prompt="hi", max_tokens=3)


async def test_a_huge_list_of_ids_ends_where_the_answer_may(monkeypatch):
    class Huge:
        async def generate(self, prompt_ids, sampling):
            yield [5] * 3_000_000

    decoded = []
    feed = ChatDecoder._take
    monkeypatch.setattr(ChatDecoder, "_take", lambda *asked: decoded.append(1) or feed(*asked))
    async with serving(Huge()) as server, client_of(server) as client:
        whole = await client.completions.create(model="default", prompt="hi", max_tokens=3)
        assert (whole.choices[0].finish_reason, whole.usage.completion_tokens) == ("length", 3)
    assert len(decoded) <= 3


@pytest.mark.parametrize("item", [count, lambda: [[5]], lambda: "5", lambda: None, lambda: {5: 5}])
async def test_what_is_no_list_of_ids_fails_its_own_answer_only(item):
    class Wrong:
        async def generate(self, prompt_ids, sampling):
            yield item()

    engines = {"wrong": Wrong(), "fine": Script("fine", "<|im_end|>")}
    async with serving(engines) as server, client_of(server) as client:
        with pytest.raises(openai.InternalServerError):
            await client.completions.create(model="wrong", prompt="hi")
        assert (await client.completions.create(model="fine", prompt="hi")).choices[0].text == "fine"
        assert server._app.service.admission.generations == 0


async def test_engines_of_several_answers_that_swallow_their_cancellation_are_abandoned(caplog):
    engine = Stubborn()
    async with serving(engine, abandon_timeout=0.2) as server:
        async with http_of(server) as http:
            body = {"messages": HI, "n": 3}
            asking = asyncio.ensure_future(http.post("/v1/chat/completions", json=body))
            await eventually(lambda: engine.begun == 3)
            asking.cancel()
            await eventually(lambda: abandoned() == 1)
        assert server._app.service.admission.generations == 1  # an abandoned engine keeps its place
        assert "its engine continues after it was stopped, and is abandoned" in caplog.text
        assert engine.cancelled <= 6  # and not again and again
    engine.let_go.set()
    await eventually(lambda: abandoned() == 0)


async def test_closing_ends_in_time_although_engines_go_on(monkeypatch, caplog):
    monkeypatch.setattr(service, "CLOSE_GRACE", 0.1)
    engine = Stubborn()
    async with serving(engine) as server, client_of(server) as client:
        asking = asyncio.ensure_future(client.responses.create(model="default", input="hi"))
        await eventually(lambda: engine.begun)
        server.close()
        async with asyncio.timeout(10):
            await server.wait_closed()
        with pytest.raises(openai.APIError):
            await asking
    assert "abandoned" in caplog.text
    engine.let_go.set()
    await eventually(lambda: abandoned() == 0)


@pytest.mark.parametrize("ids", [[], [5]])
async def test_an_engine_that_never_awaits_lets_the_others_run(ids):
    class Greedy:
        async def generate(self, prompt_ids, sampling):
            while True:
                yield ids

    fine = Script("fine", "<|im_end|>")
    async with (
        serving({"fine": fine, "greedy": Greedy()}, max_output_tokens=10**9) as server,
        socket_to(server) as greedy,
        socket_to(server) as other,
    ):
        await say(greedy, model="greedy")
        await until(greedy, "response.in_progress")
        await say(other)
        await until(other, "response.completed")


async def test_pings_that_are_never_read_take_no_memory():
    async with serving(Script("fine", "<|im_end|>")) as server:
        hostile = await socket_to(server, sock=small_socket(server), ping_interval=None)
        hostile.transport.pause_reading()
        frame = bytes([0x89, 0x80 | 125, 0, 0, 0, 0]) + b"x" * 125  # masked by zeros

        for _ in range(80):  # 10 MB
            hostile.transport.write(frame * 1000)
            await eventually(lambda: hostile.transport.get_write_buffer_size() < 1 << 20)
        connections = server._uvicorn.server_state.connections
        assert max(connection.transport.get_write_buffer_size() for connection in connections) < 1 << 19
        async with socket_to(server) as websocket:
            await say(websocket)
            await until(websocket, "response.completed")
        hostile.transport.abort()


class Slow:
    """Encodes a prompt when it is told to go on."""

    def __init__(self):
        self.asked, self.go_on = [], asyncio.Event()

    async def encode(self, prompt):
        self.asked.append(prompt)
        await self.go_on.wait()
        return prompt.encode(TOK)


@pytest.mark.parametrize(
    ("path", "asked"), [("/v1/chat/completions", {"messages": HI}), ("/v1/responses/compact", {"input": "hi"})]
)
async def test_a_client_that_leaves_before_its_prompt_is_encoded_gives_up_its_place(path, asked):
    slow = Slow()
    async with serving(Script("fine", "<|im_end|>"), encoder=slow) as server:
        async with http_of(server) as http:
            asking = asyncio.ensure_future(http.post(path, json={"model": "default"} | asked))
            await eventually(lambda: slow.asked)
            asking.cancel()
        await eventually(lambda: server._app.service.admission.generations == 0)


async def test_prompts_wait_for_each_other_and_too_many_are_refused():
    slow, limits = Slow(), Limits(max_renders=1, max_waiting=2, drain_timeout=0.2)
    async with serving(Script("fine", "<|im_end|>"), limits=limits, encoder=slow) as server, http_of(server) as http:
        body = {"messages": HI}
        posts = {asyncio.create_task(http.post("/v1/chat/completions", json=body)) for _ in range(8)}
        refused = []
        while len(refused) < 5:  # one is at work, and two wait
            done, posts = await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
            refused += [post.result() for post in done]
        for reply in refused:
            assert (reply.status_code, reply.json()["error"]["code"]) == (503, "server_overloaded")
            assert reply.headers["retry-after"]
        slow.go_on.set()
        assert [reply.status_code for reply in await asyncio.gather(*posts)] == [200] * 3


async def test_a_prompt_does_not_wait_without_end():
    slow, limits = Slow(), Limits(max_renders=1, queue_timeout=0.2, drain_timeout=0.2)
    async with serving(Script("fine", "<|im_end|>"), limits=limits, encoder=slow) as server, http_of(server) as http:
        body = {"messages": HI}
        first = asyncio.ensure_future(http.post("/v1/chat/completions", json=body))
        await eventually(lambda: slow.asked)
        refused = await http.post("/v1/chat/completions", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "server_overloaded")
        assert refused.headers["retry-after"]
        slow.go_on.set()
        assert (await first).status_code == 200
        assert (await http.post("/v1/chat/completions", json=body)).status_code == 200


async def test_an_address_is_not_what_a_client_says():
    async with serving(Script("fine", "<|im_end|>"), host="0.0.0.0", max_connections_per_client=1) as server:

        def from_address(address, **headers):
            return socket_to(server, local_addr=(address, 0), additional_headers=headers)

        async with from_address("127.0.0.1"), from_address("127.0.0.2") as other:
            for headers in ({}, {"X-Forwarded-For": "10.0.0.1"}, {"Forwarded": "for=10.0.0.1"}):
                with pytest.raises(InvalidStatus) as refused:
                    await from_address("127.0.0.1", **headers).__aenter__()
                assert refused.value.response.status_code == 429
            await say(other)
            await until(other, "response.completed")


async def test_one_client_cannot_have_all_engines():
    engine = Endless()
    async with serving(
        engine,
        api_key=["one", "two", "three"],
        max_generations_per_client=2,
        max_generations=3,
        max_output_tokens=10**9,
    ) as server:

        async def ask(key, http):
            reply = await http.post("/v1/responses", json={"input": "hi"}, headers=bearer(key))
            return reply.status_code, reply.json()["error"]["code"]

        async with http_of(server) as http:
            running = [asyncio.ensure_future(ask("one", http)) for _ in range(2)]
            await eventually(lambda: server._app.service.admission.generations == 2)
            assert await ask("one", http) == (429, "rate_limit_exceeded")
            running.append(asyncio.ensure_future(ask("two", http)))
            await eventually(lambda: server._app.service.admission.generations == 3)
            assert await ask("three", http) == (503, "server_overloaded")
            for task in running:
                task.cancel()
        await eventually(lambda: server._app.service.admission.generations == 0)
        assert server._app.service.admission.connections == 0


async def test_who_does_not_send_the_rest_of_a_request_is_told_so():
    async with serving(Script(), request_timeout=0.2) as server, raw_socket(server) as (reader, writer):
        writer.write(posting("/v1/responses", b"{", 100))
        answer = await asyncio.wait_for(reader.readuntil(b"}}"), 20)
        assert b" 408 " in answer and b"request_timeout" in answer


async def test_responses_of_another_client_cannot_be_read():
    engine = Script("one", 60)
    async with (
        serving(engine, api_key=["one", "two"]) as server,
        socket_to(server, "one") as mine,
        socket_to(server, "two") as theirs,
    ):
        await say(mine, background=True)
        response_id = (await until(mine, "response.output_text.delta"))[0]["response"]["id"]
        await theirs.send(json.dumps({"type": "response.resume", "response_id": response_id}))
        assert (await until(theirs, "error"))[-1]["error"]["code"] == "response_not_found"


async def test_responses_that_one_client_leaves_behind_push_out_none_of_another():
    async with serving(Script("one", 60), api_key=["one", "two"], max_detached=2, resume_grace=60) as server:

        async def leave_behind(key):
            async with socket_to(server, key) as websocket:
                await say(websocket, background=True)
                return (await until(websocket, "response.output_text.delta"))[0]["response"]["id"]

        theirs = await leave_behind("two")
        mine = [await leave_behind("one") for _ in range(4)]

        async def resumed(key, response_id):
            async with socket_to(server, key) as websocket:
                await websocket.send(json.dumps({"type": "response.resume", "response_id": response_id}))
                return json.loads(await websocket.recv())["type"] != "error"

        assert server._app.service.admission.generations == 3
        assert await resumed("two", theirs)
        assert [await resumed("one", each) for each in mine] == [False, False, True, True]


async def test_the_log_has_no_escapes_of_an_engine(caplog):
    caplog.set_level(logging.INFO)
    async with (
        serving(Script("a", RuntimeError("\x1b[31mred \u202etxt.exe"))) as server,
        socket_to(server) as websocket,
    ):
        await say(websocket)
        await until(websocket, "response.failed")
    (told,) = [logging.Formatter().format(record) for record in caplog.records if "failed" in record.message]
    said, _, trace = told.partition("\n")
    assert "\\x1b[31mred" in said and visible(told) == told
    assert trace.startswith("Traceback") and trace.endswith("RuntimeError: ␛[31mred \\u202etxt.exe")
