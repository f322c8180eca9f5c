"""An inference server over HTTP: one request a connection, answers as JSON events, and what can go wrong as `EngineError`.

Every request has a connection of its own. Closing the generator closes it at once, which is how these servers are told to
stop; nothing is kept that would outlive an event loop. The price is a handshake a request, 0.2 ms on one machine.

A server is not trusted with memory: bodies come unencoded or are refused, and every read has a bound.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec
from msgspec import Struct, field

from tokenweir.encode.errors import EngineError, EngineFailure
from tokenweir.encode.options import check_numbers, check_texts
from tokenweir.stream.engines.protocol import refuse_unsupported
from tokenweir.stream.events.sampling import Sampling

if TYPE_CHECKING:
    import httpx

E = TypeVar("E", bound="Event")

RETRY_DELAYS = (0.25, 1.0)
"""Seconds before the second and the third try."""
MAX_EVENT_BYTES = 1 << 22
"""Bytes of one event of a stream. llama-server repeats the whole prompt in its last one."""
MAX_ANSWER_BYTES = 1 << 24
"""Bytes of an answer that is not streamed, and of a server's description of itself."""
MAX_ERROR_BYTES = 1 << 13
"""Bytes that are read of the body of an error."""
ERROR_SECONDS = 5.0
"""Seconds for which the body of an error is read."""
MAX_MESSAGE = 1000
"""Characters of a server's own words that a message repeats."""
BUSY = frozenset({429, 502, 503, 504})
"""Answers of servers that start, are full, or stand behind a proxy that finds nobody; another try may help."""
FAILURES: dict[int, EngineFailure] = {408: "timeout", 429: "overloaded", 503: "overloaded", 504: "timeout"}
"""What an answer that is neither the request's fault nor the server's own means."""


class Event(Struct):
    """What a server sends: an answer, a part of one, or an error in the middle of a stream."""

    error: Any = None


class ServerError(EngineError):
    """A server's answer that is an error.

    Attributes:
        status: Its HTTP status.

    """

    def __init__(self, message: str, *, kind: EngineFailure, status: int) -> None:
        super().__init__(message, kind=kind)
        self.status = status


class _Card(Struct):
    id: str = ""
    root: str | None = None
    max_model_len: int | None = None


class _Cards(Event):
    data: list[_Card] = field(default_factory=list)


class ServedModel(Struct, frozen=True):
    """What a server tells about its model.

    Attributes:
        path: Where its files are on the server's machine, or its name on a hub.
        template: Its chat template.
        context_size: The most ids that prompt and answer may have.

    """

    path: str | None = None
    template: str | None = None
    context_size: int | None = None


