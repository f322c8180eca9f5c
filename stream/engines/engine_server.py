"""HTTP client of inference servers: one request per connection, answers as JSON events, failures as `EngineError`.

Every request has its own connection. Closing the generator closes it at once, which cancels the generation on these
servers. No state outlives an event loop. The cost is a handshake per request.

Servers are not trusted: compressed bodies are refused, and every read is bounded.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec
from msgspec import Struct

from tokenweir.encode.errors import EngineError, EngineFailure
from tokenweir.stream.engines.protocol import refuse_unsupported
from tokenweir.stream.events.json_bounds import as_float, has_more_outside_strings
from tokenweir.stream.events.sampling import Sampling

if TYPE_CHECKING:
    import httpx

E = TypeVar("E", bound="Event")

RETRY_DELAYS = (0.25, 1.0)
"""Seconds before the second and the third attempt."""
MAX_EVENT_BYTES = 1 << 22
"""Most bytes of one event of a stream. llama-server repeats the whole prompt in its last event."""
LONG_EVENT = 1 << 12
"""Bytes from which on an event is bounded in its values, which cost more time than its bytes."""
THREAD_BYTES = 1 << 16
"""Bytes from which on an event is decoded in a thread, so that other streams go on."""
MAX_EVENT_VALUES = 1 << 18
"""Most values of one event: the ids of the longest prompt."""
MAX_ANSWER_BYTES = 1 << 24
"""Most bytes of an answer without streaming, and of a model description."""
SAME_NAMES = {
    name: name
    for name in (
        *("temperature", "top_p", "top_k", "min_p", "ignore_eos", "json_schema", "logit_bias"),
        *("frequency_penalty", "presence_penalty"),
    )
}
"""Fields of a sampling that every server names as `Sampling` does."""
_decoder = msgspec.json.Decoder(float_hook=as_float)

MAX_ERROR_BYTES = 1 << 13
"""Most bytes that are read of an error body."""
ERROR_SECONDS = 5.0
"""Timeout in seconds for reading an error body."""
MAX_MESSAGE = 1000
"""Most characters of a server's message that an error quotes."""
BUSY = frozenset({429, 502, 503, 504})
"""Retryable statuses: a server that starts or is overloaded, or a proxy without a backend."""
FAILURES: dict[int, EngineFailure] = {408: "timeout", 429: "overloaded", 503: "overloaded", 504: "timeout"}
"""Kind of failure by status, other than the request's fault or an internal error."""


class Event(Struct):
    """Base class of messages of a server: an answer, a part of one, or an error in the middle of a stream.

    Attributes:
        error: The error; None for other messages.

    """

    error: Any = None


class ServerError(EngineError):
    """Error for a response of a server with an error status.

    Attributes:
        status: The HTTP status.

    """

    def __init__(self, message: str, *, kind: EngineFailure, status: int) -> None:
        super().__init__(message, kind=kind)
        self.status = status


