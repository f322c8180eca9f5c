"""The server over real sockets: the openai client, plain HTTP, limits, and what happens when somebody goes away."""

import asyncio
import json
import socket

import msgspec
import pytest
import uvicorn
from serving import (
    TOK,
    Endless,
    Script,
    bearer,
    client_of,
    eventually,
    fetch,
    raw_socket,
    say,
    serving,
    small_socket,
    socket_to,
    until,
)
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tokenweir.encode.errors import TemplateError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines.ngram import NgramEngine
from tokenweir.stream.engines.replay import ReplayEngine
from tokenweir.stream.prompts.batching.batcher import PromptBatcher
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.limits.turns import REQUEST, SHARE
from tokenweir.stream.serve.transport.server import ACCEPTS, serve, url_of
from tokenweir.templates.chat_template import ChatTemplate

# --- the openai client ----------------------------------------------------------------------------------------------


async def test_the_embedded_engines():
    engines = {"demo": ReplayEngine(speed=None), "ngram": NgramEngine()}
    async with serving(engines) as server, client_of(server) as client, client.responses.connect() as connection:
        for model in engines:
            await connection.response.create(model=model, input="Hello", max_output_tokens=50)
            text = ""
            async with asyncio.timeout(10):
                async for event in connection:
                    if event.type in ("response.output_text.delta", "response.reasoning_text.delta"):
                        text += event.delta
                    elif event.type in ("response.completed", "response.incomplete"):
                        break
            assert text and event.response.model == model
            assert event.response.usage.output_tokens <= 50


async def test_tools_are_refused_where_the_template_takes_none():
    template = ChatTemplate("{{ messages[0].content }}")
    async with serving(Script("a"), template=template) as server, socket_to(server) as websocket:
        await say(websocket, tools=[{"type": "function", "name": "weather"}])
        error = (await until(websocket, "response.failed"))[-1]["response"]["error"]
    assert error == {"code": "invalid_prompt", "message": "the chat template 'default' takes no tools, and 1 are given"}


# --- the protocol over a socket ---------------------------------------------------------------------------------------


async def test_a_binary_frame_is_refused_and_the_connection_lives_on():
    async with serving(Script("a", "<|im_end|>")) as server, socket_to(server) as websocket:
        await websocket.send(b"\x00\xff")
        assert "a binary frame of 2 bytes" in (await until(websocket, "error"))[-1]["error"]["message"]
        await say(websocket)
        await until(websocket, "response.completed")


async def test_a_small_frame_does_not_wait_until_the_one_before_is_acknowledged():
    async with serving(Script("fine", "<|im_end|>")) as server, socket_to(server):
        for connection in server._uvicorn.server_state.connections:
            raw_socket = connection.transport.get_extra_info("socket")
            assert raw_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_frames_are_utf8_text_and_no_character_is_cut():
    text = "wörld 🙂 漢字 👩\u200d👩\u200d👧"
    engine = Script(text, "<|im_end|>")
    async with serving(engine, send_interval=0) as server, socket_to(server) as websocket:
        await say(websocket)
        sent = ""
        async with asyncio.timeout(10):
            while True:
                frame = await websocket.recv()
                assert isinstance(frame, str)
                assert "\ufffd" not in frame
                event = json.loads(frame)
                sent += event.get("delta", "")
                if event["type"] == "response.completed":
                    break
    assert sent == text


async def test_the_prompts_of_all_connections_may_share_an_encoder():
    sizes = []

    class Device:
        def encode_batch(self, prompts):
            sizes.append(len(prompts))
            return [prompt.encode(TOK) for prompt in prompts]

    engine, plain = Script("Hello", "<|im_end|>"), Script("Hello", "<|im_end|>")
    async with PromptBatcher(Device()) as batcher:
        for served, encoder in ((engine, batcher), (plain, None)):
            async with serving(served, encoder=encoder) as server, asyncio.TaskGroup() as tasks:

                async def talk(number, server=server):
                    async with socket_to(server) as websocket:
                        await say(websocket, input=f"{number}<|im_end|>")
                        await until(websocket, "response.completed")

                for number in range(5):
                    tasks.create_task(talk(number))
    assert sorted(engine.prompts) == sorted(plain.prompts)
    assert sum(sizes) == 5


