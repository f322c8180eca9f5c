"""Checks before any other work on a request: hosts, origins, keys, content types, bounds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from ipaddress import IPv6Address, IPv6Network
from typing import Any

from tokenweir.stream.serve.answers.service import Service
from tokenweir.stream.serve.app.auth import Gate, key_offered
from tokenweir.stream.serve.limits.admission import undone_by
from tokenweir.stream.serve.limits.connections import CONNECTION, Connection
from tokenweir.stream.serve.limits.fair_queue import CLIENT
from tokenweir.stream.serve.monitoring.tracing import request_context
from tokenweir.stream.serve.wire.shared.errors import RequestError, error_body

OPEN_PATHS = frozenset({"/", "/health", "/ready"})
"""Paths without a key: the page, which asks for one, and the health checks."""

PAGE_FILES = "/page/"
"""Path prefix of the page's scripts and styles, which need no key either."""

UNSUPPORTED_CODING = "unsupported_content_coding"

MAX_TOLD = 100
"""Most refused origins that are logged."""

SAFE_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)

logger = logging.getLogger("tokenweir.serve")

App = Callable[[Any, Any, Any], Any]


class Guard:
    """ASGI middleware that checks connections and refuses those that are invalid, not authorized or too many.

    It puts the client's name into the scope as `tokenweir.client`: `key INDEX` for a valid API key, else `address
    ADDRESS`.

    Args:
        app: The application behind it.
        gate: The check of keys, hosts and origins.
        service: Has the places of clients and the metrics.
        methods: The HTTP methods that the application serves, for pages of other origins.

    """

    def __init__(self, app: App, gate: Gate, service: Service, methods: Iterable[str]) -> None:
        self._app = app
        self._gate = gate
        self._service = service
        self._told: set[str | None] = set()
        self._methods = ", ".join(sorted(methods)).encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        else:
            await self._admit(scope, receive, send)

    async def _admit(self, scope: Any, receive: Any, send: Any) -> None:
        headers = _Headers(scope)
        origin = headers.get(b"origin")
        extra = _cors(origin) if self._gate.is_foreign(origin) else ()
        try:
            _check_host(headers, scope.get("http_version"))
            self._check_names(headers, origin)
            if (
                scope["type"] == "http"
                and scope["method"] == "OPTIONS"
                and headers.get(b"access-control-request-method")
            ):
                await _preflight(send, extra, self._methods)
                return
            scope["tokenweir.client"] = self._client(scope, headers)
            CLIENT.set(scope["tokenweir.client"])
            if scope["type"] == "http" and scope["method"] == "POST":
                _check_content_type(headers)
                _check_content_coding(headers)
            if scope["type"] == "http" and scope["method"] != "POST":  # takes no place, and is always answered
                await self._handle(scope, receive, _with_headers(send, extra))
                return
            free = self._take_place(scope)
        except RequestError as error:
            self._service.metrics.refuse(error.code)
            await refuse(scope, send, error, extra)
            return
        try:
            await self._handle(scope, receive, _with_headers(send, extra) if scope["type"] == "http" else send)
        finally:
            free()

    async def _handle(self, scope: Any, receive: Any, send: Any) -> None:
        with request_context(scope["headers"]):  # not before the key is known: OpenTelemetry logs malformed headers
            await self._app(scope, receive, send)

    def _take_place(self, scope: Any) -> Callable[[], object]:
        """Take one of the client's places for connections and return the function that frees it.

        On this server's own sockets the place is held until the answer is flushed. Raise `RequestError` if the client
        or the server has no place left, or the client is above its rate of requests.
        """
        connection: Connection | None = scope.get("extensions", {}).get("tokenweir.connection")
        CONNECTION.set(connection)
        take = self._service.admission.connect if connection is None else connection.take
        free: Callable[[], object] = take(client := scope["tokenweir.client"])
        if scope["type"] == "http":  # each turn of a websocket is counted separately
            with undone_by(free):
                self._service.rates.request(client)
        return free

    def _check_names(self, headers: _Headers, origin: str | None) -> None:
        host = headers.get(b"host")
        if not self._gate.host_allowed(host):
            raise RequestError(
                f"host {_cut(host)} is not served; allow it by name", code="host_not_allowed", status=403
            )
        if not self._gate.origin_allowed(origin, host):
            self._tell_once(origin)
            raise RequestError(f"origin {_cut(origin)} is not allowed", code="origin_not_allowed", status=403)

    def _tell_once(self, origin: str | None) -> None:
        """Log a refused origin, each once: a browser shows its page only that the socket was closed."""
        if origin not in self._told and len(self._told) < MAX_TOLD:
            self._told.add(origin)
            logger.warning("refused a page of origin %r; --origin %r lets it in", _cut(origin), _cut(origin))

    def _client(self, scope: Any, headers: _Headers) -> str:
        address = network_of((scope.get("client") or ("unknown",))[0])
        if not self._gate.has_keys:
            return f"address {address}"
        path = path_of(scope)
        bearer = key_offered(headers.get(b"authorization"), scope.get("subprotocols", ()))
        offered = [key for key in (bearer, headers.get(b"x-api-key")) if key is not None]  # the latter is Anthropic's
        index = next((found for key in offered if (found := self._gate.key_index(key)) is not None), None)
        if index is not None:
            return f"key {index}"
        if path in OPEN_PATHS or path.startswith(PAGE_FILES):
            return f"address {address}"
        problem = "the API key is wrong" if offered else "no API key was given"
        raise RequestError(problem, code="invalid_api_key", status=401)


