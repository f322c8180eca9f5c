"""The examples of the pages about engines run: with the small model, llama.cpp's server, and a double of vLLM."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest
from engine_doubles import running

from tokenweir.encode.tokenizer import Tokenizer

PAGES = Path(__file__).resolve().parents[2] / "docs" / "howto"


def run(page, **replaced):
    """Run the example of a page, with the addresses and paths of this machine in place of the page's."""
    (code,) = re.findall(
        r"^```{code-block} python\n(.*?)^```$", (PAGES / page).read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    for there, here in replaced.items():
        assert there in code
        code = code.replace(there, here)
    done = eval(compile(code, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names := {"__name__": "__main__"})
    asyncio.run(done) if inspect.isawaitable(done) else None
    return names


def test_a_real_model(small_model):
    run("real-model.md")


def test_behind_llama_server(small_model):
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx = str(small_model.model_file()), 512
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    run(
        "behind-llama-server.md", **{"http://127.0.0.1:8080": server.listening_address, "model.gguf": params.model.path}
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
        run("behind-vllm.md", **{"http://127.0.0.1:8001": double.url, "path/to/model": str(folder)})
    shown = capsys.readouterr().out
    assert "TextDelta(text='A'" in shown and "Finish(reason=<FinishReason.STOP" in shown
