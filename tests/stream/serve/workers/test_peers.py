"""Workers of one server, here in one process: what one has, the others can go on with."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest
from serving import TOK, Script, http_of, metrics_of, say, socket_to, until
from websockets.exceptions import ConnectionClosed

from tokenweir.stream.serve.answers.response_task import Responses
from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.transport.server import listener_at, serve
from tokenweir.stream.serve.wire.shared.ids import ITEMS, new_id, worker_of
from tokenweir.stream.serve.workers.peers import Peers, Place

LIMITS = Limits(drain_timeout=0.2, handover_timeout=10, resume_grace=0.5)


def worker(folder, name, engine, *, replaces=None, limits=LIMITS, **options):
    place = Place(listener_at("127.0.0.1", 0), folder, name, replaces)
    return serve(engine=engine, tokenizer=TOK, place=place, limits=limits, **options)


@asynccontextmanager
async def workers(folder, **engines):
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(worker(folder, name, engine)) for name, engine in engines.items()]


async def respond(server, **body):
    async with http_of(server) as client:
        return (await client.post("/v1/responses", json={"input": "hi"} | body)).json()


def slow():
    return Script("one ", 0.2, "two ", 0.2, "three<|im_end|>")


def long():
    return Script(*["on ", 0.02] * 1000)


def text_of(events):
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


def test_ids_say_whose_they_are():
    assert worker_of(new_id("resp", "1a2b")) == "1a2b"
    for other in (new_id("resp"), "resp_../x_1", "resp__1", "resp_a_b_c", "msg_1a2b_1", "", "resp_ä_1"):
        assert worker_of(other) is None


async def test_a_conversation_goes_on_at_another_worker(tmp_path):
    one, two = Script("First<|im_end|>"), Script("Second<|im_end|>")
    async with workers(tmp_path, a=one, b=two) as (a, b):
        first = await respond(a, input="begin")
        assert worker_of(first["id"]) == "a"
        second = await respond(b, input="more", previous_response_id=first["id"])
        assert "begin" in two.prompts[0] and "First" in two.prompts[0] and "more" in two.prompts[0]
        third = await respond(a, input="on", previous_response_id=second["id"])
        assert third["status"] == "completed" and "Second" in one.prompts[1]
        for gone in (new_id("resp", "a"), new_id("resp", "nobody"), new_id("resp", "b")):
            refused = await respond(b, previous_response_id=gone)
            assert refused["error"]["code"] == "previous_response_not_found"


async def test_an_item_of_another_worker_is_referred_to(tmp_path):
    one, two = Script("<think>Hm.</think>First<|im_end|>"), Script("Second<|im_end|>")
    async with workers(tmp_path, a=one, b=two) as (a, b):
        own = (await respond(b))["output"][0]["id"]
        thinking, message = (item["id"] for item in (await respond(a, input="begin"))["output"])
        assert {worker_of(each, ITEMS) for each in (thinking, message)} == {"a"} and worker_of(own, ITEMS) == "b"
        said = [{"type": "item_reference", "id": each} for each in (thinking, message, own)]
        second = await respond(b, input=[*said, {"role": "user", "content": "more"}])
        assert second["status"] == "completed"
        assert two.prompts[1].index("First") < two.prompts[1].index("Second") < two.prompts[1].index("more")
        for gone in (message[:-1], "msg_nobody_1", "msg_../x_1", "msg_1"):
            refused = await respond(b, input=[{"type": "item_reference", "id": gone}])
            assert refused["error"]["code"] == "item_not_found"


async def test_a_conversation_is_its_clients_alone(tmp_path):
    async with AsyncExitStack() as stack:
        a = await stack.enter_async_context(worker(tmp_path, "a", Script("x<|im_end|>"), api_key=["one", "two"]))
        b = await stack.enter_async_context(worker(tmp_path, "b", Script("y<|im_end|>"), api_key=["one", "two"]))

        async def ask(server, key, **body):
            async with http_of(server, key=key) as client:
                return (await client.post("/v1/responses", json={"input": "hi"} | body)).json()

        mine = (await ask(a, "one"))["id"]
        assert (await ask(b, "two", previous_response_id=mine))["error"]["code"] == "previous_response_not_found"
        assert (await ask(b, "one", previous_response_id=mine))["status"] == "completed"


async def test_a_response_is_resumed_by_way_of_another_worker(tmp_path):
    async with workers(tmp_path, a=slow(), b=Script("B<|im_end|>")) as (a, b):
        async with socket_to(a) as websocket:
            await say(websocket, background=True)
            events = await until(websocket, "response.output_text.delta")
        name, seen = events[0]["response"]["id"], events[-1]["sequence_number"]
        async with socket_to(b) as websocket:
            await websocket.send(json.dumps({"type": "response.resume", "response_id": name, "starting_after": seen}))
            rest = await until(websocket, "response.completed")
            assert [event["sequence_number"] for event in rest] == sorted({e["sequence_number"] for e in rest})
            assert rest[0]["sequence_number"] > seen
            assert text_of(events + rest) == "one two three"
            assert rest[-1]["response"]["output"][0]["content"][0]["text"] == "one two three"
            await say(websocket)  # the connection still answers its own requests
            assert text_of(await until(websocket, "response.completed")) == "B"
            await say(websocket, previous_response_id=name)
            await until(websocket, "response.completed")


async def test_a_resumed_response_is_cancelled_by_way_of_another_worker(tmp_path):
    engine = long()
    async with workers(tmp_path, a=engine, b=Script("B")) as (a, b):
        async with socket_to(a) as websocket:
            await say(websocket, background=True)
            name = (await until(websocket, "response.created"))[-1]["response"]["id"]
        async with socket_to(b) as websocket:
            await websocket.send(json.dumps({"type": "response.resume", "response_id": name}))
            await until(websocket, "response.output_text.delta")
            await say(websocket)
            refused = (await until(websocket, "error"))[-1]
            assert refused["error"]["code"] == "conversation_already_has_active_response"
            await websocket.send(json.dumps({"type": "response.cancel", "response_id": "resp_other"}))
            refused = (await until(websocket, "error"))[-1]
            assert refused["error"]["code"] == "response_not_in_flight"
            await websocket.send(json.dumps({"type": "response.cancel"}))
            last = (await until(websocket, "response.incomplete"))[-1]
            assert last["response"]["incomplete_details"]["reason"] == "cancelled"
        assert engine.closed_at


async def test_what_cannot_be_resumed_is_refused_and_the_connection_goes_on(tmp_path):
    async with workers(tmp_path, a=Script("A<|im_end|>"), b=Script("B<|im_end|>")) as (_, b), socket_to(b) as websocket:
        for name in (new_id("resp", "a"), new_id("resp", "gone"), new_id("resp", "b"), "resp_1"):
            await websocket.send(json.dumps({"type": "response.resume", "response_id": name}))
            refused = (await until(websocket, "error"))[-1]
            assert (refused["error"]["code"], refused["status"]) == ("response_not_found", 404)
        await say(websocket)
        assert text_of(await until(websocket, "response.completed")) == "B"


async def test_a_worker_that_dies_ends_what_it_sends_by_way_of_another(tmp_path):
    """The client is told to come again, rather than left waiting."""
    async with workers(tmp_path, b=Script("B")) as (b,):
        async with worker(tmp_path, "a", long()) as a:
            async with socket_to(a) as websocket:
                await say(websocket, background=True)
                name = (await until(websocket, "response.created"))[-1]["response"]["id"]
            websocket = await socket_to(b)
            await websocket.send(json.dumps({"type": "response.resume", "response_id": name}))
            await until(websocket, "response.output_text.delta")
        with pytest.raises(ConnectionClosed) as caught:
            async with asyncio.timeout(10):
                while True:
                    await websocket.recv()
        assert caught.value.rcvd.code == 1011


async def test_a_worker_that_is_replaced_ends_its_streams_and_leaves_its_conversations(tmp_path):
    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(worker(tmp_path, "old", slow()))
        other = await stack.enter_async_context(worker(tmp_path, "other", Script("C<|im_end|>")))
        idle = await stack.enter_async_context(socket_to(old))
        running = await stack.enter_async_context(socket_to(old))
        left = await stack.enter_async_context(socket_to(old))
        await say(running)
        events = await until(running, "response.output_text.delta")
        await say(left, background=True)
        begun = (await until(left, "response.output_text.delta"))[0]["response"]["id"]
        await left.close()
        engine = Script("N<|im_end|>")
        new = await stack.enter_async_context(worker(tmp_path, "new", engine, replaces="old"))
        with pytest.raises(ConnectionClosed):
            await idle.recv()  # which has nothing in flight
        assert idle.close_code == 1001
        async with socket_to(new) as websocket:  # the old one still has unread output
            await websocket.send(json.dumps({"type": "response.resume", "response_id": begun}))
            resumed = await until(websocket, "response.completed")
            assert text_of(resumed) == "one two three"
        events += await until(running, "response.completed")
        assert text_of(events) == "one two three"
        await running.close()
        async with asyncio.timeout(10):
            await old.wait_closed()
        for server in (new, other):  # now that it is gone
            response = await respond(server, input="and", previous_response_id=begun)
            assert response["status"] == "completed"
        assert "three" in engine.prompts[0]
        done = 'tokenweir:request_success_total{finished_reason="stop",model_name="default"}'
        assert (await metrics_of(other))[done] == 4
        reference = {"type": "item_reference", "id": resumed[-1]["response"]["output"][0]["id"]}
        for server in (new, other):
            response = await respond(server, input=[reference, {"role": "user", "content": "and"}])
            assert response["status"] == "completed"


async def test_a_successor_of_nobody_serves(tmp_path):
    async with worker(tmp_path, "new", Script("N<|im_end|>"), replaces="dead") as server:
        assert (await respond(server))["status"] == "completed"


async def test_a_conversation_longer_than_a_buffer_crosses(tmp_path):
    text = "weir " * 150_000
    async with workers(tmp_path, a=Script("A<|im_end|>"), b=Script("B<|im_end|>")) as (a, b):
        first = await respond(a, input=text)
        assert (await respond(b, previous_response_id=first["id"]))["status"] == "completed"


async def test_nonsense_between_workers_hurts_nobody(tmp_path, caplog):
    async with workers(tmp_path, a=Script("A<|im_end|>")) as (a,):
        for data in (b"", b"\x00\x00\x00\x02{}", b"\xff\xff\xff\xff", b"\x00\x00\x00\x05nope!"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "a")
            writer.write(data)
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
        assert (await respond(a))["status"] == "completed"
    assert "could not be answered" in caplog.text


async def test_a_worker_that_does_not_answer_counts_as_gone(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tokenweir.stream.serve.workers.peers.ANSWER_TIMEOUT", 0.05)
    responses = Responses(Service(lambda *_: None, ["default"]))
    peers = Peers(Place(None, tmp_path, "b"), responses, lambda: None)

    async def listen(reader, writer):
        await reader.read()  # to the end, which comes once no request waits
        writer.close()

    silent = await asyncio.start_unix_server(listen, tmp_path / "a")
    assert await peers.conversation(new_id("resp", "a"), "me") is None
    assert "worker a did not answer" in caplog.text
    silent.close()


async def test_a_response_is_deleted_through_another_worker(tmp_path):
    async with workers(tmp_path, a=Script("one"), b=Script("two")) as (a, b), httpx.AsyncClient(timeout=20) as client:
        response = await respond(a, input="hi " * 500)
        assert len(a._app.service.prompts) == 1
        url = f"http://127.0.0.1:{b.port}/v1/responses/{response['id']}"
        assert (await client.delete(url)).json()["deleted"]
        assert len(a._app.service.prompts) == 0
        assert (await client.delete(url)).status_code == 404
        again = await respond(a, previous_response_id=response["id"])
        assert again["error"]["code"] == "previous_response_not_found"
