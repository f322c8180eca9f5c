"""Answers of the four interfaces, whole or streamed, brought into one form that can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

Body = dict[str, Any]


@dataclass
class Choice:
    """One answer.

    Attributes:
        text: Its text.
        reasoning: Its thinking.
        calls: The name and the arguments of each call; arguments are decoded if they are JSON.
        finish: Why it ended.
        ids: Its ids; None if the interface gives none.
        logprobs: For each token its text, its logprob, and the same of the likeliest ones.

    """

    text: str = ""
    reasoning: str = ""
    calls: list[list[Any]] = field(default_factory=list)
    finish: str | None = None
    ids: list[int] | None = None
    logprobs: list[Any] = field(default_factory=list)


@dataclass
class Answer:
    """The answer to a request: its status, its choices, the prompt's ids and the usage."""

    status: int = 200
    choices: list[Choice] = field(default_factory=list)
    prompt_ids: list[int] | None = None
    usage: dict[str, int | None] = field(default_factory=dict)

    def choice(self, index: int) -> Choice:
        """Return a choice, made if it is new."""
        while len(self.choices) <= index:
            self.choices.append(Choice())
        return self.choices[index]

    def fields(self) -> dict[str, Any]:
        """Return all that is compared, by the names in which differences are told."""
        flat: dict[str, Any] = {"status": self.status, "prompt_ids": self.prompt_ids}
        flat |= {f"usage.{name}": value for name, value in self.usage.items()}
        for index, choice in enumerate(self.choices):
            place = f"[{index}]" if len(self.choices) > 1 else ""
            flat |= {name + place: value for name, value in asdict(choice).items()}
        return flat


def events(lines: Iterable[str]) -> Iterator[Body]:
    """Yield the JSON objects of a stream of server-sent events."""
    for line in lines:
        if line.startswith("data:") and (data := line[5:].strip()) != "[DONE]":
            yield json.loads(data)


def read(path: str, parts: Iterable[Body]) -> Answer:
    """Return the answer that a body, or the events of a stream, make."""
    answer = Answer()
    for part in parts:
        {"/v1/chat/completions": _chat, "/v1/completions": _text, "/v1/responses": _response, "/v1/messages": _message}[
            path
        ](answer, part)
    for choice in answer.choices:
        for call in choice.calls:
            try:
                call[1] = json.loads(call[1]) if isinstance(call[1], str) else call[1]
            except ValueError:
                pass
    return answer


def _usage(answer: Answer, usage: Body | None, prompt: str, completion: str, details: tuple[str, str]) -> None:
    if not usage:
        return
    cached = (usage.get(details[0]) or {}).get("cached_tokens")
    reasoning = (usage.get(details[1]) or {}).get("reasoning_tokens")
    answer.usage = {"prompt": usage.get(prompt), "completion": usage.get(completion)}
    answer.usage |= {"cached": cached or 0, "reasoning": reasoning or 0}


def _ids(answer: Answer, choice: Choice, part: Body) -> None:
    if part.get("token_ids"):
        choice.ids = (choice.ids or []) + part["token_ids"]
    if part.get("prompt_token_ids"):
        answer.prompt_ids = part["prompt_token_ids"]


def _chat(answer: Answer, part: Body) -> None:
    _usage(answer, part.get("usage"), *OPENAI)
    for each in part.get("choices", ()):
        choice = answer.choice(each["index"])
        message = each.get("delta") or each.get("message") or {}
        choice.text += message.get("content") or ""
        choice.reasoning += message.get("reasoning") or message.get("reasoning_content") or ""
        for place, call in enumerate(message.get("tool_calls") or ()):
            while len(choice.calls) <= call.get("index", place):
                choice.calls.append(["", ""])
            made = choice.calls[call.get("index", place)]
            made[0] += call["function"].get("name") or ""
            made[1] += call["function"].get("arguments") or ""
        choice.finish = each.get("finish_reason") or choice.finish
        for token in (each.get("logprobs") or {}).get("content") or ():
            tops = [[top["token"], _short(top["logprob"])] for top in token["top_logprobs"]]
            choice.logprobs.append([token["token"], _short(token["logprob"]), tops])
        _ids(answer, choice, {"prompt_token_ids": part.get("prompt_token_ids")} | each)


def _text(answer: Answer, part: Body) -> None:
    _usage(answer, part.get("usage"), *OPENAI)
    for each in part.get("choices", ()):
        choice = answer.choice(each["index"])
        choice.text += each["text"]
        choice.finish = each.get("finish_reason") or choice.finish
        if given := each.get("logprobs"):
            for token, logprob, tops in zip(
                given["tokens"], given["token_logprobs"], given["top_logprobs"], strict=True
            ):
                choice.logprobs.append(
                    [token, _short(logprob), {text: _short(one) for text, one in (tops or {}).items()}]
                )
        _ids(answer, choice, each)


def _response(answer: Answer, part: Body) -> None:
    choice = answer.choice(0)
    if part.get("object") != "response":
        if part["type"] == "response.output_text.delta":
            choice.text += part["delta"]
        elif part["type"] in ("response.reasoning_text.delta", "response.reasoning.delta"):
            choice.reasoning += part["delta"]
        elif part["type"] in ("response.completed", "response.incomplete", "response.failed"):
            streamed = (choice.text, choice.reasoning)
            choice.text = choice.reasoning = ""
            _response(answer, part["response"])
            if streamed != (choice.text, choice.reasoning):
                choice.text = f"deltas {streamed!r} are not the whole {(choice.text, choice.reasoning)!r}"
        return
    _usage(answer, part.get("usage"), *RESPONSES)
    choice.finish = (part.get("incomplete_details") or {}).get("reason") or part["status"]
    for item in part["output"]:
        for content in item.get("content") or ():
            if item["type"] == "message":
                choice.text += content.get("text") or ""
            elif item["type"] == "reasoning":
                choice.reasoning += content.get("text") or ""
        if item["type"] == "function_call":
            choice.calls.append([item["name"], item["arguments"]])


def _message(answer: Answer, part: Body) -> None:
    choice = answer.choice(0)
    blocks = part.get("content") or ()
    kind = part.get("type")
    if kind == "content_block_start":
        blocks = [part["content_block"]]
    elif kind == "content_block_delta":
        delta = part["delta"]
        choice.text += delta.get("text", "")
        choice.reasoning += delta.get("thinking", "")
        if "partial_json" in delta:
            made = choice.calls[-1]
            made[1] = ("" if made[1] in ({}, None) else made[1]) + delta["partial_json"]
    for block in blocks:
        choice.text += block.get("text", "")
        choice.reasoning += block.get("thinking", "")
        if block["type"] == "tool_use":
            choice.calls.append([block["name"], block["input"]])
    told = part.get("message") or part
    choice.finish = told.get("stop_reason") or (told.get("delta") or {}).get("stop_reason") or choice.finish
    if usage := told.get("usage"):
        cached = usage.get("cache_read_input_tokens") or answer.usage.get("cached") or 0
        given = usage.get("input_tokens")
        prompt = answer.usage.get("prompt") if given is None else given + (usage.get("cache_read_input_tokens") or 0)
        answer.usage = {"prompt": prompt, "completion": usage.get("output_tokens"), "cached": cached}


def _short(logprob: float | None) -> float | None:
    return None if logprob is None else round(logprob, 3)


OPENAI = ("prompt_tokens", "completion_tokens", ("prompt_tokens_details", "completion_tokens_details"))
RESPONSES = ("input_tokens", "output_tokens", ("input_tokens_details", "output_tokens_details"))
