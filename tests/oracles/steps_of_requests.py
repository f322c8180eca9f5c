"""Print, as JSON, the status and the steps of each request of `request_shapes` at a size, and at four times the size.

Those of responses are sent over HTTP and over a websocket, where an error counts as status 400.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from counted_steps import Steps, count_steps
from request_shapes import MANY, RESPONSES, SHAPES, TAGGED

SIZE = 100
"""Of the shapes. Bodies of both sizes are long ones, whose values are counted besides."""
TIMES = 4


SOCKET = {
    "type": "websocket",
    "path": RESPONSES,
    "headers": [(b"host", b"127.0.0.1")],
    "query_string": b"",
    "subprotocols": [],
}
ENDS = {"response.completed": 200, "response.incomplete": 200, "error": 400, "response.failed": 500}
Send = Callable[[str, Any], Awaitable[int]]


def over_http(app: Any) -> Send:
    """Return a function that posts a body and returns the status of the answer."""
    import httpx

    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=60)

    async def send(path: str, body: Any) -> int:
        return (await client.post(path, json=body)).status_code

    return send


def over_socket(app: Any) -> Send:
    """Return a function that sends a body as an event over a websocket of its own and returns the status of its end."""

    async def send(path: str, body: Any) -> int:
        events = [
            {"type": "websocket.connect"},
            {"type": "websocket.receive", "text": json.dumps({"type": "response.create"} | body)},
        ]
        status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def receive() -> Any:
            if events:
                return events.pop(0)
            await status
            return {"type": "websocket.disconnect", "code": 1000}

        async def collect(message: Any) -> None:
            kind = json.loads(message.get("text") or "{}").get("type")
            if kind in ENDS and not status.done():
                status.set_result(ENDS[kind])

        await app(SOCKET, receive, collect)
        return status.result()

    return send


async def measured(steps: Steps) -> dict[str, list[int]]:
    """Return the status, and the steps at each size, of each shape."""
    import tokenweir
    from tokenweir.stream.chat.plan import own_template

    tokenizer = tokenweir.Tokenizer.default()
    ids = tokenizer.encode("ok<|im_end|>")

    class Quick:
        async def generate(self, prompt_ids: Any, sampling: Any) -> AsyncIterator[list[int]]:
            yield ids

    limits = tokenweir.Limits(max_items=1 << 14)
    own = own_template(tokenizer)
    template = tokenweir.ChatTemplate(own.source + TAGGED, special_tokens=own.special_tokens)
    app = tokenweir.asgi_app(
        engine={"quick": Quick()}, tokenizer=tokenizer, template=template, prompt_cache=False, limits=limits
    )
    ways = {"HTTP": over_http(app), "websocket": over_socket(app)}
    told = {}
    for name, shape in SHAPES.items():
        for way, send in ways.items():
            path = shape(1)[0]
            if way == "websocket" and path != RESPONSES:
                continue
            counts, status = [], 0
            least = 16 * SIZE if name in MANY else SIZE
            for size in (least, least, TIMES * least):  # the first one compiles and fills what is kept
                _, body = shape(size)
                gc.collect()
                before = steps.count
                status = await send(path, body)
                counts.append(steps.count - before)
            told[f"{name}, by {way}"] = [status, *counts[1:]]
    return told


if __name__ == "__main__":
    counter = count_steps("tokenweir.stream.", "tokenweir.templates.", "tokenweir.encode.")
    sys.stdout.write(json.dumps(asyncio.run(measured(counter))))
