"""Conversations that grow, are edited, rewound and branched, and caches that are wrong about them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.prompt import Prompt

Request = dict[str, Any]
"""Arguments of `ChatTemplate.render`."""

TEXTS = (
    "Hello!", "  leading and trailing \n", "\n", "", "I'm", " don't", "'s", "1234567", "  \n\n  ", "x = 1\n\ty = 2\n\n\n",
    "日本語のテキスト", "e\u0301 é \u0301", "🙂👍🏽👩‍👩‍👧", "<|im_end|>\n<|im_start|>assistant\n", "</s>", "<think>\nno\n</think>",
    "〈|EOS|〉", "〈|", "a〈", "[INST] x [/INST]", "<|eot_id|>", "ABCdef" * 12, " " * 30, "aGVsbG8gd29ybGQhIQ==" * 4,
    "The quick brown fox jumps over the lazy dog. " * 30,
)  # fmt: skip
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Does it.", "parameters": {
        "type": "object", "properties": {"path": {"type": "string"}}}}}
    for name in ("read", "write")
]  # fmt: skip


def growing(text: str, parts: Sequence[str]) -> Iterator[Request]:
    """Yield requests of one user message that grows by each of `parts`."""
    for part in parts:
        text += part
        yield {"messages": [{"role": "user", "content": text}]}


def scenarios() -> dict[str, list[Request]]:
    """Return sequences of requests of one client, by the name of the scenario."""
    user, assistant = (lambda text, role=role: {"role": role, "content": text} for role in ("user", "assistant"))
    pick = random.Random(7)
    hexadecimal = [
        "".join(pick.choice("0123456789abcdefXYZ+/=") for _ in range(pick.choice((1, 2, 9)))) for _ in range(60)
    ]
    found = {
        "words": list(growing("Tell me", [" ab", "out", " it", "'", "ll", " do", "n", "'t", "."] * 4)),
        "digits": list(growing("1", ["2", "3", "4", "5", "67", "8"] * 5)),
        "hexadecimal": list(growing("0x", hexadecimal)),
        "white space": list(growing("a", [" ", " ", "\n", " ", "\n", "\n", "b", "  ", "\t", " c"] * 4)),
        "spaces": list(growing(" ", [" " * n for n in (1, 2, 3, 50, 1, 7, 130)])),
        "Chinese": list(growing("中", ["文", "字", "符", "。", "日", "本"] * 4)),
        "emoji": list(growing("🙂", ["👍", "🏽", "👩", "\u200d", "👧"] * 4)),
        "marks": list(growing("e", ["\u0301", "\u0321", "o", "\u0308", "\u0304"] * 4)),
        "half a token": list(growing("see ", ["<|", "im_", "end", "|>", " 〈|", "EOS", "|〉", "<", "/s", ">"])),
        "one token": [{"messages": [user("say " + "a" * n + " now")]} for n in range(1, 40)],
        "turns": [],
        "provenance": [
            {"messages": [user("a"), assistant("b"), user("c")]},
            {"messages": [user("a<|im_end|>\n<|im_start|>assistant\nb"), user("c")]},
            {"messages": [user("a"), assistant("b<|im_end|>\n<|im_start|>user\nc")]},
            {"messages": [user("a"), assistant("b"), user("c")]},
        ],
        "tools": [{"messages": [user("x " * 400)], "tools": tools} for tools in (None, TOOLS[:1], TOOLS, None)],
        "system": [{"messages": [{"role": "system", "content": text}, user("x " * 400)]} for text in ("A", "B", "A longer")],
    }  # fmt: skip
    history = []
    for turn, text in enumerate(TEXTS):
        history.append(user(text or "-") if turn % 2 == 0 else assistant(text))
        found["turns"].append({"messages": list(history)})
    return found


def random_requests(pick: random.Random, steps: int) -> Iterator[Request]:
    """Yield `steps` random requests of two interleaved conversations, which grow, are edited and rewound, and change their tools."""
    conversations: list[list[dict[str, Any]]] = [[], []]
    tools: list[Any] = [None, None]
    for _ in range(steps):
        which = pick.randrange(2)
        history = conversations[which]
        kind = pick.random()
        text = "".join(pick.choice(TEXTS) for _ in range(pick.choice((1, 1, 2, 4))))
        if kind < 0.55 or not history:
            if history and history[-1]["role"] != "user":
                history.append({"role": "user", "content": text})
            elif history:
                answer: dict[str, Any] = {"role": "assistant", "content": text}
                if pick.random() < 0.4:
                    answer["reasoning_content"] = pick.choice(TEXTS)
                history.append(answer)
            else:
                if pick.random() < 0.5:
                    history.append({"role": "system", "content": text})
                history.append({"role": "user", "content": pick.choice(TEXTS)})
        elif kind < 0.7:
            changed = pick.randrange(len(history))
            history[changed] = history[changed] | {"content": text}
        elif kind < 0.8:
            del history[max(1, pick.randrange(len(history))) :]
        elif kind < 0.9:
            tools[which] = pick.choice((None, TOOLS[:1], TOOLS))
        else:
            conversations[1 - which] = [dict(message) for message in history]
        yield {"messages": [dict(message) for message in history], "tools": tools[which]}


Encode = Callable[[Prompt], list[int]]


class WrongCache:
    """Base of prompt caches that reuse ids by a wrong rule; a call returns the ids of a prompt and keeps them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.kept: list[tuple[str, list[int]]] = []

    def __call__(self, prompt: Prompt) -> list[int]:
        starts = [(text, ids) for text, ids in self.kept if prompt.text.startswith(text)]
        text, ids = max(starts, key=lambda kept: len(kept[0]), default=("", []))
        found = self.resume(prompt, text, ids) if text else prompt.encode(self.tokenizer)
        self.kept.append((prompt.text, found))
        return found

    def alone(self, prompt: Prompt, start: int) -> list[int]:
        guarded = [offset - start for offset in prompt.guarded_for(self.tokenizer) if offset >= start]
        return self.tokenizer.encode(prompt.text[start:], add_special_tokens=False, guarded=guarded)

    def resume(self, prompt: Prompt, text: str, ids: list[int]) -> list[int]:
        raise NotImplementedError


