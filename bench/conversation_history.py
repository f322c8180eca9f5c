"""Cost of the next prompt of a conversation by the ids that it keeps, and the reuse by several workers.

    python bench/conversation_history.py [--turns 200] [--write]

The conversations are those of `conversations.py`, in a `Conversation` that is told the ids of each answer. "turn" is
`Conversation.prompt`, "answered" `Conversation.answered`. The engine's calls are JSON without spaces, which the template writes
otherwise. A client's requests come over one connection, or each over a connection of its own, which the system gives to any worker.
"""

from __future__ import annotations

import random
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_args

import msgspec
from conversations import PAIRS, PASSES, TOOLS, lowest, pair, timed, turn
from shared.report import arguments, machine, publish, table
from templates import code

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.prompts.cache.cached_prompt import CachedPrompt
from tokenweir.stream.prompts.cache.conversation import Conversation
from tokenweir.stream.prompts.cache.prompt_cache import History, PromptCache
from tokenweir.templates.chat_template import ChatTemplate

NOTE = 'Milliseconds of CPU time, medians of ten turns, each the lowest of five passes; "kept" ids of engines in the last prompt; "bytes" of memory a byte of the prompt.'
WORKERS_NOTE = (
    "Share of the ids of prompts that were taken over: 12 conversations of 25 turns, by workers with a cache each."
)


class Pass(NamedTuple):
    """A conversation: milliseconds of each prompt and of each answer, the last prompt, and the cache."""

    turns: list[float]
    answers: list[float]
    prompt: CachedPrompt
    cache: PromptCache


def converse(template: ChatTemplate, tokenizer: Tokenizer, history: History, turns: int, source: str) -> Pass:
    """Have a conversation with a new cache."""
    cache = PromptCache(256 << 20)
    conversation = Conversation(template, tokenizer, TOOLS, prompts=cache, history=history)
    conversation.add({"role": "system", "content": "You are a coding agent. " * 40})
    spent, answered = [], []
    for number in range(turns):
        *asked, said, result = turn(number, source)
        conversation.add(*asked)
        prompt, milliseconds = timed(conversation.prompt)
        spent.append(milliseconds)
        ids = tokenizer.encode(answer_text(said), add_special_tokens=False)
        _, milliseconds = timed(lambda ids=ids, said=said: conversation.answered(ids, said))
        answered.append(milliseconds)
        conversation.add(result)
    return Pass(spent, answered, prompt, cache)


def measure(template_name: str, tokenizer_name: str, history: History, turns: int) -> list[str]:
    """A row of the first table."""
    template, tokenizer = pair(template_name, tokenizer_name)
    source = code(400_000)
    passes = [converse(template, tokenizer, history, turns, source) for _ in range(PASSES)]
    spent, answered = lowest(one.turns for one in passes), lowest(one.answers for one in passes)
    prompt, cache = passes[-1].prompt, passes[-1].cache
    return [
        Path(template_name).name,
        history,
        f"{median(spent[5:15]):.2f}",
        f"{median(spent[-10:]):.2f}",
        f"{median(answered[-10:]):.2f}",
        str(sum(end - start for start, end, _ in prompt.kept)),
        f"{cache.held_bytes / len(prompt.text.encode()):.2f}",
    ]


def answer_text(message: dict[str, Any]) -> str:
    """Return the answer that an engine writes for a message with thinking and a call."""
    call = msgspec.json.encode(message["tool_calls"][0]["function"]).decode()
    return f"<think>\n{message['reasoning_content']}\n</think>\n\n<tool_call>\n{call}\n</tool_call><|im_end|>"


def reuse(workers: int, *, is_kept_open: bool) -> float:
    """The share of ids that several workers take over."""
    tokenizer, pick = Tokenizer.default(), random.Random(1)
    template = ChatTemplate.from_tokenizer(tokenizer)
    caches = [PromptCache() for _ in range(workers)]
    conversations = [[{"role": "system", "content": f"You are agent {i}. " * 20}] for i in range(12)]
    own = [pick.randrange(workers) for _ in conversations]
    for number in range(25):
        for i, messages in enumerate(conversations):
            messages.append({"role": "user", "content": f"Step {number} of {i}: " + "look at this line. " * 30})
            worker = own[i] if is_kept_open else pick.randrange(workers)
            caches[worker].render(messages, template=template, tokenizer=tokenizer)
            messages.append({"role": "assistant", "content": f"Line {number} is fine, go on. " * 4})
    reused = sum(cache.counts.reused_ids for cache in caches)
    return reused / (reused + sum(cache.counts.encoded_ids for cache in caches))


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__, turns=200)
    rows = [measure(*PAIRS[0], history, options.turns) for history in get_args(History)]
    header = ["template", "history", "turn 10", f"turn {options.turns}", "answered", "kept", "bytes"]
    shares = [
        [name, *(f"{reuse(workers, is_kept_open=is_open):.3f}" for workers in (1, 4))]
        for name, is_open in (("one for a client", True), ("one for a request", False))
    ]
    parts = (NOTE, table(header, rows), WORKERS_NOTE, table(["connection", "1 worker", "4 workers"], shares), machine())
    publish("conversation-history", "\n\n".join(parts), options.write)


if __name__ == "__main__":
    main()