class EngineServer:
    """HTTP client of the server of an engine."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        api_key: str | None = None,
        connect_timeout: float = 10.0,
        read_timeout: float = 600.0,
    ) -> None:
        """Configure the client; nothing is sent yet.

        Args:
            name: The engine's name, for messages.
            url: The server's address, such as `http://127.0.0.1:8000`; a path is kept.
            api_key: The key to send as a bearer token; None for no key.
            connect_timeout: Seconds until the connection is established.
            read_timeout: Seconds without a byte, including the prefill of a long prompt.

        Raises:
            EngineError: httpx is not installed, the address is not an HTTP address, or a header cannot have the key.

        """
        httpx = _httpx()
        if api_key is not None and not (api_key and api_key.isascii() and api_key.isprintable()):
            raise EngineError(f"the API key of {name} must be printable ASCII and not empty", kind="refused")
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
        # Created once, because each client would create its own. Certificates are loaded only for TLS addresses.
        tls = address.scheme == "https"
        self._ssl_context = httpx.create_ssl_context() if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def get(self, path: str, kind: type[E]) -> E:
        """Request `path` by GET and return the JSON object in the response, decoded as `kind`.

        Raises:
            EngineError: The server cannot be reached, times out, refuses, or sends an invalid object.

        """
        async with self._answer("GET", path, None) as response:
            return await self._parsed(await self._body(response), kind)

    async def events(self, path: str, body: Mapping[str, Any], kind: type[E]) -> AsyncGenerator[E, None]:
        """Post `body` as JSON to `path`, and yield the events of the stream, or the single object of a plain response.

        Each is decoded as `kind`. A request that fails before the response begins is retried twice. A response that has
        begun is not requested again, because ids have been yielded.

        Raises:
            EngineError: The server cannot be reached, times out, refuses, or sends an invalid event; the message quotes
                the server.

        """
        async with self._answer("POST", path, msgspec.json.encode(body)) as response:
            if "text/event-stream" not in response.headers.get("content-type", ""):
                yield await self._parsed(await self._body(response), kind)
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
                        yield await self._parsed(data, kind)
                    if not chunk:
                        return
            finally:
                await self._end(response, chunks)

    @asynccontextmanager
    async def _answer(self, method: str, path: str, content: bytes | None) -> AsyncIterator[httpx.Response]:
        headers = self._headers if content is None else self._headers | {"content-type": "application/json"}
        httpx = _httpx()
        # Proxy settings of the environment are ignored: engines are local services.
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
                    await _free(response)
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
                await _free(response)

    async def _body(self, response: httpx.Response) -> bytes:
        """Return the complete body of a response; raise `EngineError` if it has more than `MAX_ANSWER_BYTES`."""
        body, whole = await self._read(response, MAX_ANSWER_BYTES)
        if not whole:
            raise EngineError(f"{self.name} at {self.url} sends an answer of more than {MAX_ANSWER_BYTES} bytes")
        return bytes(body)

    async def _error_body(self, response: httpx.Response) -> str:
        """Return the server's error message from the beginning of a response's body; a note says if it was cut off."""
        body, whole = bytearray(), False
        with anyio.move_on_after(ERROR_SECONDS):
            _, whole = await self._read(response, MAX_ERROR_BYTES, body)
        return _message(bytes(body)) + ("" if whole else f" (cut off after {len(body)} bytes)")

    async def _read(self, response: httpx.Response, most: int, body: bytearray | None = None) -> tuple[bytearray, bool]:
        """Read at most `most` bytes of a response's body.

        Args:
            response: The response.
            most: Limit in bytes.
            body: Buffer to which the bytes are appended, so that they are kept if the reading is cancelled; None for a
                new one.

        Returns:
            The buffer, and whether the body is complete.

        """
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
        """Close a response's connection, and the iterators of its body, which httpx leaves to the garbage collector."""
        httpx = _httpx()
        await response.aclose()
        with suppress(httpx.HTTPError, httpx.StreamError, StopAsyncIteration):
            while True:
                await anext(chunks)

    def _refusal(self, status: int, said: str) -> ServerError:
        kind = FAILURES.get(status, "refused" if status < 500 else "failed")
        return ServerError(f"{self.name} at {self.url} answers {status}: {said}", kind=kind, status=status)

    async def _parsed(self, data: bytes, kind: type[E]) -> E:
        """Return an event, decoded in a thread if it is long; raise `EngineError` if it is invalid or has an `error`."""
        if len(data) < THREAD_BYTES:
            return self._decoded(data, kind)
        return await anyio.to_thread.run_sync(self._decoded, data, kind)

    def _decoded(self, data: bytes, kind: type[E]) -> E:
        try:
            if len(data) < LONG_EVENT:
                event = msgspec.json.decode(data, type=kind)
            elif has_more_outside_strings(bytes(data), b",[{", MAX_EVENT_VALUES):
                raise EngineError(f"{self.name} at {self.url} sends more than {MAX_EVENT_VALUES} values in one event")
            else:
                event = msgspec.convert(_decoder.decode(data), kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise EngineError(
                f"{self.name} at {self.url} sends what is no answer of it: {error} ({len(data)} bytes)"
            ) from error
        if event.error is not None:
            raise EngineError(f"{self.name} at {self.url} fails: {_message(data)}")
        return event

    def _failure(self, what: str, error: Exception, kind: EngineFailure) -> EngineError:
        return EngineError(f"{self.name} at {self.url} {what}: {error or type(error).__name__}", kind=kind)

    @contextmanager
    def _broken(self) -> Iterator[None]:
        """Convert timeouts and connection errors of httpx inside the context to `EngineError`."""
        httpx = _httpx()
        try:
            yield
        except httpx.TimeoutException as error:
            raise self._failure("has gone silent", error, "timeout") from error
        except httpx.HTTPError as error:
            raise self._failure("broke the connection off", error, "unreachable") from error


def _httpx() -> ModuleType:
    """Import httpx, which is slow, on first use, and return it; raise `EngineError` if it is not installed."""
    try:
        import httpx
    except ModuleNotFoundError as error:
        raise EngineError("engines behind HTTP need httpx: pip install 'tokenweir[remote]'") from error
    return httpx


async def _free(response: httpx.Response) -> None:
    """Close a response and break its reference cycle, which keeps the connection and all that was read in memory."""
    await response.aclose()
    del response.stream


def request_fields(engine: str, sampling: Sampling, names: Mapping[str, str], extra: Collection[str]) -> dict[str, Any]:
    """Return the fields of a request to an engine's server: those of a sampling that are set, and its `extra`.

    Stop and end options that the decoder enforces are included only if `names` has them; logprobs are not.

    Args:
        engine: The engine's name, for messages.
        sampling: The sampling.
        names: The server's name for each field of `Sampling` that it supports.
        extra: The names that `Sampling.extra` may have.

    Raises:
        EngineError: A field cannot be honoured; the message names it.

    """
    refuse_unsupported(engine, sampling, {*names, "logprobs", "top_logprobs", "extra"})
    for name, value in sampling.extra.items():
        if name not in extra:
            known = ", ".join(sorted(extra))
            raise EngineError(f"{engine} cannot honour extra[{name!r}]={value!r}; it knows {known}", kind="unsupported")
    return {names[name]: value for name, value in sampling.given().items() if name in names} | sampling.extra


def cut_text(text: str) -> str:
    """Return a server's text for an error message, cut off after `MAX_MESSAGE` characters with a note that says so."""
    if len(text) <= MAX_MESSAGE:
        return text
    return f"{text[:MAX_MESSAGE]} (cut off after {MAX_MESSAGE} of {len(text)} characters)"


class _DataLines:
    """Incremental parser of the `data:` lines of server-sent events. Comments (pings) and other fields are ignored.

    Lines end at line feeds only: JSON may contain the other characters that `str.splitlines` takes for line ends.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._rest = bytearray()  # the incomplete line

    def feed(self, chunk: bytes) -> list[bytes]:
        """Process bytes, and return the data of the `data:` lines that are complete; empty bytes end the last line.

        Raise `EngineError` for a line of more than `MAX_EVENT_BYTES`.
        """
        first, found, _ = (chunk := chunk or b"\n").partition(b"\n")
        if len(self._rest) + len(first) > MAX_EVENT_BYTES:
            raise EngineError(f"{self._name} sends a line of more than {MAX_EVENT_BYTES} bytes")
        if not found:
            self._rest += chunk
            return []
        end = chunk.rindex(b"\n")
        lines = b"".join((b"\n", self._rest, chunk[:end]))
        self._rest = bytearray(chunk[end + 1 :])
        # Not one object for each line: other lines, empty ones above all, cost nothing but their bytes.
        return [line.partition(b"\n")[0].strip() for line in lines.split(b"\ndata:")[1:]]


def _message(body: bytes) -> str:
    """Return the error message in a response's body: from a JSON object of a known form, else the beginning of the body."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return cut_text(body.decode("utf-8", "replace"))
    for key in ("error", "message", "detail"):
        if isinstance(said, dict) and key in said:
            said = said[key]
    return cut_text(said if isinstance(said, str) else msgspec.json.encode(said).decode())