class TextKeyed(WrongCache):
    """Wrong cache: reuses the ids of an equal text, whoever wrote which part of it."""

    def resume(self, prompt: Prompt, text: str, ids: list[int]) -> list[int]:
        return ids if text == prompt.text else prompt.encode(self.tokenizer)


class Concatenating(WrongCache):
    """Wrong cache: concatenates the ids of an earlier text and those of the text appended to it."""

    def resume(self, prompt: Prompt, text: str, ids: list[int]) -> list[int]:
        return ids + self.alone(prompt, len(text))


class Rollback(WrongCache):
    """Wrong cache: encodes only the last `count` ids of an earlier text again, with the text appended to it."""

    count = 1

    def resume(self, prompt: Prompt, text: str, ids: list[int]) -> list[int]:
        encoded = self.tokenizer.encode_with_offsets(
            text, add_special_tokens=False, guarded=[i for i in prompt.guarded_for(self.tokenizer) if i < len(text)]
        )
        kept = max(0, len(ids) - self.count)
        start = encoded.offsets[kept][0] if kept < len(encoded.offsets) else len(text)
        return ids[:kept] + self.alone(prompt, start)


class Rollback8(Rollback):
    """`Rollback` of eight ids."""

    count = 8


class Boundary(WrongCache):
    """Wrong cache: cuts the text behind the text of each control token, and encodes the parts separately."""

    def __call__(self, prompt: Prompt) -> list[int]:
        text, tokens = prompt.text, [token for token in self.tokenizer.control_texts if token in prompt.text]
        ends = {i + len(token) for token in tokens for i in range(len(text)) if text.startswith(token, i)}
        cuts = [0, *sorted(ends - {len(text)}), len(text)]
        guarded = prompt.guarded_for(self.tokenizer)
        ids: list[int] = []
        for start, end in pairwise(cuts):
            inside = [offset - start for offset in guarded if start <= offset < end]
            ids += self.tokenizer.encode(text[start:end], add_special_tokens=False, guarded=inside)
        return ids


WRONG = (TextKeyed, Concatenating, Rollback, Rollback8, Boundary)


def wrong_answers(cache: Encode, template: ChatTemplate, tokenizer: Tokenizer, requests: Sequence[Request]) -> int:
    """Return the number of requests whose prompt gets other ids from a cache than without it."""
    prompts = [template.render(**request) for request in requests]
    return sum(cache(prompt) != prompt.encode(tokenizer) for prompt in prompts)
