"""Prompts and answers stay out of every log, over every interface, also when something fails."""

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from serving import TOK, Script, http_of, say, serving, socket_to, until

from tokenweir import LlamaServerEngine

ASKED, ANSWERED = "sesame", "zanzibar"
SECRETS = (ASKED, ANSWERED, json.dumps([*ASKED.encode()])[1:-1], ",".join(map(str, TOK.encode(ANSWERED))))


class Leaky(Script):
    """An engine that fails after it has answered."""

    async def generate(self, prompt_ids, sampling):
        async for ids in super().generate(prompt_ids, sampling):
            yield ids
        raise RuntimeError("out of memory")


class _Lying(BaseHTTPRequestHandler):
    """An inference server that sends what is no event of its protocol, in the model's words."""

    bodies = (
        (200, f'{{"content": 5, "text": "{ANSWERED}"}}', "application/json"),
        (200, f'data: {{"content": "{ANSWERED}", "tokens": "{ANSWERED}"}}\n\n', "text/event-stream"),
        (200, f"data: {ANSWERED}\n\n", "text/event-stream"),
        (200, f'data: {{"content": "{ANSWERED}", "stop": true, "stop_type": "?"}}\n\n', "text/event-stream"),
    )

    def log_message(self, *args):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        status, body, kind = self.server.turn()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.fixture
def lying():
    turns = iter(_Lying.bodies * 3)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Lying)
    server.turn = lambda: next(turns)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def logged(capfd):
    """All that any logger has said at any level, and what was printed; libraries are told to say everything too."""
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            if record.name != "websockets.client":  # the test's own
                records.append(self.format(record))

    keep, root = Keep(), logging.getLogger()
    keep.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
    before = {root: root.level}
    for name in [*logging.root.manager.loggerDict]:
        logger = logging.getLogger(name)
        before[logger] = logger.level
        logger.setLevel(logging.DEBUG)
    root.setLevel(logging.DEBUG)
    root.addHandler(keep)
    yield lambda: "\n".join(records) + "".join(capfd.readouterr())
    root.removeHandler(keep)
    for logger, level in before.items():
        logger.setLevel(level)


MESSAGES = [{"role": "user", "content": ASKED}]
BAD = [{"role": ASKED, "content": ASKED}, {"role": "user", "content": 5, ASKED: ASKED}]
TOOLS = [{"type": "function", "function": {"name": ASKED, "parameters": {ASKED: ASKED}}}]


def requests(model):
    """A request, and some that fail, for each path."""
    chat = {"model": model, "messages": MESSAGES}
    response = {"model": model, "input": ASKED}
    yield from (("/v1/chat/completions", chat | more) for more in ({}, {"stream": True}, {"tools": TOOLS}, {"n": 2}))
    yield from (
        ("/v1/chat/completions", chat | more) for more in ({"messages": BAD}, {"temperature": ASKED}, {ASKED: ASKED})
    )
    yield from (
        ("/v1/completions", {"model": model, "prompt": prompt} | more)
        for prompt in (ASKED, [ASKED] * 2, {ASKED: 1})
        for more in ({}, {"stream": True})
    )
    yield from (("/v1/responses", response | more) for more in ({}, {"stream": True}, {"input": BAD}, {"tools": ASKED}))
    yield "/v1/responses", response | {"previous_response_id": ASKED}
    yield "/v1/responses/compact", {"model": model, "input": ASKED}
    yield "/v1/messages", {"model": model, "max_tokens": 5, "messages": MESSAGES}
    yield "/tokenize", {"prompt": ASKED, "return_token_strs": True}
    yield "/tokenize", {"messages": MESSAGES}
    yield "/detokenize", {"tokens": TOK.encode(ASKED), "return_tokens": True}
    yield "/detokenize", {"tokens": [ASKED]}
    yield "/v1/chat/completions/render", chat
    generated = {
        "request_id": "r",
        "choices": [{"index": 0, "token_ids": TOK.encode(ANSWERED), "finish_reason": "stop"}],
    }
    yield "/v1/chat/completions/derender", {"generate_response": generated, "chat_request": chat}
    yield (
        "/v1/chat/completions/derender",
        {"generate_response": generated | {"choices": [ANSWERED]}, "chat_request": chat},
    )
    state = {"stream": True, "generate_chunk": generated, "chat_request": chat, "stream_state": {"state": ANSWERED}}
    yield "/v1/chat/completions/derender", state


async def test_nothing_that_is_said_is_logged(logged, lying):
    engines = {
        "good": Script(f"<think>{ANSWERED}</think>{ANSWERED}", "<|im_end|>"),
        "failing": Leaky(ANSWERED),
        "foreign": LlamaServerEngine(lying, TOK),
    }
    statuses = set()
    async with serving(engines, max_message_bytes=1 << 14) as server:
        async with http_of(server) as http:
            for model in engines:
                for path, body in requests(model) if model == "good" else list(requests(model))[:4]:
                    statuses.add((await http.post(path, json=body)).status_code)
            for body in (f'{{"{ASKED}": ', f'"{ASKED}\\ud800"', ASKED * 10_000):
                statuses.add(
                    (
                        await http.post("/v1/responses", content=body, headers={"content-type": "application/json"})
                    ).status_code
                )
        for model in engines:
            async with socket_to(server) as websocket:
                await say(websocket, model=model, input=ASKED)
                await until(websocket, "response.completed" if model == "good" else "response.failed")
                for bad in (ASKED, f'{{"type": "{ASKED}"}}', json.dumps({"type": "response.create", "input": BAD})):
                    await websocket.send(bad)
                    await until(websocket, "error")
        async with socket_to(server) as websocket:
            await websocket.send(ASKED * 10_000)
            await websocket.wait_closed()
    text = logged()
    assert {200, 400, 413, 500} <= statuses
    assert "engine" in text or "answer" in text  # something was logged
    found = {line[:300] for line in text.splitlines() for secret in SECRETS if secret in line}
    assert not found, "\n".join(found)