# --- going away -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(60,), ("some text", 60)], ids=["before the first token", "between tokens"])
@pytest.mark.parametrize("way", ["close", "vanish"])
async def test_lesson_45_a_client_that_leaves_stops_the_engine_within_100_ms(parts, way):  # sglang#36475
    engine = Script(*parts)
    async with serving(engine) as server:
        websocket = await socket_to(server)
        await say(websocket)
        await until(websocket, "response.in_progress" if len(parts) == 1 else "response.output_text.delta")
        await eventually(lambda: engine.started)
        left_at = asyncio.get_running_loop().time()
        if way == "close":
            await websocket.close()
        else:
            websocket.transport.abort()
        await eventually(lambda: engine.closed_at)
    assert engine.closed_at[0] - left_at < 0.1


async def test_lesson_46_a_reader_that_stalls_costs_little_and_is_closed_by_name():  # hermes-agent#2775
    engine = Endless()
    async with serving(engine, stall_timeout=0.5, send_interval=0, max_output_tokens=10**9) as server:
        websocket = await socket_to(server, sock=small_socket(server), max_queue=1)
        await say(websocket)
        await eventually(lambda: engine.closed)  # nothing is read
        assert 0 < engine.given < 100_000
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(10):
                while True:
                    await websocket.recv()
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "stalled: nothing could be sent for 0.5 s")


async def test_a_client_that_asks_and_never_reads_is_not_read_either():
    async with serving(Script("fine", "<|im_end|>")) as server:
        hurried = await socket_to(server, sock=small_socket(server), ping_interval=None)
        hurried.transport.pause_reading()
        question, asked, before = json.dumps({"type": "response.resume", "response_id": "?" * 1000}), 0, -1

        async def ask():
            nonlocal asked
            for _ in range(30_000):  # 30 MB, which no socket holds
                await hurried.send(question)
                asked += 1

        asking = asyncio.ensure_future(ask())
        while asked > before:
            before = asked
            await asyncio.sleep(0.2)
        async with socket_to(server) as websocket:  # which harms no other
            await say(websocket)
            await until(websocket, "response.completed")
        assert 0 < asked == before < 30_000
        hurried.transport.abort()
        with pytest.raises(ConnectionClosed):
            await asking


async def test_lesson_47_a_slow_reader_that_lives_is_not_closed_for_a_late_pong(monkeypatch):  # websockets#1012
    config = uvicorn.Config

    def impatient(*args, **options):
        """The server with pings 1000 times as often, and as impatient as it is set to be."""
        timeout = options.pop("ws_ping_timeout", 20)
        timeout = None if timeout is None else timeout / 1000
        return config(*args, **options, ws_ping_interval=0.02, ws_ping_timeout=timeout)

    monkeypatch.setattr("tokenweir.stream.serve.transport.server.uvicorn.Config", impatient)
    async with serving(Script("one", 0.4, " two", "<|im_end|>")) as server, socket_to(server) as websocket:
        await say(websocket)
        await until(websocket, "response.output_text.delta")
        websocket.transport.pause_reading()  # no ping is read, and none answered
        await asyncio.sleep(0.3)
        websocket.transport.resume_reading()
        end = (await until(websocket, "response.completed"))[-1]["response"]
        assert end["output"][0]["content"][0]["text"] == "one two"


async def test_connections_stay_open_between_two_requests_for_the_keep_alive_timeout():
    async with serving(Script()) as server:  # above the 60 s of proxies
        assert server._uvicorn.config.timeout_keep_alive == Limits().keep_alive_timeout == 75
    get = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with (
        serving(Script(), keep_alive_timeout=0.2, request_timeout=60) as server,
        raw_socket(server) as (reader, writer),
    ):
        for _ in range(2):
            writer.write(get)
            assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
        async with asyncio.timeout(20):
            assert await reader.read() == b""


