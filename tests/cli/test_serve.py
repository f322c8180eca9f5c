"""`serve`: a server process, its address, its key and its end."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from commands import run
from serve_program import request, server
from websockets.sync.client import connect

from tokenweir.encode.errors import DeviceError
from tokenweir.stream.prompts.batching.batcher import PromptBatcher
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.options import declared_options


def ask(websocket, **request):
    websocket.send(json.dumps({"type": "response.create", "input": "hi", **request}))


def test_the_key_from_the_environment_and_an_access_log():
    with server("--engine=ngram", "--access-log", TOKENWEIR_API_KEY="secret") as (process, address):
        assert request(address, "/v1/models").status_code == 401
        assert json.loads(process.stderr.readline())["status"] == 401
        assert request(address, "/v1/models", Authorization="Bearer secret").status_code == 200
        line = json.loads(process.stderr.readline())
        assert (line["client"], line["path"], line["status"]) == ("key 0", "/v1/models", 200)


def test_a_conversation_at_a_public_address_and_a_clean_end():
    with server("--engine=ngram", "--model=toy", "--host=0.0.0.0") as (process, address):
        assert process.stderr.readline() == "Anyone who reaches this address can use it: no --api-key is set.\n"
        assert request(address, "/health").json()["status"] == "ok"
        assert request(address, "/v1/models").json()["data"][0]["id"] == "toy"
        with connect(f"ws://{address}/v1/responses") as websocket:
            ask(websocket, model="toy", max_output_tokens=5)
            for message in websocket:
                event = json.loads(message)
                if event["type"] in ("response.completed", "response.incomplete"):
                    assert event["response"]["usage"]["output_tokens"] <= 5
                    break
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == ""


def test_without_an_engine_the_small_model_is_served(small_model):
    with server() as (process, address):
        assert process.stderr.readline().startswith("SmolLM2-135M-Instruct answers")
        assert [model["id"] for model in request(address, "/v1/models").json()["data"]] == ["SmolLM2-135M-Instruct"]
        with connect(f"ws://{address}/v1/responses") as websocket:
            ask(websocket, input="What is the capital of France?", temperature=0, max_output_tokens=16)
            ends = {"response.completed", "response.incomplete", "response.failed", "error"}
            last = next(event for event in map(json.loads, websocket) if event["type"] in ends)
            assert last["type"] == "response.completed", last
            assert "Paris" in last["response"]["output"][0]["content"][0]["text"]


def test_without_the_small_model_two_toys_are_served_and_say_so(tmp_path):
    with server(TOKENWEIR_CACHE=str(tmp_path)) as (process, address):
        said = process.stderr.readline()
        assert "`tokenweir fetch-model` downloads it" in said and "An n-gram toy answers" in said
        assert [model["id"] for model in request(address, "/v1/models").json()["data"]] == ["default", "demo"]
        with connect(f"ws://{address}/v1/responses") as websocket:
            ask(websocket, model="demo", max_output_tokens=5)  # a recording, which begins by thinking
            kinds = {json.loads(message)["type"] for message in itertools.islice(websocket, 5)}
            assert "response.reasoning_text.delta" in kinds


def test_an_answer_in_flight_may_end(tmp_path):
    ids = [71] * 100
    recording = {"name": "slow", "prompt": "?", "ids": ids, "waits_ms": [10] * len(ids)}
    (tmp_path / "slow.json").write_text(json.dumps(recording))
    with server(f"--engine=replay:{tmp_path}/slow.json") as (process, address):
        with connect(f"ws://{address}/v1/responses") as websocket:
            ask(websocket)
            events = (json.loads(message) for message in websocket)
            next(event for event in events if event["type"] == "response.output_text.delta")
            process.send_signal(signal.SIGTERM)
            last = next(event for event in events if event["type"] == "response.completed")
            assert last["response"]["usage"]["output_tokens"] == len(ids)
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_cuts_an_answer_off(tmp_path, number):
    recording = {"name": "endless", "prompt": "?", "ids": [71] * 2, "waits_ms": [10, 3_600_000]}
    (tmp_path / "endless.json").write_text(json.dumps(recording))
    with (
        server(f"--engine=replay:{tmp_path}/endless.json") as (process, address),
        connect(f"ws://{address}/v1/responses") as websocket,
    ):
        ask(websocket)
        assert any("output_text.delta" in message for message in websocket)
        process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):  # it waits for the answer
            process.wait(timeout=0.5)
        process.send_signal(number)
        assert process.wait(timeout=20) == -number


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--engine=ngram", "--port", port)
    assert result.exit_code == 1
    assert f"error: cannot listen on 127.0.0.1:{port}: Address already in use" in result.stderr


STUCK = """
import asyncio
import time
from tokenweir.cli import main, model, serve

