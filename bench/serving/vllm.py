"""vLLM's front end with and without tokenweir's plug-ins, over a worker without a model; and its render beside tokenweir's.

    scripts/bench vllm ENVIRONMENT [--requests 20] [--rounds 3] [--sizes 1000 8000 44000] [--write]

ENVIRONMENT is what scripts/vllm makes. `vllm bench serve` sends chat completions of so many random ids, four at once, and takes 32 ids of
each. The worker (`vllm_stub/`) gives an id in 10 ms to all requests in a step, so what differs is the front end. CPU time is that of
the API process, also where tokenweir's plug-ins are in it. Ways alternate in rounds, and a figure is the median of the rounds.

`/v1/chat/completions/render` is asked by one connection: `vllm launch render` beside `tokenweir serve --engine none`, each once with
texts that it has not seen. Prints the tables; --write puts them into bench/serving/RESULTS.md and docs/howto/in-vllm.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from shared.processes import cpu_seconds
from shared.report import ROOT, arguments, machine, publish, table, write_between

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "live"))  # before the `servers` of this folder

from servers import ENVIRONMENT, PLUGINS, free_port, process

RENDER = "/v1/chat/completions/render"
STUB = ("--worker-cls", "vllm_stub_worker.Worker", "--max-model-len", "65536", "--max-num-batched-tokens", "65536")
OUTPUT = 32
AT_ONCE = 4
MARGIN = 200
"""Ids of the context that the template may take."""
WAYS = ("vLLM", "with the plug-ins")


@contextmanager
def started(command: list[str], environment: dict[str, str], log: Path) -> Iterator[tuple[str, int]]:
    """Run a server at a free port; yield its address and the id of its process."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    more = {"PYTHONPATH": str(HERE / "vllm_stub"), "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"} | environment
    with process([*command, "--port", str(port)], ENVIRONMENT | more, log, url) as running:
        yield url, running.pid


