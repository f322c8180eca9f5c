"""Sockets count from the moment they are accepted, and every phase of a connection has an end."""

import asyncio
import json
from contextlib import AsyncExitStack, suppress

import pytest
from serving import HANDSHAKE, HOST, Endless, Script, eventually, posting, raw_socket, serving, socket_to
from websockets.exceptions import InvalidStatus

from tokenweir.stream.serve.limits.admission import Admission
from tokenweir.stream.serve.limits.connections import Connections
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.limits.turns import LONG

pytestmark = pytest.mark.anyio


def open_sockets(server):
    return len(server._uvicorn.server_state.connections)


async def health(server, address="127.0.0.1", head=b""):
    """The status of a GET; nothing if the connection is reset."""
    async with raw_socket(server, address) as (reader, writer):
        with suppress(ConnectionError):
            writer.write(b"GET /health HTTP/1.1\r\nConnection: close\r\n" + HOST + head + b"\r\n")
            return (await reader.read()).partition(b" ")[2][:3]
    return b""


async def end_of(reader):
    """All that comes up to the end of a connection, however it ends."""
    data = b""
    async with asyncio.timeout(20):
        with suppress(ConnectionError):
            while more := await reader.read(1 << 16):
                data += more
    return data


async def test_silent_sockets_of_one_address_leave_room_to_others():
    async with serving(Script(), max_connections=20, max_connections_per_client=8) as server, AsyncExitStack() as stack:
        for _ in range(120):
            await stack.enter_async_context(raw_socket(server, "127.0.0.2"))
        await eventually(lambda: open_sockets(server) == 8)
        assert await health(server, "127.0.0.9") == b"200"
        assert await health(server, "127.0.0.2") == b""
        assert server._app.service.metrics.aborted["address_limit"] >= 112
    await eventually(lambda: server._app.service.sockets.count == server._app.service.sockets.idle == 0)


async def test_a_full_server_resets_a_silent_socket_of_the_address_that_has_most():
    async with serving(Script(), max_connections=1, max_connections_per_client=60) as server, AsyncExitStack() as stack:
        for address, number in (("127.0.0.2", 50), ("127.0.0.3", 15)):
            for _ in range(number):
                await stack.enter_async_context(raw_socket(server, address))
        await eventually(lambda: open_sockets(server) == 65)
        for _ in range(5):
            assert await health(server, "127.0.0.9") == b"200"
        assert server._app.service.metrics.aborted == {"connection_limit": 1}


async def test_behind_a_proxy_an_address_may_have_more_sockets_than_a_client():
    async with (
        serving(
            Script(), api_key=["one", "two"], max_connections_per_client=1, max_connections_per_address=12
        ) as server,
        AsyncExitStack() as stack,
    ):
        for _ in range(10):
            await stack.enter_async_context(raw_socket(server))
        async with socket_to(server, "one"), socket_to(server, "two"):
            assert server._app.service.sockets.idle == 10
            with pytest.raises(InvalidStatus) as refused:
                await socket_to(server, "one").__aenter__()
            assert refused.value.response.status_code == 429
            assert refused.value.response.headers["Retry-After"]
        async with socket_to(server, "one"):
            pass


@pytest.mark.parametrize("path", ["/v1/responses", "/nowhere"])
async def test_a_body_that_nobody_reads_does_not_keep_its_socket(path):
    async with serving(Script(), api_key="right", request_timeout=0.3) as server, AsyncExitStack() as stack:
        for _ in range(20):
            reader, writer = await stack.enter_async_context(raw_socket(server))
            writer.write(posting(path, length=100_000_000))
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b" 401 " in answer and answer.count(b"connection: close\r\n") == 1
            writer.write(b"x")
        await eventually(lambda: not open_sockets(server))


async def test_a_client_that_sends_its_body_on_still_reads_its_answer():
    async with serving(Script()) as server, raw_socket(server) as (reader, writer):
        writer.write(posting("/nowhere", b"x", 1_000_000))
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(100):
            writer.write(b"x" * 5000)
            await writer.drain()
        assert b"nothing is served at /nowhere" in await end_of(reader)


