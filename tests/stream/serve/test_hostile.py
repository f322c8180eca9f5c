"""Requests that are allowed in form and too much in size: heads without end, and work that would stop everybody else."""

import asyncio
import gc
import json
import struct
import threading
from contextlib import suppress

import httpx
import pytest
from case_tables import cases
from serving import (
    HANDSHAKE,
    HOST,
    TOK,
    Endless,
    Script,
    eventually,
    fetch,
    http_of,
    posting,
    raw_socket,
    say,
    serving,
    socket_to,
    until,
)

from tokenweir import Tokenizer
from tokenweir.stream.serve.http.endpoints import Endpoints
from tokenweir.stream.serve.transport.http_protocol import MOST_HEAD, MOST_QUEUED
from tokenweir.stream.serve.transport.socket_protocol import MOST_FRAMES
from tokenweir.stream.serve.wire.openai.chat import MOST_BIASES
from tokenweir.stream.serve.wire.shared.errors import RequestError

CASES = cases(__file__)

CHUNKED = (
    b"POST /tokenize HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n" + HOST
) + b'\r\n5\r\n{"a":\r\n0\r\n'
"""A request up to the fields behind its body."""


async def sent(server, *parts):
    """Return the server's answer to bytes, up to the end of the connection; empty if it only closes it."""
    with suppress(ConnectionError):
        async with raw_socket(server) as (reader, writer), asyncio.timeout(20):
            for part in parts:
                writer.write(part)
                await writer.drain()
            return await reader.read()
    return b""


