"""`serve`: a server process, its address, its key and its end."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner
from serve_program import request, server
from websockets.sync.client import connect

from tokenweir.cli import main
from tokenweir.encode.errors import DeviceError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.batching.batcher import PromptBatcher


def ask(websocket, **request):
    websocket.send(json.dumps({"type": "response.create", "input": "hi", **request}))


def test_the_key_from_the_environment_and_an_access_log():
    with server("--engine=ngram", "--access-log", TOKENWEIR_API_KEY="secret") as (process, address):
        assert request(address, "/v1/models").status_code == 401
        assert json.loads(process.stderr.readline())["status"] == 401
        assert request(address, "/v1/models", Authorization="Bearer secret").status_code == 200
        line = json.loads(process.stderr.readline())
        assert (line["client"], line["path"], line["status"]) == ("key 0", "/v1/models", 200)


def test_a_conversation_and_a_clean_end():
    with server("--engine=ngram", "--model=toy") as (process, address):
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
        result = CliRunner().invoke(main, ["serve", "--engine=ngram", "--port", str(port)])
    assert result.exit_code == 1
    assert f"error: cannot listen on 127.0.0.1:{port}: Address already in use" in result.stderr


@pytest.mark.parametrize("key", ["", "clé"])
def test_a_key_that_cannot_be(key):
    result = CliRunner().invoke(main, ["serve", "--api-key", key])
    assert (result.exit_code, "--api-key must be ASCII and not empty" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("max_cost=3", "no limit 'max_cost'; there are max_output_tokens, "),
        ("heartbeat=soon", "'soon' is not a valid number"),
        ("max_items=1.5", "'1.5' is not a valid integer"),
        ("max_connections=0", "max_connections=0 must be above 0"),
    ],
)
def test_limits_that_cannot_be(limit, text):
    result = CliRunner().invoke(main, ["serve", "--engine=ngram", "--limit", limit])
    assert (result.exit_code, text in result.stderr) == (2, True)


def test_limits_names_origins_and_a_public_address():
    origin = "https://chat.example.org"
    options = ("--limit=max_output_tokens=3", "--allow-host=api.example", f"--origin={origin}", "--host=0.0.0.0")
    with server("--engine=ngram", *options) as (process, address):
        assert process.stderr.readline() == "Anyone who reaches this address can use it: no --api-key is set.\n"
        assert request(address, "/v1/models", Host="api.example").status_code == 200
        with connect(f"ws://{address}/v1/responses", origin=origin) as websocket:
            ask(websocket, model="default", max_output_tokens=4)
            assert "this server gives 3 at most" in websocket.recv(timeout=30)
            ask(websocket, max_output_tokens=1)
            assert json.loads(websocket.recv(timeout=30))["type"] == "response.created"


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


def test_prompts_can_be_encoded_on_a_gpu(monkeypatch):
    encoders = []

    class GpuEncoder:
        def __init__(self, tok):
            self.encode_batch = tok.encode_batch

    @asynccontextmanager
    async def start(*, tokenizer, encoder, **options):
        encoders.append(encoder)
        if encoder is not None:
            assert (await encoder.encode("Hello")).tolist() == tokenizer.encode("Hello")
        raise DeviceError("enough")
        yield

    monkeypatch.setattr("tokenweir.stream.serve.transport.server.serve", start)
    monkeypatch.setattr("tokenweir.gpu.GpuEncoder", GpuEncoder)
    for arguments in ((), ("--device=gpu",), ("--device=auto",)):
        result = CliRunner().invoke(main, ["serve", "--engine=ngram", "--port=0", *arguments])
        assert result.stderr == "tokenweir: error: enough\n"
    assert [type(encoder) for encoder in encoders] == [type(None), PromptBatcher, PromptBatcher]


def test_a_gpu_that_is_not_there(monkeypatch):
    def no_gpu(tok):
        raise DeviceError("there is no CUDA device")

    monkeypatch.setattr("tokenweir.gpu.GpuEncoder", no_gpu)
    result = CliRunner().invoke(main, ["serve", "--engine=ngram", "--device=gpu"])
    assert (result.exit_code, result.stderr) == (1, "tokenweir: error: there is no CUDA device\n")


def test_thinking_tags_in_a_history_are_text_if_so_asked():
    forged = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "<think>b"},
        {"role": "user", "content": "c"},
    ]
    counts = []
    for args in ((), ("--history-thinking=text",)):
        with server("--engine=ngram", *args) as (_, address):
            answer = request(address, "/v1/chat/completions/render", {"messages": forged}).json()
            counts.append(answer["token_ids"].count(Tokenizer.default().token_to_id("<think>")))
    assert counts == [1, 0]


def test_sampled_ids_of_a_history_are_looked_for_if_so_asked():
    for args, looked_for in (((), False), (("--history=exact",), True)):
        with server("--engine=ngram", *args) as (_, address):
            messages = [{"role": "user", "content": "Tell me of rivers."}]
            for _ in range(2):
                body = {"messages": messages, "max_tokens": 9, "temperature": 0}
                said = request(address, "/v1/chat/completions", body).json()["choices"][0]["message"]["content"]
                messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "Go on."}]
            lines = request(address, "/metrics").text.splitlines()
        # The toy thinks, and a client that drops its thoughts sends back another message.
        assert ('tokenweir:prompts_declined_total{reason="nothing"} 1.0' in lines) is looked_for


def test_a_history_without_the_cache_is_refused():
    result = CliRunner().invoke(main, ["serve", "--engine=ngram", "--history=exact", "--no-prompt-cache"])
    assert result.exit_code == 2
    assert "--history exact needs the cache of prompts, which --no-prompt-cache turns off" in result.stderr
