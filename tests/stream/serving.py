"""A server over real sockets for tests: engines that play what they are told, and clients of every kind."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import httpx
import pytest
import uvicorn
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from websockets.asyncio.client import connect

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.events.step import EngineStep
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.transport.server import serve
from tokenweir.templates.chat_template import ChatTemplate

TOK = Tokenizer.default()
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
WITH_TOOLS = ChatTemplate(
    "{% for tool in tools or [] %}{{ tool | tojson }}\n{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HOST = b"Host: 127.0.0.1\r\n"
HANDSHAKE = (
    b"GET /v1/responses HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" + HOST
)
"""The head of a WebSocket's request, without the empty line at its end."""
LIMITS = {field.name for field in fields(Limits)}


class Script:
    """Engine double that yields the ids of texts and whole steps, waits for seconds and events, and raises errors, in order.

    Records its calls.
    """

    def __init__(self, *parts):
        self.parts = parts
        self.prompts, self.samplings, self.closed_at = [], [], []
        self.started = 0
        self.closed = asyncio.Event()

    @property
    def sampling(self):
        """The options of the last call."""
        return self.samplings[-1] if self.samplings else None

    async def generate(self, prompt_ids, sampling):
        self.started += 1
        self.prompts.append(TOK.decode(prompt_ids, skip_special_tokens=False))
        self.samplings.append(sampling)
        try:
            for part in self.parts:
                if isinstance(part, (int, float)):
                    await asyncio.sleep(part)
                elif isinstance(part, asyncio.Event):
                    await part.wait()
                elif isinstance(part, BaseException):
                    raise part
                elif isinstance(part, EngineStep):
                    yield part
                else:
                    for token_id in TOK.encode(part):
                        yield [token_id]
        finally:
            self.closed_at.append(asyncio.get_running_loop().time())
            self.closed.set()


class Sure:
    """Engine double that gives logprobs, and the likeliest tokens where they are asked for."""

    async def generate(self, prompt_ids, sampling):
        for token_id in TOK.encode("Hello wörld<|im_end|>"):
            await asyncio.sleep(0)
            tops = [[(token_id, -0.25), (72, -2.0)][: sampling.top_logprobs]] if sampling.top_logprobs else None
            yield EngineStep([token_id], logprobs=[-0.25], top_logprobs=tops)


class Endless:
    """Engine double that never stops, and counts the ids that it has yielded in `given`."""

    given = 0
    closed = False

    async def generate(self, prompt_ids, sampling):
        try:
            while True:
                await asyncio.sleep(0)
                ids = TOK.encode("on and ") * 10
                self.given += len(ids)
                yield ids
        finally:
            self.closed = True


def serving(engine, **options):
    """Serve an engine; fields of `Limits` among the options are its limits."""
    limits = {name: options.pop(name) for name in LIMITS & options.keys()}
    options.setdefault("limits", Limits(**{"drain_timeout": 0.2} | limits))
    return serve(engine=engine, tokenizer=TOK, port=0, **options)


def bearer(key):
    return {"Authorization": f"Bearer {key}"} if key else {}


def http_of(server, path="", key=None, **options):
    options.setdefault("headers", bearer(key))
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}{path}", timeout=60, **options)


@asynccontextmanager
async def client_of(server, **options):
    async with AsyncOpenAI(
        base_url=f"http://127.0.0.1:{server.port}/v1", api_key="k", max_retries=0, **options
    ) as client:
        yield client


def anthropic_of(server, **options):
    url = f"http://127.0.0.1:{server.port}"
    return AsyncAnthropic(base_url=url, max_retries=0, **{"api_key": "k"} | options)


@asynccontextmanager
async def uvicorn_of(app):
    """Serve an application by uvicorn, with its lifespan; gives the address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on", ws="websockets-sansio"))
    serving = asyncio.create_task(server.serve())
    await eventually(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


def socket_to(server, key=None, **options):
    options.setdefault("additional_headers", bearer(key))
    return connect(f"ws://127.0.0.1:{server.port}/v1/responses", **options)


def posting(path, body=b"", length=None, more=b""):
    """Return the bytes of a POST of JSON; a `length` above the body's leaves the rest to be sent, `more` are fields."""
    length = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n".encode()
    return head + HOST + more + b"\r\n" + body


@asynccontextmanager
async def raw_socket(server, address="127.0.0.1"):
    """A reader and a writer of a connection from an address."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, local_addr=(address, 0))
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def say(websocket, **event):
    await websocket.send(json.dumps({"type": "response.create", "input": "hi"} | event))


def events_in(stream):
    """Return the objects of a stream of server-sent events, without the last line of OpenAI's."""
    data = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
    return [json.loads(event) for event in data if event != "[DONE]"]


async def until(websocket, kind):
    """Receive events from a websocket up to one of this type; return all of them."""
    events = []
    async with asyncio.timeout(10):
        while not events or events[-1]["type"] != kind:
            events.append(json.loads(await websocket.recv()))
    return events


async def eventually(condition):
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it never happened")


async def fetch(server, path, method="GET", **headers):
    def blocking():
        request = Request(f"http://127.0.0.1:{server.port}{path}", method=method, headers=headers)
        try:
            with urlopen(request, timeout=10) as reply:
                return reply.status, reply.headers, reply.read()
        except HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    return await asyncio.to_thread(blocking)


async def metrics_of(server):
    """Return the numbers that a server tells, by their names and labels."""
    lines = (await fetch(server, "/metrics"))[2].decode().splitlines()
    return {name: float(number) for name, _, number in (line.rpartition(" ") for line in lines if line[0] != "#")}


def small_socket(server, address="127.0.0.1"):
    """Return a socket connected to a server with a small receive buffer, so that a reader that stops is noticed soon."""
    small = socket.socket()
    small.bind((address, 0))
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.connect(("127.0.0.1", server.port))
    small.setblocking(False)
    return small