def network_of(address: str) -> str:
    """Return an address as part of a client's name: for IPv6 the /64 prefix, because one client usually owns all of it."""
    if ":" not in address:
        return address
    try:
        ip = IPv6Address(address)
    except ValueError:  # not an IP address
        return address
    return str(ip.ipv4_mapped or IPv6Network((int(ip) >> 64 << 64, 64)))


def path_of(scope: Any) -> str:
    """Return a request's path without the prefix under which the application is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


class _Headers:
    """The headers of a request by their names; the values of a repeated header are joined by commas."""

    def __init__(self, scope: Any) -> None:
        self._headers = scope["headers"]

    def all(self, name: bytes) -> list[bytes]:
        return [value for key, value in self._headers if key == name]

    def get(self, name: bytes) -> str | None:
        values = self.all(name)
        return b", ".join(values).decode("latin-1") if values else None


async def refuse(scope: Any, send: Any, error: RequestError, extra: Any = ()) -> None:
    """Send an error as the answer to an HTTP request, or to a websocket's handshake.

    Args:
        scope: The ASGI scope.
        send: The ASGI callable that sends.
        error: The error.
        extra: More headers, as pairs of bytes.

    """
    body = error_body(error, path_of(scope))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *SAFE_HEADERS,
        *extra,
    ]
    if error.status == HTTPStatus.UNAUTHORIZED:
        # Claude Code sends the same key for minutes unless it is told not to.
        headers += [(b"www-authenticate", b"Bearer"), (b"x-should-retry", b"false")]
    if error.code == UNSUPPORTED_CODING:
        headers.append((b"accept-encoding", b"identity"))
    if error.retry_after is not None:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    kind = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008, "reason": str(error)[:100]})
            return
        kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": error.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": b"" if scope.get("method") == "HEAD" else body})


def _check_host(headers: _Headers, version: str | None) -> None:
    """Raise `RequestError` if a request has several Host headers, or none in HTTP/1.1 (RFC 9112, 3.2)."""
    given = len(headers.all(b"host"))
    if given > 1 or (given == 0 and version == "1.1"):
        raise RequestError(f"the request has {given} Host headers; HTTP/1.1 wants one", code="invalid_host")


def _check_content_type(headers: _Headers) -> None:
    """Raise `RequestError` unless the content type is `application/json`.

    Web pages of any origin may send forms without a preflight request.
    """
    given = headers.get(b"content-type")
    if given is None or given.partition(";")[0].strip().lower() != "application/json":
        raise RequestError(
            f"content-type is {_cut(given)}; it must be application/json", code="unsupported_media_type", status=415
        )


def _check_content_coding(headers: _Headers) -> None:
    """Raise `RequestError` for a compressed body, whose decompressed size is not bounded."""
    given = headers.get(b"content-encoding")
    if given is not None and given.strip().lower() not in ("", "identity"):
        raise RequestError(
            f"content-encoding is {_cut(given)}; send the body as it is", code=UNSUPPORTED_CODING, status=415
        )


async def _preflight(send: Any, cors: Any, methods: bytes) -> None:
    allow = (
        (b"access-control-allow-methods", methods),
        (b"access-control-allow-headers", b"*, authorization, content-type"),
        (b"access-control-max-age", b"600"),
    )
    headers = [*cors, *allow, (b"vary", b"origin"), (b"content-length", b"0")] if cors else [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 204 if cors else 403, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _cors(origin: str | None) -> tuple[tuple[bytes, bytes], ...]:
    allowed = (origin or "").encode("latin-1")
    return ((b"access-control-allow-origin", allowed), (b"vary", b"origin"))


def _with_headers(send: Any, extra: Any) -> Any:
    more = (*SAFE_HEADERS, *extra)

    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *((name, value) for name, value in more if name not in given)]
        await send(message)

    return send_with_headers


def _cut(text: str | None) -> str | None:
    return text if text is None else text[:80]