@pytest.mark.parametrize(
    "part", [b"X-A: " + b"a" * 1000 + b"\r\n", b"a" * 1000], ids=["many fields", "one field without end"]
)
async def test_a_head_without_end_is_cut_off(part):
    head = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-B: "
    async with serving(Script("fine", "<|im_end|>")) as server:
        answer = await sent(server, head, *[part] * (2 * MOST_HEAD // len(part)))
        assert not answer or answer.startswith(b"HTTP/1.1 431 ")
        await eventually(lambda: not server._uvicorn.server_state.connections)
        assert (await fetch(server, "/health"))[0] == 200


async def test_a_long_head_is_heard():
    head = (
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-A: "
        + b"a" * (MOST_HEAD - 1000)
        + b"\r\n\r\n"
    )
    async with serving(Script("fine", "<|im_end|>")) as server:
        assert (await sent(server, head)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("fields", [1, 100])
async def test_fields_behind_a_body_are_refused(fields):
    async with serving(Script("fine", "<|im_end|>")) as server:
        answer = await sent(server, CHUNKED, *[b"X-A: " + b"a" * 1000 + b"\r\n"] * fields, b"\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ") and b"trailer fields" in answer and answer.count(b"HTTP/1.1") == 1
        await eventually(lambda: not server._uvicorn.server_state.connections)
        assert (await fetch(server, "/health"))[0] == 200


async def test_a_refusal_is_not_written_into_another_answer():
    body = b'{"prompt":"hi","stream":true,"max_tokens":1000000}'
    engine = Endless()
    async with serving(engine, max_output_tokens=10**9) as server:
        async with raw_socket(server) as (reader, writer), asyncio.timeout(20):
            writer.write(posting("/v1/completions", body))
            answer = await reader.readuntil(b"data: ")
            writer.write(CHUNKED + b"X-A: a\r\n\r\n")
            with suppress(ConnectionError):
                while more := await reader.read(1 << 16):
                    answer += more
        assert answer.count(b"HTTP/1.1 ") == 1 and b"400" not in answer[:20]
        await eventually(lambda: engine.closed and not server._uvicorn.server_state.connections)


async def test_a_body_after_a_head_is_no_head():
    body = json.dumps({"prompt": "a" * (4 * MOST_HEAD)}).encode()
    head = posting("/tokenize", length=len(body), more=b"Connection: close\r\n")
    pieces = [body[start : start + 1000] for start in range(0, len(body), 1000)]
    async with serving(Script("fine", "<|im_end|>")) as server:
        assert (await sent(server, head, *pieces)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("metadata", [{str(key): "v" for key in range(17)}, {"k" * 65: "v"}, {"k": "v" * 513}])
async def test_what_three_events_repeat_is_short(metadata):
    async with serving(Script("fine", "<|im_end|>")) as server, socket_to(server) as websocket:
        await say(websocket, metadata=metadata)
        error = (await until(websocket, "error"))[-1]["error"]
        assert error["code"] == "invalid_value" and "length <= " in error["message"]
        await say(websocket, metadata={"k" * 64: "v" * 512})
        await until(websocket, "response.completed")


async def test_many_ids_are_told_in_a_thread(monkeypatch):
    threads = []

    def noted(work):
        def work_in(*asked, **options):
            threads.append(threading.current_thread() is threading.main_thread())
            return work(*asked, **options)

        return work_in

    monkeypatch.setattr(Endpoints, "_tokenized", noted(Endpoints._tokenized))
    monkeypatch.setattr(Endpoints, "_detokenized", noted(Endpoints._detokenized))
    text = "the fox " * 1000
    ids = TOK.encode(text)
    async with serving(Script("fine", "<|im_end|>")) as server, http_of(server) as http:
        asked = {"prompt": text, "return_token_strs": True, "add_special_tokens": False}
        told = (await http.post("/tokenize", json=asked)).json()
        assert told["tokens"] == ids and "".join(told["token_strs"]) == text
        told = (await http.post("/detokenize", json={"tokens": ids, "return_tokens": True})).json()
        assert told["prompt"] == text and [token["id"] for token in told["tokens"]] == ids
        assert threads == [False, False]
        await http.post("/detokenize", json={"tokens": ids[:10]})
        assert threads == [False, False, True]


@pytest.mark.parametrize("bad", [-1, 1 << 31, True, 1.5, "a", None, [1]])
async def test_one_wrong_id_among_many_is_refused(bad):
    async with serving(Script("fine", "<|im_end|>")) as server, http_of(server) as http:
        for prompt in ([5] * 1000 + [bad], [[5], [5, bad]]):
            reply = await http.post("/v1/completions", json={"prompt": prompt})
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, "prompt")
        size = Tokenizer.default().vocab_size
        reply = await http.post("/v1/completions", json={"prompt": [5] * 1000 + [size]})
        assert reply.status_code == 400 and f"id {size} is outside" in reply.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_a_bias_for_half_a_vocabulary_is_refused(path):
    asked = {"messages": [{"role": "user", "content": "hi"}]} if "chat" in path else {"prompt": "hi"}
    engine = Script("fine", "<|im_end|>")
    engine.supports = {"logit_bias"}
    async with serving(engine) as server, http_of(server) as http:
        bias = {str(key): 1 for key in range(MOST_BIASES)}
        assert (await http.post(path, json=asked | {"logit_bias": bias})).status_code == 200
        assert len(engine.sampling.logit_bias) == MOST_BIASES
        reply = await http.post(path, json=asked | {"logit_bias": bias | {"70000": 1}})
        error = reply.json()["error"]
        assert (reply.status_code, error["param"]) == (400, "logit_bias")
        assert f"length <= {MOST_BIASES}" in error["message"] and len(error["message"]) < 200


def frames(sent):
    """The opcodes of the frames that a server has sent."""
    while sent:
        opcode, size, head = sent[0] & 15, sent[1], 2
        if size > 125:
            head = 4 if size == 126 else 10
            size = int.from_bytes(sent[2:head])
        yield opcode
        sent = sent[head + size :]


SOCKET = HANDSHAKE.removesuffix(HOST).decode().replace("GET ", "GET {}")


async def told(server, *parts):
    """The frames that a server answers on a websocket to bytes, up to its end of the connection, which must be clean."""
    async with raw_socket(server) as (reader, writer), asyncio.timeout(20):
        writer.write(HANDSHAKE + b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        await eventually(lambda: not server._uvicorn.server_state.connections)
    return answer


@pytest.mark.parametrize("more", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n"])
async def test_a_handshake_with_a_body_is_refused(more):
    async with serving(Script("fine", "<|im_end|>")) as server:
        assert (await sent(server, HANDSHAKE + more)).startswith(b"HTTP/1.1 400 ")
        assert not server._uvicorn.server_state.connections


MALFORMED = {
    "version": HANDSHAKE.replace(b"Version: 13", b"Version: 12"),
    "no version": HANDSHAKE.replace(b"Sec-WebSocket-Version: 13\r\n", b""),
    "no key": HANDSHAKE.replace(b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", b""),
    "short key": HANDSHAKE.replace(b"AAAAAAAAAAAAAAAAAAAAAA==", b"AAAA"),
    "bad key": HANDSHAKE.replace(b"AAAAAAAAAAAAAAAAAAAAAA==", b"~~~~~~~~~~"),
    "two keys": HANDSHAKE + b"Sec-WebSocket-Key: BAAAAAAAAAAAAAAAAAAAAA==\r\n",
    "empty subprotocol": HANDSHAKE + b"Sec-WebSocket-Protocol: \r\n",
    "quoted subprotocol": HANDSHAKE + b'Sec-WebSocket-Protocol: "a"\r\n',
    "bad extension": HANDSHAKE + b"Sec-WebSocket-Extensions: ;;=,\r\n",
    "two upgrades": HANDSHAKE + b"Upgrade: h2c, websocket\r\n",
    "POST": HANDSHAKE.replace(b"GET", b"POST"),
    "HEAD": HANDSHAKE.replace(b"GET", b"HEAD"),
    "no ASCII": HANDSHAKE + b"X-A: \xff\xfe\r\n",
    "another upgrade": HANDSHAKE.replace(b"Upgrade: websocket", b"Upgrade: h2c"),
    "no HTTP": b"\x16\x03\x01\x02\r\n",
    "no target": b"GET  HTTP/1.1\r\n",
    "bad address": HANDSHAKE.replace(b"GET /", b"GET http://[::1"),
    "not ASCII": HANDSHAKE.replace(b"GET /", b"GET /\xff"),
}


@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED)
async def test_malformed_handshakes_write_no_log(request_bytes, caplog):
    async with serving(Script("fine", "<|im_end|>"), api_key="k", keep_alive_timeout=0.05) as server:
        assert (await sent(server, request_bytes + b"\r\n"))[9:12] in (b"", b"400", b"401", b"405", b"426")
        await eventually(lambda: not server._app.service.sockets.count)
    assert [record for record in caplog.records if record.levelname != "INFO"] == []


async def test_text_frames_that_are_not_utf8_write_no_log(caplog):
    async with serving(Script("fine", "<|im_end|>")) as server:
        for head in ((0x81, 0x82), (0x01, 0x82)):
            more = b"" if head[0] & 0x80 else bytes([0x80, 0x80, 0, 0, 0, 0])
            close = await told(server, bytes(head) + bytes(4) + b"a\xff" + more)
            assert close[2:] == struct.pack("!H", 1007) + b"invalid start byte at byte 1"
    assert [record for record in caplog.records if record.levelname != "INFO"] == []


@pytest.mark.parametrize(
    "body", [b"", b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"]
)
async def test_few_pipelined_requests_are_parsed_before_their_turn(body):
    """Each parsed request holds some kilobytes, and needs no key."""
    held = asyncio.Event()

    class Waiting(Script):
        async def generate(self, prompt_ids, sampling):
            await held.wait()
            async for ids in super().generate(prompt_ids, sampling):
                yield ids

    first = b'{"messages": [{"role": "user", "content": "hi"}]}'
    async with serving(Waiting("fine", "<|im_end|>")) as server, raw_socket(server) as (reader, writer):
        writer.write(posting("/v1/chat/completions", first))
        await eventually(lambda: server._app.service.admission.generations)
        line = b"POST" if body else b"GET"
        writer.write((line + b" /health HTTP/1.1\r\nHost:a\r\n" + (body or b"\r\n")) * 600)
        (connection,) = server._uvicorn.server_state.connections
        await eventually(lambda: connection.pipeline)
        for _ in range(100):
            await asyncio.sleep(0)
        assert MOST_QUEUED <= len(connection.pipeline) <= MOST_QUEUED + 1
        held.set()
        answers = b""
        async with asyncio.timeout(60):
            while answers.count(b"HTTP/1.1 ") < 601:
                answers += await reader.read(1 << 16)
                assert len(connection.pipeline) <= MOST_QUEUED + 1
        assert answers.startswith(b"HTTP/1.1 200 ") and answers.count(b"fine") == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("between", [b"", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])
async def test_an_upgrade_waits_for_the_answers_before_it(stream, between):
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "stream": stream}).encode()
    async with serving(Script(0.1, "fine", "<|im_end|>")) as server:
        async with raw_socket(server) as (reader, writer), asyncio.timeout(20):
            writer.write(posting("/v1/chat/completions", body) + between + HANDSHAKE + b"\r\n")
            answers = await reader.readuntil(b"HTTP/1.1 101 ")
            assert answers.startswith(b"HTTP/1.1 200 ") and b"fine" in answers
            assert answers.count(b"HTTP/1.1 200 ") == (2 if between else 1)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(bytes([0x88, 0x80]) + bytes(4))  # a close frame, which the websocket answers
            assert (await reader.read())[:1] == b"\x88"
        await eventually(lambda: not server._app.service.sockets.count)


@pytest.mark.parametrize(
    ("begin", "hosts", "status"),
    [
        (b"GET /health HTTP/1.1\r\nConnection: close\r\n", 1, b"200"),
        (b"GET /health HTTP/1.1\r\nConnection: close\r\n", 0, b"400"),
        (b"GET /health HTTP/1.1\r\nConnection: close\r\n", 2, b"400"),
        (b"GET /health HTTP/1.0\r\n", 0, b"200"),
        (b"GET /health HTTP/1.0\r\n", 2, b"400"),
        (HANDSHAKE.replace(b"Host: 127.0.0.1\r\n", b""), 0, b"400"),
    ],
)
async def test_a_request_names_one_host(begin, hosts, status):
    async with serving(Script("fine", "<|im_end|>")) as server:
        answer = await sent(server, begin + b"Host: 127.0.0.1\r\n" * hosts + b"\r\n")
        assert answer.partition(b" ")[2].startswith(status)
        assert status == b"200" or b"the request has %d Host headers" % hosts in answer


@pytest.mark.parametrize("begin", ["GET {}/health HTTP/1.1\r\n", SOCKET], ids=["HTTP", "websocket"])
@pytest.mark.parametrize(("uri", "host", "allowed"), CASES["the_host_of_an_absolute_uri_counts"])
async def test_the_host_of_an_absolute_uri_counts(begin, uri, host, allowed):
    async with serving(Script("fine", "<|im_end|>")) as server, raw_socket(server) as (reader, writer):
        writer.write(f"{begin.format(uri)}Host: {host}\r\n\r\n".encode())
        async with asyncio.timeout(20):
            status = (await reader.readline()).split()[1]
        assert status in ((b"200", b"101") if allowed else (b"403",))


async def test_an_absolute_uri_has_a_path_and_a_query():
    async with serving(Script("fine", "<|im_end|>")) as server:
        head = b"Host: 127.0.0.1\r\nConnection: close\r\n\r\n"
        page, nothing = [
            await sent(server, b"GET http://127.0.0.1%s HTTP/1.1\r\n" % path + head) for path in (b"?a=b", b"/a?b")
        ]
        assert page.startswith(b"HTTP/1.1 200 ") and b"<html" in page
        assert nothing.startswith(b"HTTP/1.1 404 ") and b'nothing is served at /a"' in nothing


@pytest.mark.parametrize("piece", [b"", b"x"], ids=["empty", "of one byte"])
async def test_a_message_of_very_many_frames_is_refused(piece):
    begin, more = (bytes([opcode, 0x80 | len(piece), 0, 0, 0, 0]) + piece for opcode in (1, 0))
    async with serving(Script("fine", "<|im_end|>")) as server:
        answer = await told(server, begin, *[more * 1000] * 1000)
        assert answer.endswith(b"\x03\xf1a message of more than %d frames" % MOST_FRAMES)
    async with serving(Script("fine", "<|im_end|>")) as server, socket_to(server) as websocket:
        await websocket.send([*json.dumps({"type": "response.create", "input": "hi"})])  # each character in its own
        await until(websocket, "response.completed")


async def test_a_client_that_is_still_sending_hears_that_its_message_is_too_large():
    size = 1 << 22
    begin = bytes([0x81, 0xFF]) + struct.pack("!Q", size) + bytes(4)
    async with serving(Script(), max_message_bytes=100) as server:
        answer = await told(server, begin, *[bytes(1 << 16)] * (size >> 16))
        assert answer[2:].startswith(struct.pack("!H", 1009) + b"frame with 4194304 bytes")


async def test_nothing_is_sent_behind_the_goodbye():
    request = json.dumps({"type": "response.create", "input": "hi"}).encode()
    engine = Endless()
    async with serving(engine, max_output_tokens=10**9) as server, raw_socket(server) as (reader, writer):
        async with asyncio.timeout(20):
            writer.write(HANDSHAKE + b"\r\n")
            await reader.readuntil(b"\r\n\r\n")
            writer.write(bytes([0x81, 0x80 | len(request), 0, 0, 0, 0]) + request)
            seen = await reader.read(1 << 16)
            while len(seen) < 1 << 18:
                seen += await reader.read(1 << 16)
            writer.write(bytes([0x88, 0x82, 0, 0, 0, 0]) + struct.pack("!H", 1000))
            seen += await reader.read()
    opcodes = [*frames(seen)]
    assert opcodes[-1] == 8 and set(opcodes[:-1]) == {1}


STATE = "a" * 100_000
CHUNK = {"request_id": "r", "choices": [{"index": 0, "token_ids": [5], "finish_reason": None}]}


@pytest.mark.parametrize(
    "path, body",
    [
        ("/tokenize", {"prompt": ["a"] * 1000}),
        ("/v1/chat/completions", {"messages": [{"role": "nobody", "content": "a" * 10_000}]}),
        (
            "/v1/chat/completions/derender",
            {"stream": True, "prompt_token_ids": [5], "generate_chunk": CHUNK, "stream_state": {"state": STATE}},
        ),
    ],
)
async def test_a_refused_request_is_freed_without_the_garbage_collector(path, body):
    """A cycle would keep what the request holds, and its end would pause all streams."""
    async with serving(Script("a", "<|im_end|>")) as server, httpx.AsyncClient() as http:
        url = f"http://127.0.0.1:{server.port}{path}"
        for _ in range(2):
            gc.collect()
            gc.disable()
            gc.set_debug(gc.DEBUG_SAVEALL)
            try:
                reply = await http.post(url, json=body)
                await asyncio.sleep(0.05)  # the thread's work is dropped
                gc.collect()
                left = [each for each in gc.garbage if isinstance(each, RequestError)]
            finally:
                gc.set_debug(0)
                gc.garbage.clear()
                gc.enable()
        assert reply.status_code == 400, reply.text
        assert not left
