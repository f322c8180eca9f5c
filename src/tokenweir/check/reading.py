"""Answers that a template writes as history, and what `ChatDecoder` reads of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tokenweir.check.model import (
    ARGUMENTS,
    MORE_ARGUMENTS,
    TOOL,
    Finding,
    Message,
    Model,
    assistant,
    calls,
    thinking,
    user,
)
from tokenweir.encode.errors import TemplateError
from tokenweir.stream.chat.message import AssistantMessage
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.shown import style_of_answer

CASES: dict[str, Message] = {
    "content": assistant(),
    "thinking": assistant(**thinking()),
    "a call": assistant("", **calls(ARGUMENTS)),
    "a call behind content": assistant(**calls(ARGUMENTS)),
    "a call behind thinking": assistant("", **thinking(), **calls(ARGUMENTS)),
    "two calls": assistant("", **calls(ARGUMENTS, MORE_ARGUMENTS)),
}
"""Answers, by what comes back of them."""


def reads_back(model: Model) -> Iterator[Finding]:
    """Yield for each kind of answer whether the decoder reads what the template has written."""
    for name, message in CASES.items():
        check = f"reads back: {name}"
        tools = "tool_calls" in message
        try:
            before = model.prompt(user(), tools=tools, generation=True).encode(model.tokenizer)
            prompt = model.prompt(user(), message, tools=tools)
        except TemplateError as error:
            yield Finding(check, "note", "the template refuses such an answer", str(error))
            continue
        missing = [text for text in _texts(message) if text not in prompt.text]
        if missing:
            yield Finding(check, "absent", f"the template does not write {' and '.join(map(repr, missing))}")
            continue
        finding = _compared(model, check, message, before, prompt.encode(model.tokenizer))
        plain = model.text(user(), message, tools=tools, tidy=False)
        if finding.verdict == "fault" and (plain is None or any(text not in plain for text in _texts(message))):
            finding = Finding(check, "note", "written by tidying alone, as several messages")
        yield finding


def _compared(model: Model, check: str, message: Message, before: list[int], ids: list[int]) -> Finding:
    """Read an answer behind what it shares with the opening of an answer, else behind the whole opening.

    Histories often lack a part of the opening, such as a tag that opens the thinking.

    Args:
        model: The template, with its tokenizer.
        check: The name of the check.
        message: The answer.
        before: The prompt that ends with the opening.
        ids: The conversation with the answer.

    """
    expected, tools = _parts(message), "tool_calls" in message
    pairs = zip(before, ids, strict=False)
    shared = next((i for i, (left, right) in enumerate(pairs) if left != right), min(len(before), len(ids)))
    answer = ids[shared:]
    repeated = next((n for n in range(len(answer), 0, -1) if before[-n:] == answer[:n]), 0)
    reads = [_read(model, ids[:shared], answer, tools), _read(model, before, answer[repeated:], tools)]
    if expected in reads:
        return Finding(check, "ok", "as the template wrote it")
    example = "written {}, read {}".format(*(json.dumps(each, ensure_ascii=False) for each in (expected, reads[0])))
    moved = {"thinking": expected["content"], "content": ""} | {"calls": expected["calls"]}
    if not expected["thinking"] and moved in reads:
        return Finding(check, "note", "the template writes the content as thinking", example)
    return Finding(check, "fault", "the decoder reads something else", example)


def _texts(message: Message) -> list[str]:
    """Return the texts that a render of the message must have."""
    found = [message["content"], message.get("reasoning_content", "")]
    found += [call["function"]["arguments"]["city"] for call in message.get("tool_calls", ())]
    return [text for text in found if text]


def _parts(message: Message) -> dict[str, Any]:
    made = [[call["function"]["name"], call["function"]["arguments"]] for call in message.get("tool_calls", ())]
    return {"thinking": message.get("reasoning_content", ""), "content": message["content"], "calls": made}


def _read(model: Model, prompt_ids: list[int], ids: list[int], tools: bool) -> dict[str, Any]:
    """Decode an answer; return its parts, without white space around texts."""
    template, declared = model.template, [TOOL] if tools else None
    decoder = ChatDecoder(
        model.tokenizer,
        prompt_ids=prompt_ids,
        reasoning="auto" if template.reasoning is None else style_of(template.reasoning),
        tool_style=style_of_answer(template.tool_style, declared),
        tools=declared,
    )
    found = _parts(AssistantMessage.of([*decoder.feed(ids), *decoder.finish()]).as_dict())
    for call in found["calls"]:
        with suppress(ValueError):
            call[1] = json.loads(call[1])
    return found | {name: found[name].strip() for name in ("thinking", "content")}
