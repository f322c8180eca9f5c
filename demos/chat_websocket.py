"""Serve a chat over a websocket, and talk to it as a client does.

    python demos/chat_websocket.py            one question over a loopback websocket, then the end
    python demos/chat_websocket.py --stay     keep serving: open the printed address in a browser

The protocol is that of the OpenAI Responses websocket, so the `openai` client works too, with
`base_url="http://127.0.0.1:PORT/v1"` and `client.responses.connect()`.
"""

from __future__ import annotations

import asyncio
import json
import sys

from websockets.asyncio.client import connect

from tokenweir import NgramEngine, Tokenizer, serve


async def ask(address: str, question: str) -> None:
    """Send one question over a websocket; print the text of the events that carry text, and the type of every other event."""
    async with connect(address) as websocket:
        await websocket.send(json.dumps({"type": "response.create", "input": question, "max_output_tokens": 60}))
        async for message in websocket:
            event = json.loads(message)
            match event["type"]:
                case "response.output_text.delta" | "response.reasoning_text.delta":
                    print(event["delta"], end="", flush=True)
                case name:
                    print(f"\n<{name}>", end="", flush=True)
            if event["type"] in ("response.completed", "response.incomplete", "response.failed", "error"):
                print()
                return


async def main() -> None:
    async with serve(engine=NgramEngine(delay=0.01), tokenizer=Tokenizer.default(), port=0) as server:
        print(f"serving at http://127.0.0.1:{server.port}")
        await ask(f"ws://127.0.0.1:{server.port}/v1/responses", "What is a tokenizer?")
        if "--stay" in sys.argv:
            await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
