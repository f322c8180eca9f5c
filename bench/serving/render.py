"""Render and derender: requests a second of CPU, in the whole server and without sockets.

    scripts/bench render [--seconds 3] [--write] [--vllm http://127.0.0.1:8100 PID]

Requests for a chat completion with one short message, with tools, and with the 20 turns of an agent, for qwen3's tokenizer. Each is one
`POST` through the ASGI application: JSON, template, guard, ids. `--vllm` asks a server of `vllm launch render` the same over HTTP and
counts the CPU time of that process, so its figure has a socket in it. Prints a table; --write puts it into bench/serving/RESULTS.md.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from serving.derender import TOOL, Nobody, post
from shared.processes import cpu_seconds
from shared.report import DATA, arguments, machine, publish, table

import tokenweir
from tokenweir import Tokenizer

RENDER, DERENDER = "/v1/chat/completions/render", "/v1/chat/completions/derender"
TEXT = "Look into every file of the project, and tell me in a few words what it is for. "


KIND = {"content-type": "application/json"}


def conversations() -> dict[str, dict[str, Any]]:
    """The requests by their names."""
    user = {"role": "user", "content": TEXT}
    turns = [user]
    for place in range(20):
        call = {
            "id": f"c{place}",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path": "a.py"}'},
        }
        turns += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{place}", "content": TEXT * 50},
        ]
    return {
        "a short message": {"model": "my-model", "messages": [user]},
        "a short message and 10 tools": {"model": "my-model", "messages": [user], "tools": [TOOL] * 10},
        "20 turns with tools, 82,000 characters": {"model": "my-model", "messages": turns, "tools": [TOOL]},
    }


def rate(call: Callable[[], Any], clock: Callable[[], float], seconds: float) -> float:
    """Calls a second of CPU; calls go on for so many seconds."""
    call()
    count, begin, end = 0, clock(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()
        count += 1
    return count / (clock() - begin)


def measure(seconds: float, url: str | None, pid: int) -> str:
    """The table."""
    import httpx

    tokenizer = Tokenizer.from_file(DATA / "tokenizers" / "qwen3")
    app = tokenweir.asgi_app(engine={"my-model": Nobody()}, tokenizer=tokenizer)
    cold = tokenweir.asgi_app(engine={"my-model": Nobody()}, tokenizer=tokenizer, prompt_cache=False)
    rows = []
    with httpx.Client(timeout=60) as http, asyncio.Runner() as runner:
        for name, request in conversations().items():
            data = json.dumps(request).encode()
            rendered = json.loads(runner.run(post(app, RENDER, data)))
            ids = tokenizer.encode("<think>\nHm.\n</think>\n\n" + TEXT * 10)
            choice = {"index": 0, "token_ids": ids, "finish_reason": "stop"}
            body = {"model": "my-model", "generate_response": {"request_id": "r", "choices": [choice]}}
            body |= {"prompt_token_ids": rendered["token_ids"], "chat_request": request}
            back = json.dumps(body).encode()
            figures = [
                rate(lambda data=data: runner.run(post(cold, RENDER, data)), time.process_time, seconds),
                rate(lambda data=data: runner.run(post(app, RENDER, data)), time.process_time, seconds),
                rate(lambda back=back: runner.run(post(app, DERENDER, back)), time.process_time, seconds),
            ]
            if url is not None:
                named = json.dumps(request | {"model": http.get(f"{url}/v1/models").json()["data"][0]["id"]}).encode()
                theirs = http.post(url + RENDER, content=named, headers=KIND).json()
                assert theirs["token_ids"] == rendered["token_ids"], name
                figures.append(
                    rate(
                        lambda named=named: http.post(url + RENDER, content=named, headers=KIND),
                        lambda: cpu_seconds(pid),
                        seconds,
                    )
                )
            rows.append([name, f"{len(rendered['token_ids']):,}", *(f"{figure:,.0f}" for figure in figures)])
    header = ["requests a second of CPU", "ids", "render", "render again", "derender of 200 ids"]
    if url is not None:
        header.append("vLLM's render, over HTTP")
    return f"{machine()}; one process.\n\n{table(header, rows)}"


def main() -> None:
    """Measure, and print or write."""
    options = arguments(__doc__, seconds=3.0, vllm={"nargs": 2, "metavar": ("URL", "PID"), "default": (None, "0")})
    text = measure(options.seconds, options.vllm[0], int(options.vllm[1]))
    publish("render", text, options.write)


if __name__ == "__main__":
    main()
