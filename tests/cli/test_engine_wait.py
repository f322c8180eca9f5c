"""`serve` in front of an engine's server that is down, starts late, or refuses."""

from __future__ import annotations

import json
import socket

import pytest
from commands import run
from engine_doubles import MODELS, running, vllm_generate
from serve_program import request, serve_process

ROUTES = {"/inference/v1/generate": vllm_generate, "/v1/models": MODELS}
ASKED = {"prompt": [5], "max_tokens": 1}


@pytest.fixture
def folder(data):
    return data("tokenizers/qwen3/tokenizer.json").parent


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def serving(url, *options):
    """Run a server in front of `url`; gives the process."""
    return serve_process(f"--engine=vllm:{url}", *options)


def address(process):
    """Read lines up to the one that names the server's address; return them and it."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if " served at " in line:
            return lines, line.split()[-1]
    raise AssertionError(lines)


def status(url, body=None):
    answer = request(url.removeprefix("http://"), "", body)
    return answer.status_code, answer.json()


def test_it_serves_and_is_not_ready_until_the_engine_is_up(folder, port):
    with serving(f"http://127.0.0.1:{port}", f"--tokenizer={folder}") as process:
        lines, url = address(process)
        assert "cannot be reached" in lines[0] and lines[0].endswith("; waiting for it, 600 s at most\n")
        assert status(f"{url}/ready") == (503, {"status": "engine not ready", "models": ["default"]})
        assert status(f"{url}/health")[0] == 200
        code, body = status(f"{url}/v1/completions", ASKED)
        assert (code, body["error"]["code"]) == (503, "engine_unreachable")
        assert body["error"]["message"] == "the engine's server cannot be reached"
        with running(ROUTES, port=port):
            assert "the engine's server is up\n" in process.stderr  # behind the log of the request above
            assert status(f"{url}/ready")[0] == 200
            assert status(f"{url}/v1/models")[1]["data"][0]["max_model_len"] == 4000
            assert status(f"{url}/v1/completions", ASKED)[0] == 200


def test_without_a_tokenizer_it_waits_for_the_engine_to_name_one(folder, port):
    models = {"data": [{"id": "qwen", "root": str(folder), "max_model_len": 900}]}
    with serving(f"http://127.0.0.1:{port}") as process:
        assert process.stderr.readline().endswith("; waiting for it, 600 s at most\n")
        with running(ROUTES | {"/v1/models": models}, port=port):
            lines, url = address(process)
            assert lines[0] == "the engine's server is up\n"
            assert status(f"{url}/ready")[0] == 200


@pytest.mark.parametrize("options", [("--tokenizer",), ()])
def test_the_waiting_has_an_end(folder, port, options):
    options = [f"{name}={folder}" for name in options]
    found = run("serve", "--port=0", f"--engine=vllm:http://127.0.0.1:{port}", "--engine-wait=0.1", *options)
    assert found.exit_code == 1
    last = found.stderr.splitlines()[-1]
    assert last.startswith(f"tokenweir: error: vLLM at http://127.0.0.1:{port} cannot be reached")


def test_an_engine_that_gives_no_ids_ends_the_start(folder):
    def refusing(body, endless):
        raise AssertionError

    with running({"/v1/completions": refusing, "/v1/models": MODELS}) as double:
        double.fail = [401]
        found = run("serve", "--port=0", f"--engine=vllm:{double.url}", f"--tokenizer={folder}")
        told = f"tokenweir: error: vLLM at {double.url} answers 401: no and again no\n"
        assert (found.exit_code, found.stderr) == (1, told)
        with serving(double.url, f"--tokenizer={folder}", "--engine-wait=0") as process:
            _, url = address(process)
            assert status(f"{url}/ready")[0] == 200
            double.fail = [401]
            code, body = status(f"{url}/v1/completions", ASKED)
            assert (code, body["error"]["code"]) == (500, "engine_refused")
            assert body["error"]["message"].startswith(
                "the engine's server refused the request; the server's log says why"
            )
            assert double.url not in json.dumps(body)
