"""The examples of the pages about engines run: with the small model, llama.cpp's server, and a double of vLLM."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine_doubles import running
from page_examples import run

import tokenweir
from tokenweir.encode.tokenizer import Tokenizer

PAGES = Path(__file__).resolve().parents[2] / "docs" / "howto"


def test_a_real_model(small_model):
    run(PAGES / "real-model.md", "{code-block} python")


def test_behind_llama_server(small_model):
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx = str(small_model.model_file()), 512
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    run(
        PAGES / "behind-llama-server.md",
        "{code-block} python",
        **{"http://127.0.0.1:8080": server.listening_address, "model.gguf": params.model.path},
    )


def test_behind_vllm(data, capsys):
    folder = data("tokenizers/qwen3/tokenizer.json").parent
    ids = Tokenizer.from_file(folder).encode("A low dam.")

    def generate(body, endless):
        assert (body["cache_salt"], body["priority"]) == ("team-a", 1)
        for token_id in ids:
            yield {"choices": [{"index": 0, "token_ids": [token_id], "finish_reason": None}]}
        yield {"choices": [{"index": 0, "token_ids": [], "finish_reason": "stop"}]}

    with running({"/inference/v1/generate": generate}) as double:
        run(
            PAGES / "behind-vllm.md",
            "{code-block} python",
            **{"http://127.0.0.1:8001": double.url, "path/to/model": str(folder)},
        )
    shown = capsys.readouterr().out
    assert "TextDelta(text='A'" in shown and "Finish(reason=<FinishReason.STOP" in shown


@contextmanager
def serving(**options):
    """A server in a thread of its own."""
    started, ports = threading.Event(), []

    async def run():
        async with tokenweir.serve(port=0, **options) as server:
            ports.append((server, asyncio.get_running_loop()))
            started.set()
            await server.serve_forever()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert started.wait(20)
    ((server, loop),) = ports
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        loop.call_soon_threadsafe(server.close)
        thread.join()


def test_token_in_token_out(data, capsys):
    tokenizer = Tokenizer.from_file(data("tokenizers/qwen3/tokenizer.json").parent)
    ids = tokenizer.encode("<think>\nTwo and two.\n</think>\n\nIt is 4. 🙂<|im_end|>")

    def generate(body, endless):
        assert body["sampling_params"] == {"max_tokens": 200}
        assert "two and two" in tokenizer.decode(body["token_ids"])
        if not body["stream"]:
            return {"request_id": "g", "choices": [{"index": 0, "token_ids": ids, "finish_reason": "stop"}]}
        return stream(body)

    def stream(body):
        assert body["stream_options"] == {"include_usage": True}
        for start in range(0, len(ids), 2):
            choice = {"index": 0, "token_ids": ids[start : start + 2], "finish_reason": None, "logprobs": None}
            yield {"request_id": "g", "output_mode": "tokens", "choices": [choice], "usage": None}
        last = {"index": 0, "token_ids": [], "finish_reason": "stop", "logprobs": None}
        yield {"request_id": "g", "output_mode": "tokens", "choices": [last], "usage": None}
        counts = {"prompt_tokens": 9, "completion_tokens": len(ids), "total_tokens": 9 + len(ids)}
        yield {"request_id": "g", "output_mode": "tokens", "choices": [], "usage": counts}

    engine = {"my-model": tokenweir.NoEngine(4000)}
    with running({"/inference/v1/generate": generate}) as double, serving(engine=engine, tokenizer=tokenizer) as url:
        run(
            PAGES / "token-in-token-out.md",
            "{code-block} python",
            **{"http://localhost:8100": url, "http://localhost:8200": double.url},
        )
    shown = " ".join(capsys.readouterr().out.split())
    assert shown == f"thought: Two and two. said: It is 4. 🙂 streamed: It is 4. 🙂 {len(ids)}"