async def test_closing_lets_a_response_end_and_goes_away():
    engine = Script("one", 0.2, " two", "<|im_end|>")
    async with serving(engine, drain_timeout=10) as server:
        async with socket_to(server) as busy, socket_to(server) as idle:
            await say(busy)
            await until(busy, "response.output_text.delta")
            server.close()
            with pytest.raises(ConnectionClosed) as idle_closed:
                await idle.recv()
            await say(busy)
            assert (await until(busy, "error"))[-1]["error"]["code"] == "server_shutting_down"
            text = (await until(busy, "response.completed"))[-1]["response"]["output"][0]["content"][0]["text"]
            with pytest.raises(ConnectionClosed) as busy_closed:
                await busy.recv()
        await server.serve_forever()
    assert text == "one two"
    assert idle_closed.value.rcvd.code == busy_closed.value.rcvd.code == 1001


async def test_closing_cuts_off_what_does_not_end():
    engine = Script("one", 60)
    async with serving(engine) as server, socket_to(server) as websocket:
        await say(websocket)
        await until(websocket, "response.output_text.delta")
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionClosed) as closed:
            await until(websocket, "never")
    assert closed.value.rcvd.code == 1001
    assert len(engine.closed_at) == 1


# --- who may connect --------------------------------------------------------------------------------------------------


async def status_of(server, **options):
    try:
        async with socket_to(server, **options):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


async def test_origins():
    async with serving(Script(), origins=["https://chat.example"]) as server:
        own = f"http://127.0.0.1:{server.port}"
        assert await status_of(server) == 101
        assert await status_of(server, origin=own) == 101
        assert await status_of(server, origin="https://chat.example") == 101
        assert await status_of(server, origin="https://evil.example") == 403
        twice = [("Origin", own), ("Origin", "https://evil.example")]
        assert await status_of(server, additional_headers=twice) == 400


async def test_the_api_key():
    async with serving(Script(), api_key=["s3cret", "other"]) as server:
        assert await status_of(server) == 401
        assert await status_of(server, additional_headers={"Authorization": "Bearer wrong"}) == 401
        assert await status_of(server, additional_headers={"Authorization": "Bearer s3cret"}) == 101
        assert await status_of(server, subprotocols=["tokenweir", "openai-insecure-api-key.wrong"]) == 401
        async with socket_to(server, subprotocols=["tokenweir", "openai-insecure-api-key.s3cret"]) as websocket:
            assert websocket.subprotocol == "tokenweir"
        status, headers, body = await fetch(server, "/v1/models")
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        error = json.loads(body)["error"]
        assert (error["code"], error["message"]) == ("invalid_api_key", "no API key was given")
        for key, status in (("s3cret", 200), ("other", 200), ("s3crets", 401), ("", 401)):
            assert (await fetch(server, "/v1/models", **bearer(key)))[0] == status
        for path, status in (("/", 200), ("/health", 200), ("/ready", 200), ("/metrics", 401)):
            assert (await fetch(server, path))[0] == status


async def test_too_many_connections():
    async with serving(Script(), max_connections=2) as server, socket_to(server):
        async with socket_to(server):
            assert await status_of(server) == 503
            assert (await fetch(server, "/health"))[0] == 200
        assert await status_of(server) == 101


async def test_only_browsers_get_heartbeats():
    async with serving(Script(), heartbeat=0.02) as server, socket_to(server) as program:
        async with socket_to(server, origin=f"http://127.0.0.1:{server.port}") as browser:
            assert (await until(browser, "heartbeat"))[-1] == {"type": "heartbeat", "interval": 0.02}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await program.recv()


async def test_no_compression():
    async with serving(Script()) as server, socket_to(server, compression="deflate") as websocket:
        assert "Sec-WebSocket-Extensions" not in websocket.response.headers


# --- plain HTTP -------------------------------------------------------------------------------------------------------


