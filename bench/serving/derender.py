"""Cost of derendering a chunk of a stream, at the beginning of an answer and after 100,000 ids.

    scripts/bench derender [--ids 100000] [--chunk 8] [--write]

An answer of qwen3's tokenizer with thinking, text and tool calls, in chunks of 8 ids, each chunk one
`POST /v1/chat/completions/derender` through the whole ASGI application, without a socket: routing, JSON, the decoder made
from the state that the client carries, the answer and the next state. Times are CPU time of the process, the client's part
left out, and the least of three passes for each chunk, which leaves out what others do on the machine. Beside it the way without a state: a new decoder that is given all ids so far with every chunk, as vLLM's
derender does by its documentation where a parser is configured. Prints a table; --write puts it into bench/serving/RESULTS.md.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from shared.report import DATA, arguments, machine, publish, table

import tokenweir
from tokenweir import ChatDecoder, ChatTemplate, Tokenizer

MESSAGES = [{"role": "user", "content": "Look into every file of the project, and tell me what it is for."}]
TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "The text of a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}},
            "required": ["path"],
        },
    },
}
REQUEST = {"messages": MESSAGES, "tools": [TOOL], "stop": ["<<<never>>>"], "logprobs": True, "stream": True}
PASSES = 3
PLACES = (100, 1000, 10_000, 100_000)


class Nobody:
    """An engine that is never asked."""

    def generate(self, prompt_ids: Any, sampling: Any) -> Any:
        """Do nothing."""
        raise NotImplementedError


def answer(tokenizer: Tokenizer, count: int) -> list[int]:
    """An answer of so many ids: three parts of ten are thinking, then text and calls take turns."""
    thought = "Let me see what is in `encode/core`, and then, step by step, in every other folder. 让我看看。 "
    ids = tokenizer.encode("<think>\n" + thought * 1000)[: count * 3 // 10] + tokenizer.encode("</think>\n\n")
    parts = 0
    while len(ids) < count:
        call = {"name": "read_file", "arguments": {"path": f"encode/core/part_{parts}.h", "lines": list(range(40))}}
        said = f"Part {parts} cuts text at added tokens; I look at the next one now. 🙂\n"
        ids += tokenizer.encode(f"{said}<tool_call>\n{json.dumps(call)}\n</tool_call>\n")
        parts += 1
    return ids[:count]


def bodies(ids: list[int], prompt: list[int], size: int, states: list[Any]) -> Iterator[bytes]:
    """Yield the bodies of the calls; the caller appends each answer's state to `states`."""
    for place in range(0, len(ids), size):
        piece = ids[place : place + size]
        rows = [{"token_id": token_id, "logprob": -0.5, "rank": 1, "top_logprobs": []} for token_id in piece]
        choice = {"index": 0, "token_ids": piece, "finish_reason": None, "logprobs": {"content": rows}}
        body: dict[str, Any] = {
            "stream": True,
            "generate_chunk": {"request_id": "r", "choices": [choice]},
            "stream_state": states[-1] if states else None,
            "chat_request": REQUEST,
        }
        if not states:
            body["prompt_token_ids"] = prompt
        yield json.dumps(body).encode()


async def post(app: Any, path: str, data: bytes) -> bytes:
    """Make one call; return the body of the answer."""
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": [(b"host", b"localhost"), (b"content-type", b"application/json")], "root_path": ""}
    scope |= {"client": ("127.0.0.1", 1), "http_version": "1.1", "scheme": "http"}
    parts: list[bytes] = []
    asked = iter([{"type": "http.request", "body": data}])

    async def receive() -> Any:
        for message in asked:
            return message
        return await asyncio.Event().wait()  # the client stays

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200, message
        parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return b"".join(parts)


def figures(costs: np.ndarray[Any, Any]) -> list[str]:
    """Mean, median, 99th percentile and worst, in microseconds."""
    return [f"{value:.0f}" for value in (costs.mean(), np.median(costs), np.percentile(costs, 99), costs.max())]


def measure(count: int, size: int) -> str:
    """The table."""
    folder = DATA / "tokenizers" / "qwen3"
    tokenizer = Tokenizer.from_file(folder)
    template = ChatTemplate.from_tokenizer(tokenizer)
    app = tokenweir.asgi_app(engine=Nobody(), tokenizer=tokenizer, template=template)
    prompt = list(template.render(MESSAGES, tools=[TOOL]).encode(tokenizer))
    ids = answer(tokenizer, count)
    costs: list[int] = []
    states: list[Any] = []
    asked: list[int] = []
    carried: list[int] = []

    async def run() -> None:
        for data in bodies(ids, prompt, size, states):
            before = time.process_time_ns()
            given = await post(app, "/v1/chat/completions/derender", data)
            costs.append(time.process_time_ns() - before)
            state = json.loads(given)["stream_state"]
            states[:] = [state]
            asked.append(len(data))
            carried.append(len(state["state"]))

    passes = []
    for _ in range(PASSES):
        for kept in (states, costs, asked, carried):
            kept.clear()
        gc.collect()
        gc.disable()
        asyncio.run(run())
        gc.enable()
        passes.append(np.array(costs) / 1000)
    taken = np.min(passes, axis=0)
    rows = []
    bounds = [0, *(place // size for place in PLACES if place < count), len(taken)]
    for start, stop in pairwise(bounds):
        replayed = replay(tokenizer, prompt, ids, stop * size, size)
        rows.append(
            [
                f"ids {start * size:,} to {min(stop * size, count):,}",
                *figures(taken[start:stop]),
                f"{np.mean(asked[start:stop]):.0f}",
                f"{max(carried[start:stop])}",
                f"{replayed:.0f}",
            ]
        )
    rows.append(["all", *figures(taken), f"{np.mean(asked):.0f}", f"{max(carried)}", ""])
    header = [
        "µs of CPU a chunk",
        "mean",
        "median",
        "p99",
        "worst",
        "body, bytes",
        "largest state",
        "replayed, at the end",
    ]
    note = f"{machine()}; {count:,} ids in chunks of {size}, {len(taken):,} calls."
    return f"{note}\n\n{table(header, rows)}"


def replay(tokenizer: Tokenizer, prompt: list[int], ids: list[int], place: int, size: int) -> float:
    """Microseconds for the chunk at a place without a state: a new decoder takes all chunks so far."""
    options: dict[str, Any] = {"tool_style": "auto", "tools": [TOOL], "stop": REQUEST["stop"], "alignment": True}
    best = float("inf")
    for _ in range(3):
        before = time.process_time_ns()
        decoder = ChatDecoder(tokenizer, prompt_ids=prompt, **options)
        for start in range(0, place, size):
            decoder.feed(ids[start : start + size])
        best = min(best, time.process_time_ns() - before)
    return best / 1000


def main() -> None:
    """Measure, and print or write."""
    options = arguments(__doc__, ids=100_000, chunk=8)
    text = measure(options.ids, options.chunk)
    publish("derender", text, options.write)


if __name__ == "__main__":
    main()
