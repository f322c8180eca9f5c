"""HTTP exchanges: bounded bodies, disconnects, streams of server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.limits.admission import too_many
from tokenweir.stream.serve.limits.connections import CONNECTION, Connection, Disconnected
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.wire.shared.checking import parse_object
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.sse import KEEP_ALIVE

T = TypeVar("T")


async def read_body(request: Request, service: Service, connection: Connection | None) -> bytes:
    """Read the body of a request, within the limits on its size and duration.

    Args:
        request: The request.
        service: Has the limits.
        connection: The connection to which the bytes are counted as incoming; None under other ASGI servers.

    Raises:
        RequestError: The body is too long or late, or the client's bodies that are arriving are too large together.
        Disconnected: The client has disconnected.

    """
    limits, limit = service.limits, service.limits.max_message_bytes
    too_long = RequestError(f"the body is longer than max_message_bytes={limit}", code="request_too_large", status=413)
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise too_long
    chunks, size = [], 0
    try:
        async with asyncio.timeout(limits.request_timeout):
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Disconnected
                chunk = message.get("body", b"")
                if size + len(chunk) > limit:
                    raise too_long
                chunks.append(chunk)
                size += len(chunk)
                if connection is not None:
                    if not connection.has_room(len(chunk)):
                        raise too_many("bytes of requests", limits.max_incoming_bytes_per_client)
                    connection.arrive(size)
                more = message.get("more_body", False)
    except TimeoutError:
        raise RequestError(
            f"the body did not arrive within {limits.request_timeout:g} s", code="request_timeout", status=408
        ) from None
    return b"".join(chunks)


async def read_json(request: Request, service: Service) -> bytes:
    """Read the body of a request, and wait until its turn to be parsed has come; the caller parses it at once.

    Its bytes count as incoming until then. Raises `RequestError` and `Disconnected` as `read_body`.
    """
    connection = CONNECTION.get()
    try:
        body = await read_body(request, service, connection)
        await service.turns.take(len(body))
        return body
    finally:
        if connection is not None:
            connection.arrive(0)


async def read_object(request: Request, service: Service) -> dict[str, Any]:
    """Read the body of a request and parse it as a JSON object.

    Raises `RequestError` and `Disconnected` as `read_json`, and `RequestError` as `parse_object`.
    """
    return parse_object(await read_json(request, service))


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """Return the result of some work; if the client disconnects first, cancel it and raise `Disconnected`."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Disconnected
        return task.result()
    finally:
        gone.cancel()
        task.cancel()
        await asyncio.wait({task, gone})


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def may_cache(headers: Headers) -> bool:
    """Return whether a request's prompt may be cached: False if its headers have `Cache-Control: no-store`."""
    return not any("no-store" in value.lower() for value in headers.getlist("cache-control"))


class EventStream(Response):
    """HTTP response that streams server-sent events, with heartbeats in between.

    Args:
        events: The encoded events.
        leave: Called when the stream has ended, also by a disconnect of the client.
        limits: Has the interval between heartbeats and the stall timeout.
        stalled: Called when the client has read nothing for the stall timeout; the stream then ends.
        heartbeat: Sent when nothing else was for the interval.

    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncIterator[bytes],
        *,
        leave: Callable[[], object],
        limits: Limits,
        stalled: Callable[[], object] = lambda: None,
        heartbeat: bytes = KEEP_ALIVE,
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self.headers["x-accel-buffering"] = "no"  # nginx would buffer 8 KiB
        self._events = events
        self._leave = leave
        self._limits = limits
        self._stalled = stalled
        self._heartbeat = heartbeat
        self._sent_at = self._sending_since = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        period = min(self._limits.heartbeat, self._limits.stall_timeout / 4)
        tasks: set[asyncio.Future[None]] = set()
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            sending = asyncio.ensure_future(self._send_all(send))
            gone = asyncio.ensure_future(_gone(receive))
            tasks = {sending, gone}
            while not (sending.done() or gone.done()):
                await asyncio.wait({sending, gone}, timeout=period, return_when=asyncio.FIRST_COMPLETED)
                now = monotonic()
                if self._sending_since and now - self._sending_since >= self._limits.stall_timeout:
                    self._stalled()
                    if (abort := scope.get("extensions", {}).get("tokenweir.abort")) is not None:
                        abort()
                    break
                if not self._sending_since and now - self._sent_at >= self._limits.heartbeat and not sending.done():
                    beat = asyncio.ensure_future(self._put(send, self._heartbeat))  # may block on the client too
                    tasks = {sending, gone, beat}
        finally:
            self._leave()
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
        if not sending.cancelled():
            sending.result()

    async def _send_all(self, send: Any) -> None:
        self._sent_at = monotonic()
        async for data in self._events:
            await self._put(send, data)
        await self._put(send, b"", more=False)

    async def _put(self, send: Any, data: bytes, *, more: bool = True) -> None:
        self._sending_since = self._sending_since or monotonic()
        await send({"type": "http.response.body", "body": data, "more_body": more})
        self._sent_at, self._sending_since = monotonic(), 0.0
