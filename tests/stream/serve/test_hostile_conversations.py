"""Conversations that grow past the limits by another door, fill the memory, or push out those of others."""

import asyncio
import gc
import tracemalloc
from contextlib import asynccontextmanager

import pytest
from serving import TOK, Script, eventually, http_of, metrics_of, say, serving, socket_to, until

from tokenweir.stream.prompts.cache.ledger import ENTRY_BYTES
from tokenweir.stream.serve.wire.responses.compaction import PackedMessage, pack

FINE = ("fine", "<|im_end|>")
MEGABYTE = 1_000_000
THREADS = 3 * 4 * MEGABYTE
"""Each thread of the pool refers to its last work, the prompt of a megabyte in four bytes a character, until its next."""
MANY = [{"role": "user", "content": "a"}] * 26_000
UNPACKED = [{"type": "compaction", "encrypted_content": pack([PackedMessage("user", "a")] * 26_000)}]


def stored_bytes(server):
    """Bytes of conversations, without those of cached prompts."""
    entries = server._app.service.ledger._entries.values()
    return sum(entry.size for own in entries for entry in own.others)


def refusal(reply):
    error = reply.json()["error"]
    return reply.status_code, error["code"], error["message"]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/render", "/v1/responses/compact"])
async def test_a_compaction_is_counted_as_what_it_holds(path):
    engine = Script(*FINE)
    async with serving(engine) as server, http_of(server) as http:
        reply = await http.post(path, json={"model": "default", "input": UNPACKED})
        status, code, message = refusal(reply)
        assert (status, code) == (400, "too_many_items")
        assert "has 26000 messages" in message and "max_items is 2048" in message
    assert not engine.started


async def test_a_conversation_does_not_grow_past_the_limit_by_requests():
    engine = Script(*FINE)
    async with serving(engine) as server, http_of(server) as http:
        last = None
        for count in (1000, 1040, 5):
            body = {"input": MANY[:count], "previous_response_id": last}
            reply = await http.post("/v1/responses", json=body)
            assert reply.status_code == 200, reply.text
            last = reply.json()["id"]
        reply = await http.post("/v1/responses", json={"input": "a", "previous_response_id": last})
        status, code, message = refusal(reply)
        assert (status, code) == (400, "too_many_items") and "has 2049 messages" in message
        for path in ("/v1/responses", "/v1/responses/compact"):
            body = {"model": "default", "input": "a", "previous_response_id": last}
            assert refusal(await http.post(path, json=body))[1] == "too_many_items"
    assert engine.started == 3


async def test_a_conversation_does_not_grow_past_its_bytes():
    async with serving(Script(*FINE), max_message_bytes=10_000) as server, http_of(server) as http:
        first = await http.post("/v1/responses", json={"input": "a" * 6000})
        assert first.status_code == 200
        body = {"input": "b" * 6000, "previous_response_id": first.json()["id"]}
        status, code, message = refusal(await http.post("/v1/responses", json=body))
        assert (status, code) == (400, "conversation_too_long")
        assert "has 12" in message and "max_message_bytes is 10000" in message


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/render", "/tokenize"])
async def test_calls_count_as_items(path):
    calls = [{"id": "", "function": {"name": "f"}}] * 26_000
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": calls}]
    async with serving(Script(*FINE)) as server, http_of(server) as http:
        status, code, message = refusal(await http.post(path, json={"messages": messages}))
        assert (status, code) == (400, "too_many_items") and "26002" in message


