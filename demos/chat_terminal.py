"""Watch tokens arrive in a terminal: messages in, thinking and answer out, piece by piece.

    python demos/chat_terminal.py [QUESTION]

The engine plays a recording back, so nothing needs to be downloaded, and whatever the question is, the answer is the
same. `tokenweir chat` is the full program, which also keeps escape sequences in a model's text from the terminal.
"""

from __future__ import annotations

import sys

import anyio

from tokenweir import Finish, ReasoningDelta, ReplayEngine, TextDelta, Tokenizer, chat


async def main(question: str) -> None:
    tokenizer = Tokenizer.default()
    messages = [{"role": "user", "content": question}]
    async with chat(messages, engine=ReplayEngine(speed=10), tokenizer=tokenizer) as deltas:
        async for delta in deltas:
            match delta:
                case ReasoningDelta(text):
                    print(text, end="", flush=True, file=sys.stderr)
                case TextDelta(text):
                    print(text, end="", flush=True)
                case Finish(reason, usage=usage):
                    print(f"\n[{reason}: {usage.completion_tokens} tokens, {usage.reasoning_tokens} of them thinking]")


if __name__ == "__main__":
    anyio.run(main, " ".join(sys.argv[1:]) or "What am I looking at?")