def chats(environment: Path, url: str, size: int, requests: int) -> dict[str, Any]:
    """The result of `vllm bench serve`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(environment / "bin" / "vllm"), "bench", "serve", "--backend", "openai-chat", "--base-url", url]
        command += ["--endpoint", "/v1/chat/completions", "--model", "small", "--tokenizer", str(environment / "model")]
        command += ["--dataset-name", "random", "--random-input-len", str(size), "--random-output-len", str(OUTPUT)]
        command += [
            "--num-prompts",
            str(requests),
            "--max-concurrency",
            str(AT_ONCE),
            "--ignore-eos",
            "--seed",
            str(time.time_ns() % 10**9),
        ]
        command += ["--disable-tqdm", "--save-result", "--result-dir", folder, "--result-filename", "result.json"]
        done = subprocess.run(
            command, env=os.environ | ENVIRONMENT | {"VLLM_PLUGINS": ""}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        return json.loads(Path(folder, "result.json").read_text())


def front_ends(environment: Path, folder: Path, options: argparse.Namespace) -> str:
    """The table of chat completions."""
    base = [
        str(environment / "bin" / "vllm"),
        "serve",
        str(environment / "model"),
        "--served-model-name",
        "small",
        "--host",
        "127.0.0.1",
        *STUB,
    ]
    found: dict[tuple[int, str], list[tuple[float, ...]]] = defaultdict(list)
    with ExitStack() as stack:
        servers = {}
        for way, plugins in zip(WAYS, ("", PLUGINS), strict=True):
            log = folder / f"{way.replace(' ', '-')}.log"
            servers[way] = stack.enter_context(started(base, {"VLLM_PLUGINS": plugins}, log))
        for size in options.sizes:
            for _ in range(options.rounds):
                for way, (url, pid) in servers.items():
                    before = cpu_seconds(pid)
                    result = chats(environment, url, size, options.requests)
                    cpu = (cpu_seconds(pid) - before) / options.requests
                    assert result["completed"] == options.requests, result
                    found[size, way].append((result["request_throughput"], result["median_ttft_ms"], cpu * 1000))
    rows = []
    for size in options.sizes:
        plain, ours = ([median(one) for one in zip(*found[size, way], strict=True)] for way in WAYS)
        pairs = [f"{a:,.{digits}f} / {b:,.{digits}f}" for a, b, digits in zip(plain, ours, (2, 0, 1), strict=True)]
        rows.append([f"{size:,}", *pairs, f"{plain[2] / ours[2]:.1f}"])
    caption = f"Chat completions of {OUTPUT} ids, {AT_ONCE} at once, by `vllm bench serve`: vLLM / vLLM with the three plug-ins"
    return f"{caption}; {medians(options)}:\n\n" + table(
        [
            "ids of the prompt",
            "requests a second",
            "median time to the first token, ms",
            "CPU of the API process a request, ms",
            "CPU, times less",
        ],
        rows,
    )


def texts(environment: Path, size: int, rounds: int, count: int) -> list[list[str]]:
    """For each round, so many texts of about `size` ids, all different, of words of the vocabulary."""
    from tokenweir import Tokenizer

    tokenizer = Tokenizer.from_file(environment / "model")
    words = [
        token
        for each in range(1000, 20000)
        if (token := tokenizer.decode([each])).startswith(" ") and token[1:].isalpha()
    ]
    draw = random.Random(size)
    return [["".join(draw.choices(words, k=size)) for _ in range(count)] for _ in range(rounds)]


def renders(environment: Path, folder: Path, options: argparse.Namespace) -> str:
    """The table of renders."""
    model = str(environment / "model")
    theirs = [
        str(environment / "bin" / "vllm"),
        "launch",
        "render",
        model,
        "--served-model-name",
        "small",
        "--host",
        "127.0.0.1",
        "--max-model-len",
        "65536",
    ]
    ours = [
        str(environment / "bin" / "tokenweir"),
        "serve",
        "--engine",
        "none:65536",
        "--tokenizer",
        model,
        "--model",
        "small",
    ]
    rows = []
    with ExitStack() as stack:
        servers = [
            stack.enter_context(started(each, {"VLLM_PLUGINS": ""}, folder / f"render-{place}.log"))
            for place, each in enumerate((theirs, ours))
        ]
        for size in options.sizes:
            costs: list[list[float]] = [[], []]
            for new in texts(environment, size, options.rounds, options.requests):
                ids = []
                for place, (url, pid) in enumerate(servers):
                    with httpx.Client(base_url=url, timeout=120) as client:
                        before = cpu_seconds(pid)
                        for text in new:
                            body = {"model": "small", "messages": [{"role": "user", "content": text}], "max_tokens": 1}
                            reply = client.post(RENDER, json=body)
                            reply.raise_for_status()
                        costs[place].append((cpu_seconds(pid) - before) / len(new))
                    ids.append(len(reply.json()["token_ids"]))
            a, b = (median(each) for each in costs)
            rows.append([f"{ids[0]:,}", f"{1 / a:,.0f}", f"{1 / b:,.0f}", f"{a / b:.1f}"])
    caption = f"Renders of a chat, requests a second of CPU; {medians(options)}:"
    return f"{caption}\n\n" + table(["ids", "`vllm launch render`", "`tokenweir serve --engine none`", "times"], rows)


def medians(options: argparse.Namespace) -> str:
    """Describe how a figure was found."""
    return (
        f"medians of {options.rounds} rounds of {options.requests}"
        if options.rounds > 1
        else f"one round of {options.requests}"
    )


def show(rendered: str, chatted: str, options: argparse.Namespace) -> None:
    """Print the tables, or write them into both pages."""
    text = f"{machine()}; vLLM 0.32.0 for CPUs.\n\n{rendered}\n\n{chatted}"
    publish("vllm", text, options.write)
    if options.write:
        write_between(ROOT / "docs" / "howto" / "in-vllm.md", "vllm", text)


def main() -> None:
    """Measure, and print or write."""
    options = arguments(__doc__, ("environment", {"type": Path}), requests=20, rounds=3, sizes=[1000, 8000, 44000])
    environment, folder = options.environment.resolve(), Path(tempfile.mkdtemp(prefix="tokenweir-vllm-"))
    show(renders(environment, folder, options), front_ends(environment, folder, options), options)


if __name__ == "__main__":
    main()