async def test_a_name_that_every_result_repeats_is_short():
    call = {"type": "function_call", "call_id": "c", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": ""}
    async with serving(Script(*FINE)) as server, http_of(server) as http:
        for length, status in ((256, 200), (257, 400)):
            items = [call | {"name": "f" * length}, result, {"role": "user", "content": "hi"}]
            reply = await http.post("/v1/responses", json={"input": items})
            assert reply.status_code == status, reply.text
        tool_call = {"id": "c", "function": {"name": "f" * 257}}
        reply = await http.post(
            "/v1/chat/completions", json={"messages": [{"role": "assistant", "tool_calls": [tool_call]}]}
        )
        assert reply.status_code == 400 and "length <= 256" in reply.json()["error"]["message"]


async def talk(websocket, text, **fields):
    """Say something, and get the id of the answer."""
    await say(websocket, input=text, **fields)
    return (await until(websocket, "response.completed"))[-1]["response"]["id"]


@pytest.mark.parametrize("store", [None, False])
async def test_idle_sockets_keep_conversations_within_the_budget(store):
    most = 3 * MEGABYTE
    async with serving(Script(*FINE), max_stored_bytes=most) as server:
        ledger = server._app.service.ledger
        sockets = [await socket_to(server) for _ in range(6)]
        ids = [await talk(websocket, "a" * (MEGABYTE - 5000), store=store) for websocket in sockets]
        assert 2 * MEGABYTE < ledger.bytes <= most
        told = await metrics_of(server)
        assert told["tokenweir:stored_bytes"] == ledger.bytes
        assert told["tokenweir:stored_evicted_total"] == 9, "three conversations, after all six cached prompts"
        await say(sockets[0], previous_response_id=ids[0])
        error = (await until(sockets[0], "error"))[-1]["error"]
        assert error["code"] == "previous_response_not_found" and f"max_stored_bytes={most}" in error["message"]
        await talk(sockets[5], "on", previous_response_id=ids[5], store=store)
        for websocket in sockets:
            await websocket.close()
        if store is False:
            await eventually(lambda: stored_bytes(server) == 0)


@asynccontextmanager
async def eight_sockets(engine):
    """Sockets, a function that gives the bytes made since they were opened, and a text of a megabyte in the ledger."""
    text = "a" * (MEGABYTE - 1000) + "\U0001f30a"  # one character that makes a str take four bytes for each
    async with serving(engine, max_stored_bytes=1 << 30) as server:
        async with socket_to(server) as websocket:
            await say(websocket)  # what is made once
            await until(websocket, "response.output_text.delta")
        sockets = [await socket_to(server) for _ in range(8)]
        gc.collect()
        tracemalloc.start()

        def held():
            engine.prompts.clear()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        try:
            yield server, sockets, text, held
        finally:
            tracemalloc.stop()
        assert server._app.service.ledger.bytes > len(sockets) * len(text)
        for websocket in sockets:
            await websocket.close()


async def test_an_idle_socket_keeps_one_copy_of_its_conversation():
    async with eight_sockets(Script(*FINE)) as (server, sockets, text, held):
        for websocket in sockets:
            await talk(websocket, text, store=False)
        await eventually(lambda: not server._app.service._running)
        assert held() < 1.25 * len(sockets) * MEGABYTE + THREADS


async def test_a_response_at_work_counts_and_keeps_its_messages_once():
    async with eight_sockets(Script("begun", 600)) as (_, sockets, text, held):
        for websocket in sockets:
            await say(websocket, input=text)
            await until(websocket, "response.output_text.delta")
        pointers = 8 * len(sockets) * len(TOK.encode(text))  # of the prompts' lists of ids, which the engine has
        assert held() < 1.25 * len(sockets) * MEGABYTE + 2 * pointers + THREADS


async def test_a_response_whose_conversation_is_evicted_goes_on_and_cannot_be_continued():
    engine = Script("begun", 0.3, " and done", "<|im_end|>")
    async with (
        serving(engine, max_stored_bytes=2 * (ENTRY_BYTES + 1000)) as server,
        socket_to(server) as first,
        socket_to(server) as second,
    ):
        await say(first, input="a" * 500)
        await until(first, "response.output_text.delta")
        for _ in range(3):
            await say(second, input="b" * 500)
            await until(second, "response.completed")
        done = (await until(first, "response.completed"))[-1]["response"]
        assert done["output"][0]["content"][0]["text"] == "begun and done"
        await say(first, previous_response_id=done["id"])
        assert (await until(first, "error"))[-1]["error"]["code"] == "previous_response_not_found"


async def test_one_client_does_not_evict_the_conversations_of_others():
    async with serving(Script(*FINE), api_key=["one", "two"], max_stored_bytes=4 * MEGABYTE) as server:
        one, two = (http_of(server, key=key) for key in ("one", "two"))
        async with one, two:
            kept = (await one.post("/v1/responses", json={"input": "a" * 500_000})).json()["id"]
            greedy = [(await two.post("/v1/responses", json={"input": "b" * 990_000})).json()["id"] for _ in range(8)]

            async def status(http, response_id):
                body = {"input": "on", "previous_response_id": response_id}
                return (await http.post("/v1/responses", json=body)).status_code

            assert await status(one, kept) == 200
            assert [await status(two, name) for name in greedy[:5]] == [404] * 5
            assert await status(two, greedy[-1]) == 200


async def test_cached_prompts_do_not_evict_the_conversations_of_their_client():
    async with serving(Script(*FINE), max_stored_bytes=2 * MEGABYTE) as server, http_of(server) as http:
        kept = (await http.post("/v1/responses", json={"input": "a" * 500_000})).json()["id"]
        for letter in "bcdefg":
            messages = [{"role": "user", "content": letter * 900_000}]
            assert (await http.post("/v1/chat/completions", json={"messages": messages})).status_code == 200
        assert (await metrics_of(server))["tokenweir:stored_evicted_total"]
        assert (await http.post("/v1/responses", json={"input": "on", "previous_response_id": kept})).status_code == 200


async def test_a_failed_response_leaves_no_conversation():
    async with serving(Script("begun", ValueError("no"))) as server, socket_to(server) as websocket:
        await say(websocket)
        await until(websocket, "response.failed")
        assert stored_bytes(server) == 0


async def test_a_lost_connection_leaves_no_private_conversation():
    async with serving(Script("begun", 600)) as server:
        async with socket_to(server) as websocket:
            await say(websocket, store=False)
            await until(websocket, "response.output_text.delta")
            assert stored_bytes(server)
        await eventually(lambda: not stored_bytes(server) and not server._app.service._running)


async def test_a_stream_without_a_store_keeps_nothing():
    body = {"input": "hi", "store": False, "stream": True}
    async with (
        serving(Script("begun", 600)) as server,
        http_of(server) as http,
        http.stream("POST", "/v1/responses", json=body) as reply,
    ):
        async for line in reply.aiter_lines():
            if "output_text.delta" in line:
                break
        assert stored_bytes(server) == 0


class Gated:
    """Encodes prompts when they are told to go on, and remembers their order."""

    def __init__(self):
        self.asked, self.go_on = [], asyncio.Semaphore(0)

    async def encode(self, prompt):
        self.asked.append(len(prompt.text))
        await self.go_on.acquire()
        return prompt.encode(TOK)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/render", "/tokenize"])
async def test_a_light_client_is_served_before_the_backlog_of_a_heavy_one(path):
    gated = Gated()
    async with serving(Script(*FINE), encoder=gated, api_key=["one", "two"], max_renders=1) as server:
        heavy, light = (http_of(server, key=key) for key in ("one", "two"))
        async with heavy, light:

            def ask(http, text):
                return asyncio.ensure_future(http.post(path, json={"messages": [{"role": "user", "content": text}]}))

            asking = [ask(heavy, "a" * 100_000) for _ in range(6)]
            queue = server._app.responses.service._answer.__self__._engines._queue
            await eventually(lambda: len(queue._waiting) == 5)
            asking.append(ask(light, "hi"))
            await eventually(lambda: len(queue._waiting) == 6)
            for _ in asking:
                gated.go_on.release()
            assert [reply.status_code for reply in await asyncio.gather(*asking)] == [200] * 7
            assert gated.asked[1] < 1000 < min(gated.asked[:1] + gated.asked[2:])
