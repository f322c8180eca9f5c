"""Unread answers: counted until they are taken, bounded in bytes, and given up after a time."""

import asyncio
import json
from contextlib import suppress

import pytest
from serving import TOK, Endless, Script, eventually, fetch, posting, say, serving, small_socket, socket_to

from tokenweir.stream.serve.sockets import websocket as server_websocket

pytestmark = pytest.mark.anyio

TEXT = "the fox " * 60_000  # an answer of 700 KB


class Unread:
    """A client that sends a request and reads no answer."""

    def __init__(self, server, body, *, path="/tokenize", address="127.0.0.1", kept=b""):
        self._data = posting(path, json.dumps(body).encode(), more=kept)
        self._socket = small_socket(server, address)

    async def ask(self):
        await asyncio.get_running_loop().sock_sendall(self._socket, self._data)

    async def read(self):
        """All that comes; whether the connection was reset."""
        data = b""
        with suppress(ConnectionResetError):
            while more := await asyncio.get_running_loop().sock_recv(self._socket, 1 << 20):
                data += more
            return data, False
        return data, True

    def close(self):
        self._socket.close()


@pytest.mark.parametrize("kept", [b"", b"Connection: close\r\n"], ids=["kept alive", "closed"])
@pytest.mark.parametrize("words", [60_000, 4_000], ids=["long", "short"])
async def test_an_answer_that_nobody_reads_is_counted_and_then_given_up(kept, words):
    async with serving(Script(), stall_timeout=0.6) as server:
        service = server._app.service
        clients = [Unread(server, {"prompt": "the fox " * words}, kept=kept) for _ in range(3)]
        for client in clients:
            await client.ask()
        await eventually(lambda: service.sockets.outgoing.held > 3 * 5 * words)
        assert service.admission.connections == 3
        await eventually(lambda: not server._uvicorn.server_state.connections)
        assert service.metrics.aborted == {"stalled": 3}
        assert service.sockets.outgoing.held == service.admission.connections == service.sockets.count == 0
        for client in clients:
            client.close()


async def test_a_slow_reader_gets_the_whole_answer():
    async with serving(Script(), stall_timeout=0.6) as server:
        client = Unread(server, {"prompt": TEXT}, kept=b"Connection: close\r\n")
        await client.ask()
        await eventually(lambda: server._app.service.sockets.outgoing.held)
        await asyncio.sleep(0.3)
        body = (await client.read())[0].partition(b"\r\n\r\n")[2]
        assert json.loads(body)["tokens"] == TOK.encode(TEXT)
        await eventually(lambda: server._app.service.sockets.outgoing.held == 0)
        client.close()


async def test_a_client_with_too_much_unread_gets_no_more():
    async with serving(Script(), max_outgoing_bytes_per_client=1_500_000) as server:
        service = server._app.service
        clients = [Unread(server, {"prompt": TEXT}) for _ in range(10)]
        for client in clients:
            await client.ask()
        await eventually(lambda: service.metrics.aborted.get("unread_bytes", 0) >= 7)
        assert service.sockets.outgoing.held <= 1_500_000
        assert (await fetch(server, "/health"))[0] == 200
        for client in clients:
            client.close()
        await eventually(lambda: service.sockets.outgoing.held == service.admission.connections == 0)


async def test_with_too_much_unread_the_client_that_has_most_of_it_loses_it():
    async with serving(Script(), host="0.0.0.0", max_outgoing_bytes=2_000_000) as server:
        service = server._app.service
        honest = Unread(server, {"prompt": TEXT}, address="127.0.0.9", kept=b"Connection: close\r\n")
        await honest.ask()
        await eventually(lambda: service.sockets.outgoing.held)
        clients = [Unread(server, {"prompt": TEXT}, address="127.0.0.2") for _ in range(6)]
        for client in clients:
            await client.ask()
        await eventually(lambda: service.metrics.aborted.get("unread_bytes", 0) >= 4)
        data, reset = await honest.read()
        assert not reset and json.loads(data.partition(b"\r\n\r\n")[2])["tokens"] == TOK.encode(TEXT)
        for client in (honest, *clients):
            client.close()


async def test_who_leaves_answers_unread_is_refused_until_they_are_read():
    async with serving(Script(), max_outgoing_bytes_per_client=1_000_000) as server:
        service = server._app.service
        client = Unread(server, {"prompt": TEXT[:300_000]}, kept=b"Connection: close\r\n")
        await client.ask()
        await eventually(lambda: service.sockets.outgoing.held)
        service.sockets.outgoing.hold(next(iter(service.sockets.outgoing._sizes)), 600_000)
        other = Unread(server, {"prompt": "hi"}, kept=b"Connection: close\r\n")
        await other.ask()
        data, _ = await other.read()
        assert b" 429 " in data[:20] and b"unread answers" in data and b"retry-after: 1" in data
        await client.read()
        await eventually(lambda: not service.sockets.outgoing.held)
        assert (await fetch(server, "/tokenize", "POST", **{"Content-Type": "application/json"}))[0] == 400
        for each in (client, other):
            each.close()


class Large:
    """An engine that gives a lot at once, and then nothing for long."""

    closed = False

    async def generate(self, prompt_ids, sampling):
        try:
            yield TOK.encode(TEXT)
            await asyncio.sleep(60)
        finally:
            self.closed = True


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/responses"])
async def test_a_silent_stream_that_nobody_reads_is_cut_off(path):
    engine = Large()
    async with serving(engine, stall_timeout=0.4, heartbeat=0.1, max_output_tokens=10**9) as server:
        body = {"prompt": "hi", "max_tokens": 10**6} if "comp" in path else {"input": "hi"}
        client = Unread(server, body | {"stream": True}, path=path)
        await client.ask()
        await eventually(lambda: engine.closed and not server._uvicorn.server_state.connections)
        await eventually(lambda: server._app.service.admission.connections == 0)
        client.close()


async def test_the_end_of_a_stream_that_nobody_reads_is_given_up():
    async with serving(Script(TEXT[:80_000], "<|im_end|>"), stall_timeout=0.4) as server:
        body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
        client = Unread(server, body, path="/v1/chat/completions")
        await client.ask()
        await eventually(lambda: server._app.service.sockets.outgoing.held)
        await eventually(lambda: not server._uvicorn.server_state.connections)
        client.close()


async def test_what_a_websocket_does_not_read_counts(monkeypatch):
    monkeypatch.setattr(server_websocket, "CLOSE_TIMEOUT", 0.2)
    async with serving(Endless(), max_output_tokens=10**9, stall_timeout=0.6) as server:
        websocket = await socket_to(server, sock=small_socket(server), ping_interval=None)
        await say(websocket)
        websocket.transport.pause_reading()
        service = server._app.service
        await eventually(lambda: service.sockets.outgoing.held > 1 << 16)
        await eventually(lambda: not server._uvicorn.server_state.connections)
        await eventually(lambda: service.sockets.outgoing.held == service.admission.connections == 0)
        websocket.transport.abort()