class Stuck:
    async def generate(self, prompt_ids, sampling):
        yield [71]
        while True:
            {work}

model._toy = lambda kind, argument: Stuck()
serve.LAST_RESORT = {seconds}
main(["serve", "--port=0", "--engine=replay", "--limit=drain_timeout=0.2", "--limit=abandon_timeout=0.5"])
"""
SWALLOW = """
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass
"""


@pytest.mark.parametrize(
    ("work", "seconds"),
    [(SWALLOW, 20), ("time.sleep(0.1)", 0.3)],  # an engine that never awaits is left to the last resort
    ids=["swallows its cancellation", "never awaits"],
)
def test_sigterm_ends_a_server_whose_engine_does_not_stop(work, seconds):
    program = STUCK.format(work=work, seconds=seconds)
    with (
        server(command=(sys.executable, "-c", program)) as (process, address),
        connect(f"ws://{address}/v1/responses") as websocket,
    ):
        ask(websocket)
        next(message for message in websocket if "response.in_progress" in message)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 1
        assert "An engine did not stop, and is left behind." in process.stderr.read()


WITHOUT_THREADS = """
import os, signal, threading
from tokenweir.cli import main, model

class Interrupted:
    async def generate(self, prompt_ids, sampling):
        start, threading.Thread.start = threading.Thread.start, lambda thread: os._exit(3)
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100_000):  # the handler runs here
            pass
        threading.Thread.start = start
        yield [71]

model._toy = lambda kind, argument: Interrupted()
main(["serve", "--port=0", "--engine=replay"])
"""


def test_a_signal_starts_no_thread():
    """It may have come while another thread was being started, whose locks it would wait for."""
    with (
        server(command=(sys.executable, "-c", WITHOUT_THREADS)) as (process, address),
        connect(f"ws://{address}/v1/responses") as websocket,
    ):
        ask(websocket)
        assert process.wait(timeout=20) == 0


@pytest.fixture
def started(monkeypatch):
    """The options of each server that was started, and that ended at once with the error "enough"."""
    calls = []

    @asynccontextmanager
    async def start(**options):
        calls.append(options)
        if options["encoder"] is not None:
            assert (await options["encoder"].encode("Hello")).tolist() == options["tokenizer"].encode("Hello")
        raise DeviceError("enough")
        yield

    monkeypatch.setattr("tokenweir.stream.serve.transport.server.serve", start)
    return calls


def test_prompts_can_be_encoded_on_a_gpu(started, monkeypatch):
    stand_in = lambda tok: SimpleNamespace(encode_batch=tok.encode_batch)
    monkeypatch.setattr("tokenweir.gpu.GpuEncoder", stand_in)
    for arguments in ((), ("--device=gpu",), ("--device=auto",)):
        assert run("serve", "--engine=ngram", "--port=0", *arguments).stderr == "tokenweir: error: enough\n"
    assert [type(options["encoder"]) for options in started] == [type(None), PromptBatcher, PromptBatcher]


def test_flags_reach_the_server(started):
    flags = "--history-thinking=text --markup=ids --history=exact --api-key=a --api-key=b --origin=o --allow-host=h "
    flags += "--reasoning-events=reasoning --render-schema=sglang --keep-billing-header --remote-media "
    flags += f"--salt-secret={'s' * 16} --limit=heartbeat=3"
    run("serve", "--engine=ngram", *flags.split())
    run("serve", "--engine=ngram", "--no-prompt-cache")
    given, without = started
    told = {
        "history_thinking": "text",
        "markup": "ids",
        "prompt_cache": True,
        "history": "exact",
        "api_key": ("a", "b"),
        "origins": ("o",),
        "hosts": ("h",),
        "limits": Limits(heartbeat=3),
        "reasoning_events": "reasoning",
        "render_schema": "sglang",
        "keep_billing_header": True,
        "remote_media": True,
        "salt_secret": "s" * 16,
    }
    assert given.items() >= told.items()
    assert told.keys() >= {name for name, _, option in declared_options() if option.flag}
    assert without["prompt_cache"] is False
