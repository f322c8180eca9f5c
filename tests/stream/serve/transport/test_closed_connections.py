"""A closed connection leaves no objects that only the garbage collector frees."""

import asyncio
import gc
import socket
import weakref
from struct import pack

import pytest
from serving import HANDSHAKE, Script, eventually, serving
from websockets.protocol import Protocol

OPEN = HANDSHAKE + b"\r\n"
RESET = None
"""In place of a part: the client resets the connection instead of closing it."""
WAYS = {
    "silent": (),
    "a reset": (RESET,),
    "a request": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",),
    "a pipeline that nobody reads": (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300,),
    "no HTTP": (b"\x16\x03\x01\r\n\r\n",),
    "a websocket": (OPEN, bytes([0x88, 0x80]) + bytes(4)),
    "a websocket without an end": (OPEN,),
    "a websocket that is reset": (OPEN, RESET),
    "a handshake of another version": (OPEN.replace(b"Version: 13", b"Version: 12"),),
    "a frame with reserved bits": (OPEN, bytes([0xC1, 0x80]) + bytes(4)),
    "a frame that is too long": (OPEN, bytes([0x81, 0xFF]) + b"\x7f" + b"\xff" * 7 + bytes(4)),
}
KINDS = asyncio.BaseTransport, asyncio.Protocol, Protocol


def talk(port, parts):
    """Send each part after something has come back, then close. Blocking sockets leave nothing in the event loop."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(5)
        for part in parts:
            if part is RESET:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
            else:
                client.sendall(part)
                client.recv(1 << 16)


@pytest.mark.parametrize("parts", WAYS.values(), ids=WAYS)
async def test_a_closed_connection_leaves_no_garbage(parts):
    async with serving(Script("one", "<|im_end|>")) as server:
        connections = server._app.service.sockets
        await asyncio.to_thread(talk, server.port, parts)  # what is made once
        await eventually(lambda: not connections.count)
        gc.freeze()  # what there is by now is not looked at
        gc.disable()
        try:
            for _ in range(3):
                await asyncio.to_thread(talk, server.port, parts)
            await eventually(lambda: not connections.count)
            await asyncio.sleep(0)  # the last call of `connection_lost` returns
            # Not by `gc.garbage`: the collector closes generators, and what only they have held is then not in it.
            kept = [(type(each), weakref.ref(each)) for each in gc.get_objects() if isinstance(each, KINDS)]
            gc.collect()
            freed = [kind for kind, each in kept if each() is None]
        finally:
            gc.enable()
    assert not freed