async def test_plain_requests():
    async with serving({"a": Script(), "b": Script()}) as server:
        status, headers, body = await fetch(server, "/health?x=1")
        assert (status, headers["Content-Type"], json.loads(body)) == (200, "application/json", {"status": "ok"})
        status, headers, body = await fetch(server, "/", "HEAD")
        assert (status, body) == (200, b"") and int(headers["Content-Length"]) > 1000
        status, headers, body = await fetch(server, "/favicon.ico")
        assert (status, json.loads(body)["error"]["message"]) == (404, "nothing is served at /favicon.ico")
        status, headers, _ = await fetch(server, "/health", "DELETE")
        assert (status, {*headers["Allow"].split(", ")}) == (405, {"GET", "HEAD"})
        for path in ("/", "/health", "/nowhere"):
            assert (await fetch(server, path))[1]["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"engine": {}}, ValueError, "there is no model to serve"),
        ({"tokenizer": "path"}, TypeError, "^tokenizer is a str, not a Tokenizer"),
        ({"port": 70000}, ValueError, "^port=70000 is not between 0 and 65535$"),
        ({"api_key": ""}, ValueError, "api_key must be ASCII and not empty"),
        ({"port": "8000"}, TypeError, "^port must be int, not '8000'$"),
        ({"host": None}, TypeError, "^host must be str, not NoneType$"),
        ({"api_key": b"key"}, TypeError, "^api_key must be str, or several of them, not bytes$"),
        ({"api_key": 5}, TypeError, "^api_key must be str, or several of them, not int$"),
        ({"api_key": [5]}, TypeError, "^api_key must be str, or several of them, not int$"),
        ({"encoder": 5}, TypeError, r"^an encoder has encode_batch\(\) or an async encode\(\), and int has neither$"),
        ({"encoder": Tokenizer}, TypeError, "^encoder is the class Tokenizer itself, not one of its objects$"),
        ({"engine": 5}, TypeError, "engine must be an Engine, which has a method generate, not int"),
        ({"engine": {"a": Script}}, TypeError, r"engine\['a'\] is the class Script itself, not one of its objects"),
        ({"template": "a.jinja"}, TypeError, "template is a str, not a ChatTemplate such as"),
        ({"limits": {"max_items": 5}}, TypeError, "limits is a dict, not a Limits"),
        ({"api_key": "clé"}, ValueError, "api_key must be ASCII and not empty"),
        ({"history_thinking": "no"}, ValueError, "^history_thinking is control or text, not .no.$"),
    ],
)
async def test_what_cannot_be_served(options, error, text):
    with pytest.raises(error, match=text):
        async with serve(**{"engine": Script(), "tokenizer": TOK, "port": 0} | options):
            pass


async def test_a_tokenizer_without_a_template_is_refused():
    bare = Tokenizer.from_spec(msgspec.structs.replace(TOK.spec, chat_templates={}))
    with pytest.raises(TemplateError):
        async with serve(engine=Script(), tokenizer=bare, port=0):
            pass


def test_an_ipv6_address_stands_in_brackets_in_a_url():
    assert url_of("::1", 8000) == "http://[::1]:8000" and url_of("localhost", 1) == "http://localhost:1"


async def test_it_listens_on_this_machine_only_by_default():
    async with serving(Script()) as server:
        with socket.socket() as other:
            other.bind(("127.0.0.2", server.port))  # free, so the server is not on every address


async def test_few_connections_are_accepted_in_one_turn():
    """A thousand at once would keep the event loop for a tenth of a second."""
    async with serving(Script("a", "<|im_end|>")) as server:
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(10 * ACCEPTS)]
        sockets, accepted = server._app.service.sockets, []
        async with asyncio.timeout(10):
            while sockets.count < len(clients):
                before = sockets.count
                await asyncio.sleep(0)
                accepted.append(sockets.count - before)
        assert max(accepted) <= ACCEPTS + 1  # later versions of Python accept one more
        for client in clients:
            client.close()


async def test_few_requests_begin_in_one_turn():
    async with serving(Script("a", "<|im_end|>")) as server:
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(100)]
        tasks, begun, seen = server._uvicorn.server_state.tasks, [], set()
        for client in clients:
            client.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(10):
            while len(seen) < len(clients):
                await asyncio.sleep(0)
                begun.append(len(tasks - seen))
                seen |= tasks
        assert max(begun) <= SHARE / REQUEST
        for client in clients:
            client.close()