@pytest.mark.parametrize(
    "begin",
    [b"", b"\r\n", b"GET /", b"GET /health HTTP/1.1\r\nHost: ", HANDSHAKE],
    ids=["nothing", "a blank line", "a path", "half a head", "half a handshake"],
)
@pytest.mark.parametrize("first", [b"", b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"], ids=["at first", "kept alive"])
async def test_no_head_keeps_its_socket_by_single_bytes(first, begin):
    async with serving(Script(), request_timeout=0.4) as server, AsyncExitStack() as stack:
        server._uvicorn.config.timeout_keep_alive = 0.4  # instead of uvicorn's 5 seconds
        reader, writer = await stack.enter_async_context(raw_socket(server))
        writer.write(first)
        if first:
            await reader.readuntil(b"}")
        writer.write(begin)

        async def trickle():
            while True:
                writer.write(b"\r\n"[:1] if begin == b"\r\n" else b"a" if begin else b"")
                await asyncio.sleep(0.05)

        trickling = asyncio.ensure_future(trickle())
        with suppress(ConnectionError):
            assert await end_of(reader) == b""
        trickling.cancel()
        await eventually(lambda: not open_sockets(server))


@pytest.mark.parametrize(
    "begin", [b"\x81", b"\x81\xfe\x10\x00aaaa", b"\x01\x80aaaa"], ids=["a head", "a frame", "a fragment"]
)
async def test_half_a_message_does_not_keep_its_websocket(begin):
    async with serving(Script(), request_timeout=0.3) as server, raw_socket(server) as (reader, writer):
        writer.write(HANDSHAKE + b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(begin)
        await end_of(reader)
        await eventually(lambda: not open_sockets(server))
        assert server._app.service.sockets.incoming.held == 0


async def test_a_websocket_that_only_pings_stays_open():
    async with serving(Script(), request_timeout=0.2) as server, socket_to(server, ping_interval=None) as websocket:
        for _ in range(10):
            await (await websocket.ping())
            await asyncio.sleep(0.05)


async def test_what_arrives_is_bounded_for_each_client():
    async with (
        serving(Script(), host="0.0.0.0", max_incoming_bytes_per_client=100_000) as server,
        AsyncExitStack() as stack,
    ):
        held = server._app.service.sockets.incoming
        _, first = await stack.enter_async_context(raw_socket(server))
        first.write(posting("/tokenize", b" " * 80_000, 90_000))
        await eventually(lambda: held.held == 80_000)
        reader, second = await stack.enter_async_context(raw_socket(server))
        second.write(posting("/tokenize", b" " * 80_000, 90_000))
        assert b" 429 " in await reader.readuntil(b"\r\n\r\n")
        reader, websocket = await stack.enter_async_context(raw_socket(server))
        websocket.write(HANDSHAKE + b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        websocket.write(b"\x81\xff" + (90_000).to_bytes(8, "big") + bytes(4) + b" " * 80_000)
        await end_of(reader)
        reader, other = await stack.enter_async_context(raw_socket(server, "127.0.0.9"))
        body = json.dumps({"prompt": "a"}).encode().ljust(90_000)
        other.write(posting("/tokenize", body))
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        assert held.held == 80_000
    assert held.held == 0


@pytest.mark.parametrize("leaves", [False, True])
async def test_a_message_counts_until_its_turn_to_be_parsed(leaves):
    body = json.dumps({"prompt": "a"}).encode().ljust(90_000)
    event = json.dumps({"type": "response.cancel"}).encode().ljust(90_000)
    async with serving(Script()) as server, AsyncExitStack() as stack:
        service = server._app.service
        held = service.sockets.incoming
        service.turns._begin_later(1000.0)  # another long message has just been parsed
        reader, writer = await stack.enter_async_context(raw_socket(server))
        writer.write(posting("/tokenize", body))
        await eventually(lambda: held.held == 90_000)
        answers, websocket = await stack.enter_async_context(raw_socket(server))
        websocket.write(HANDSHAKE + b"\r\n")
        await answers.readuntil(b"\r\n\r\n")
        websocket.write(b"\x81\xff" + (90_000).to_bytes(8, "big") + bytes(4) + event)
        await eventually(lambda: held.held > 170_000)
        await asyncio.sleep(0.05)
        assert held.held > 170_000
        if leaves:
            writer.transport.abort()
            websocket.transport.abort()
        else:
            service.turns._begin_long()
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
            assert b"response_not_in_flight" in await answers.readuntil(b"}")
        await eventually(lambda: held.held == 0)


async def test_of_what_arrives_in_all_the_greediest_client_loses_some():
    async with serving(Script(), host="0.0.0.0", max_incoming_bytes=200_000) as server, AsyncExitStack() as stack:
        held, aborted = server._app.service.sockets.incoming, server._app.service.metrics.aborted
        for number in range(1, 5):
            _, writer = await stack.enter_async_context(raw_socket(server, "127.0.0.2"))
            writer.write(posting("/tokenize", b" " * 80_000, 90_000))
            arrived = 80_000 * number
            await eventually(lambda due=arrived: held.held + 80_000 * aborted.get("incoming_bytes", 0) == due)
        reader, honest = await stack.enter_async_context(raw_socket(server, "127.0.0.9"))
        honest.write(posting("/tokenize", b" " * 60_000, 90_000))
        await eventually(lambda: aborted == {"incoming_bytes": 3})
        honest.write(b'{"prompt":"a"}'.ljust(30_000))
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")


async def test_sockets_are_counted_by_address_again_when_their_answers_are_taken():
    async with serving(Endless(), api_key="right", max_output_tokens=10**9) as server, AsyncExitStack() as stack:
        service = server._app.service
        body = json.dumps({"prompt": "hi", "stream": True, "max_tokens": 10**9}).encode()
        key = b"Authorization: Bearer right\r\n"
        for _ in range(3):
            reader, writer = await stack.enter_async_context(raw_socket(server))
            writer.write(posting("/v1/completions", body, more=key))
            await reader.readuntil(b"\r\n\r\n")
        assert (service.admission.connections, service.sockets.idle) == (3, 0)
        reader, writer = await stack.enter_async_context(raw_socket(server))
        writer.write(posting("/tokenize", b'{"prompt":"hi"}', more=key))
        await reader.readuntil(b"}")
        await eventually(lambda: (service.admission.connections, service.sockets.idle) == (3, 1))
    await eventually(lambda: service.sockets.count == service.admission.connections == 0)


@pytest.mark.parametrize("path", ["websocket", "/v1/responses", "/v1/chat/completions", "/tokenize"])
async def test_a_long_message_whose_client_leaves_does_not_wait_for_its_turn(path):
    async with serving(Script()) as server:
        service = server._app.service
        await service.turns.take(10**10)  # the next long message waits for minutes
        message = json.dumps({"type": "response.create", "input": "a" * LONG})
        if path == "websocket":
            async with socket_to(server) as socket:
                await socket.send(message)
                await eventually(lambda: service.turns._long)
        else:
            async with raw_socket(server) as (_, writer):
                writer.write(posting(path, message.encode()))
                await eventually(lambda: service.turns._long)
        await eventually(lambda: not service.admission.connections)
        assert service.turns._long and not service.metrics.refused


class Socket:
    def __init__(self):
        self.open = True

    def abort(self):
        self.open = False

    def get_write_buffer_size(self):
        return 0


def connections_of(**bounds):
    limits = Limits(**bounds)
    return Connections(limits, Admission(limits), lambda reason: None)


async def test_bytes_belong_to_the_client_of_a_request_while_it_lasts():
    connections = connections_of()
    connection = connections.accept(Socket(), "address 1")
    connection.arrive(100)
    assert connections.incoming._clients == {"address 1": 100}
    free = connection.take("key 0")
    assert connections.incoming._clients == {"key 0": 100}
    connection.arrive(30)
    free()
    assert connections.incoming._clients == {"address 1": 30}
    assert connections.incoming.held == 30


async def test_room_is_made_by_the_address_with_most_idle_sockets():
    connections, sockets = connections_of(), {}
    for address, count in (("a", 1), ("b", 3), ("c", 2)):
        sockets[address] = [Socket() for _ in range(count)]
        for socket in sockets[address]:
            connections.accept(socket, address)
    assert connections.make_room()
    assert {address: [each.open for each in each_of] for address, each_of in sockets.items()} == {
        "a": [True],
        "b": [False, True, True],
        "c": [True, True],
    }