class EngineServer:
    """Where an engine's server is, and how it is asked."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        api_key: str | None = None,
        connect_timeout: float = 10.0,
        read_timeout: float = 600.0,
    ) -> None:
        """Name a server; nothing is sent yet.

        Args:
            name: What it is, for messages.
            url: Its address, such as `http://127.0.0.1:8000`; what stands after the host is kept.
            api_key: Sent as `Authorization: Bearer KEY`.
            connect_timeout: Seconds for the connection to stand.
            read_timeout: Seconds without a byte, a long prompt's computation included.

        Raises:
            EngineError: httpx is not installed, the address is no HTTP address, or the key is none that a header can have.
            TypeError: An argument is of the wrong type.

        """
        httpx = _httpx()
        check_texts(url=url, api_key="-" if api_key is None else api_key)
        if api_key is not None and not (api_key and api_key.isascii() and api_key.isprintable()):
            raise EngineError(f"the API key of {name} must be printable ASCII and not empty", kind="refused")
        check_numbers(connect_timeout=connect_timeout, read_timeout=read_timeout)
        try:
            address = httpx.URL(url)
        except (httpx.InvalidURL, ValueError) as error:
            raise EngineError(f"{url!r} is no address of {name}: {error}", kind="refused") from error
        if address.scheme not in ("http", "https") or not address.host:
            raise EngineError(f"{url!r} is no address of {name}: give http://HOST:PORT", kind="refused")
        self.name = name
        self.url = url.rstrip("/")
        self._headers = {"accept-encoding": "identity"}
        if api_key is not None:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._timeout = httpx.Timeout(read_timeout, connect=connect_timeout)
        # Made once, since a client would make one for each request. Certificates are read for an address with TLS only.
        tls = address.scheme == "https"
        self._ssl_context = httpx.create_ssl_context() if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def get(self, path: str, kind: type[E]) -> E:
        """Get a JSON object.

        Raises:
            EngineError: As for `events`.

        """
        async with self._answer("GET", path, None) as response:
            return self._decoded(await self._body(response), kind)

    async def events(self, path: str, body: Mapping[str, Any], kind: type[E]) -> AsyncGenerator[E, None]:
        """Post a JSON object and give what comes: the events of a stream, or the one object of a plain answer.

        A request that fails before the answer begins is tried again, twice. After that nothing is: ids may be out.

        Raises:
            EngineError: The server cannot be reached, takes too long, refuses, or sends what is no such event; the
                message has its own words.

        """
        async with self._answer("POST", path, msgspec.json.encode(body)) as response:
            if "text/event-stream" not in response.headers.get("content-type", ""):
                yield self._decoded(await self._body(response), kind)
                return
            lines = _DataLines(self.name)
            chunks = response.aiter_raw()
            try:
                while True:
                    with self._broken():
                        chunk = await anext(chunks, b"")
                    for data in lines.feed(chunk):
                        if data == b"[DONE]":
                            return
                        yield self._decoded(data, kind)
                    if not chunk:
                        return
            finally:
                await self._end(response, chunks)

    @asynccontextmanager
    async def _answer(self, method: str, path: str, content: bytes | None) -> AsyncIterator[httpx.Response]:
        headers = self._headers if content is None else self._headers | {"content-type": "application/json"}
        httpx = _httpx()
        # Proxies of the environment are for the web, not for an engine that is next door.
        async with httpx.AsyncClient(verify=self._ssl_context, timeout=self._timeout, trust_env=False) as client:
            for delay in (*RETRY_DELAYS, None):
                request = client.build_request(method, self.url + path, content=content, headers=headers)
                try:
                    response = await client.send(request, stream=True)
                except httpx.TimeoutException as error:
                    if delay is None or not isinstance(error, httpx.ConnectTimeout):
                        raise self._failure("does not answer in time", error, "timeout") from error
                except httpx.HTTPError as error:
                    if delay is None:
                        raise self._failure("cannot be reached", error, "unreachable") from error
                else:
                    if delay is None or response.status_code not in BUSY:
                        break
                    await response.aclose()
                await anyio.sleep(delay)
            try:
                encoding = response.headers.get("content-encoding", "identity")
                if not response.is_success:
                    said = "" if encoding != "identity" else await self._error_body(response)
                    raise self._refusal(response.status_code, said or f"a body in content-encoding {encoding!r:.80}")
                if encoding != "identity":
                    raise EngineError(
                        f"{self.name} at {self.url} answers in content-encoding {encoding!r:.80}, not as it was asked to"
                    )
                yield response
            finally:
                await response.aclose()

    async def _body(self, response: httpx.Response) -> bytes:
        """Read a body whole, up to the bound of an event."""
        body, whole = await self._read(response, MAX_ANSWER_BYTES)
        if not whole:
            raise EngineError(f"{self.name} at {self.url} sends an answer of more than {MAX_ANSWER_BYTES} bytes")
        return bytes(body)

    async def _error_body(self, response: httpx.Response) -> str:
        """Read the server's own words from the beginning of an error's body."""
        body, whole = bytearray(), False
        with anyio.move_on_after(ERROR_SECONDS):
            _, whole = await self._read(response, MAX_ERROR_BYTES, body)
        return _message(bytes(body)) + ("" if whole else f" (cut off after {len(body)} bytes)")

    async def _read(self, response: httpx.Response, most: int, body: bytearray | None = None) -> tuple[bytearray, bool]:
        """Read at most so many bytes of a body, into `body` if it is given; return them, and whether they are all."""
        body = bytearray() if body is None else body
        chunks = response.aiter_raw()
        try:
            with self._broken():
                async for chunk in chunks:
                    body += chunk[: most - len(body)]
                    if len(body) == most:
                        return body, False
            return body, True
        finally:
            await self._end(response, chunks)

    async def _end(self, response: httpx.Response, chunks: AsyncIterator[bytes]) -> None:
        """Close the connection, and end the iterators over it: httpx leaves the inner ones to the garbage collector."""
        httpx = _httpx()
        await response.aclose()
        with suppress(httpx.HTTPError, httpx.StreamError, StopAsyncIteration):
            while True:
                await anext(chunks)

    def _refusal(self, status: int, said: str) -> ServerError:
        kind = FAILURES.get(status, "refused" if status < 500 else "failed")
        return ServerError(f"{self.name} at {self.url} answers {status}: {said}", kind=kind, status=status)

    def _decoded(self, data: bytes, kind: type[E]) -> E:
        try:
            event = msgspec.json.decode(data, type=kind)
        except msgspec.DecodeError as error:
            raise EngineError(
                f"{self.name} at {self.url} sends what is no answer of it: {error} ({len(data)} bytes)"
            ) from error
        if event.error is not None:
            raise EngineError(f"{self.name} at {self.url} fails: {_message(data)}")
        return event

    def _failure(self, what: str, error: Exception, kind: EngineFailure) -> EngineError:
        return EngineError(f"{self.name} at {self.url} {what}: {error or type(error).__name__}", kind=kind)

    def _broken(self) -> _Broken:
        return _Broken(self)


def _httpx() -> ModuleType:
    """httpx, which takes 0.1 s to import."""
    try:
        import httpx
    except ModuleNotFoundError as error:
        raise EngineError("engines behind HTTP need httpx: pip install '.[remote]'") from error
    return httpx


class _Broken:
    """A context in which a connection that breaks is an `EngineError`."""

    def __init__(self, server: EngineServer) -> None:
        self._server = server

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        httpx = _httpx()
        if isinstance(error, httpx.TimeoutException):
            raise self._server._failure("has gone silent", error, "timeout") from error
        if isinstance(error, httpx.HTTPError):
            raise self._server._failure("broke the connection off", error, "unreachable") from error


class ModelCardEngine:
    """What vLLM and SGLang have in common: the first entry of `/v1/models` tells of their model.

    Attributes:
        context_size: The most ids that prompt and answer may have, once `served` has asked.

    """

    context_size: int | None = None

    def __init__(self, server: EngineServer) -> None:
        self._server = server

    async def served(self) -> ServedModel:
        """Ask the server for its model; nothing is known of it if the server has no such page.

        Raises:
            EngineError: It does not answer.

        """
        try:
            cards = (await self._server.get("/v1/models", _Cards)).data
        except ServerError as error:
            if error.status != 404:
                raise
            cards = []
        model = ServedModel(cards[0].root or cards[0].id, None, cards[0].max_model_len) if cards else ServedModel()
        self.context_size = model.context_size
        return model

    async def _rest_of_context(self, prompt: int) -> int | None:
        """The most ids that an answer to a prompt of so many may have; None if the server does not tell."""
        if self.context_size is None:
            await self.served()
        return None if self.context_size is None else max(1, self.context_size - prompt - 1)


def request_fields(engine: str, sampling: Sampling, names: Mapping[str, str], extra: Collection[str]) -> dict[str, Any]:
    """The fields of a sampling that are given, under a server's own names, and those of its `extra`.

    Args:
        engine: Its name, for messages.
        sampling: What is asked.
        names: The server's names of the fields that it honours.
        extra: Names that `Sampling.extra` may have.

    Raises:
        EngineError: A field cannot be honoured; the message names it.

    """
    refuse_unsupported(engine, sampling, {*names, "extra"})
    for name, value in sampling.extra.items():
        if name not in extra:
            known = ", ".join(sorted(extra))
            raise EngineError(f"{engine} cannot honour extra[{name!r}]={value!r}; it knows {known}", kind="unsupported")
    return {names[name]: value for name, value in sampling.given().items() if name in names} | sampling.extra


def cut_text(text: str, most: int = MAX_MESSAGE) -> str:
    """Cut what a server says, for a message; say so where something is left out."""
    return text if len(text) <= most else f"{text[:most]} (cut off after {most} of {len(text)} characters)"


class _DataLines:
    """The `data:` lines of server-sent events, in whatever pieces they come. Comments are pings; other fields say nothing.

    Lines end at line feeds only: JSON may hold the other characters at which `str.splitlines` cuts.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._rest = bytearray()  # the line that is not complete

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take bytes, none at the end, and give the lines that are complete."""
        first, *others = (chunk or b"\n").split(b"\n")
        self._rest += first
        if len(self._rest) > MAX_EVENT_BYTES:
            raise EngineError(f"{self._name} sends a line of more than {MAX_EVENT_BYTES} bytes")
        if not others:
            return []
        lines = [bytes(self._rest), *others[:-1]]
        self._rest = bytearray(others[-1])
        return [line[5:].strip() for line in lines if line.startswith(b"data:")]


def _message(body: bytes) -> str:
    """A server's own words: what stands in the error object of one of the known forms, or the beginning of the text."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return cut_text(body.decode("utf-8", "replace"))
    for key in ("error", "message", "detail"):
        if isinstance(said, dict) and key in said:
            said = said[key]
    return cut_text(said if isinstance(said, str) else msgspec.json.encode(said).decode())
