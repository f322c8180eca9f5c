"""Conversations over turns: stable prefixes, results of calls, contents, and roles."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import commonprefix
from typing import Any

from tokenweir.check.model import (
    ANSWERED,
    ARGUMENTS,
    ASKED,
    CALL_IDS,
    MORE_ARGUMENTS,
    TOLD,
    Finding,
    Message,
    Model,
    assistant,
    calls,
    result,
    thinking,
    user,
)

LATER = "And then?"
SHOWN = 60
"""Characters of a text in an example."""
TURNS: dict[str, tuple[list[Message], Message]] = {
    "answers": ([user(), assistant()], user(LATER)),
    "answers with thinking": ([user(), assistant(**thinking())], user(LATER)),
    "calls": ([user(), assistant("", **calls(ARGUMENTS))], result()),
    "calls with thinking": ([user(), assistant("", **thinking(), **calls(ARGUMENTS))], result()),
}
"""Conversations that end with an answer, and the message behind it."""


def stable_prefixes(model: Model) -> Iterator[Finding]:
    """Yield for each kind of answer whether a later turn keeps the text of the earlier ones."""
    for name, (messages, later) in TURNS.items():
        check = f"later turns keep: {name}"
        tools = "calls" in name
        before, after = model.text(*messages, tools=tools), model.text(*messages, later, tools=tools, generation=True)
        if before is None or after is None or not _writes(messages[-1], before):
            yield Finding(check, "absent", "the template does not write them")
            continue
        same = len(commonprefix([before, after]))
        if same == len(before):
            yield Finding(check, "ok", "the text before a later turn is unchanged, and so is an engine's cache of it")
        else:
            shown = (repr(text[same : same + SHOWN]) for text in (before, after))
            example = "behind {} characters: {}, then {}".format(same, *shown)
            yield Finding(check, "note", "a later turn changes the text before it", example)


def _writes(answer: Message, text: str) -> bool:
    wanted = [answer["content"], answer.get("reasoning_content", "")]
    wanted += [ARGUMENTS["city"]] if "tool_calls" in answer else []
    return all(each in text for each in wanted)


def tied_results(model: Model) -> Iterator[Finding]:
    """Yield how the results of two calls of one function are tied to them, and whether they may come in any order."""
    check = "results are tied to calls"
    messages = [user(), assistant("", **calls(ARGUMENTS, MORE_ARGUMENTS))]
    results = [result("first result", 0), result("second result", 1)]
    text = model.text(*messages, *results, tools=True)
    if text is None or not all(each in text for each in ("first result", "second result", "Basel")):
        yield Finding(check, "absent", "the template does not write several calls and their results")
        return
    ids = all(text.count(call_id) > 1 for call_id in CALL_IDS)
    swapped = model.text(*messages, *reversed(results), tools=True)
    if ids:
        yield Finding(check, "ok", "by the ids of the calls")
    elif swapped == text:
        yield Finding(check, "ok", "by their order, which tidying keeps")
    else:
        yield Finding(check, "fault", "by their order, and results in another order change places")


def contents(model: Model) -> Iterator[Finding]:
    """Yield for each form of content that clients send whether the template takes it, as it is and tidied."""
    part = [{"type": "text", "text": ASKED}]
    absent = assistant("", **calls(ARGUMENTS))
    del absent["content"]
    cases: dict[str, tuple[list[Message], bool]] = {
        "None beside a call": ([user(), assistant(None, **calls(ARGUMENTS)), result()], True),
        "no content beside a call": ([user(), absent, result()], True),
        "an empty text beside a call": ([user(), assistant("", **calls(ARGUMENTS)), result()], True),
        "an empty text of a user": ([user(""), assistant(), user()], False),
        "parts of a user": ([user(part)], False),
        "parts of an assistant": ([user(), assistant(_parts(ANSWERED)), user(LATER)], False),
        "parts of a result": ([user(), assistant("", **calls(ARGUMENTS)), result(_parts(TOLD))], True),
    }
    for name, (messages, tools) in cases.items():
        plain = model.text(*messages, tools=tools, generation=True, tidy=False)
        tidied = model.text(*messages, tools=tools, generation=True)
        usual = model.text(*(_with_text(message) for message in messages), tools=tools, generation=True) or ""
        wanted = ["Bern"] if tools else []
        wanted += [TOLD] if "result" in name else [ANSWERED] if "assistant" in name else []
        check = f"content: {name}"
        if tidied is None:
            yield Finding(check, "note", "the template refuses it, tidied too")
        elif not all(each in tidied for each in wanted):
            yield Finding(check, "absent", "the template does not write such a message")
        elif any(tidied.count(form) > usual.count(form) for form in ("None", "'type'", '"type": "text"')):
            yield Finding(check, "fault", "the template writes None or a list", tidied)
        elif plain is None:
            yield Finding(check, "note", "taken by tidying alone, which chat() and the server do")
        elif plain != tidied and not all(each in plain for each in wanted):
            yield Finding(check, "note", "written whole by tidying alone, which chat() and the server do")
        else:
            yield Finding(check, "ok", "taken")


def _with_text(message: Message) -> Message:
    """Return a message with a text as its content, if its content is something else."""
    return message if isinstance(message.get("content"), str) else message | {"content": "words"}


def _parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def roles(model: Model) -> Iterator[Finding]:
    """Yield for each unusual order of roles whether the template writes all messages."""
    cases: dict[str, list[Message]] = {
        "a system message": [{"role": "system", "content": "Be brief."}, user()],
        "a developer": [{"role": "developer", "content": "Be brief."}, user()],
        "a later system message": [user(), assistant(), {"role": "system", "content": "Be brief."}, user(LATER)],
        "two users in a row": [user(), user(LATER)],
        "an assistant first": [assistant(), user()],
        "a result without a call": [user(), result(), user(LATER)],
        "an unknown role": [user(), {"role": "critic", "content": "Be brief."}, user(LATER)],
    }
    for name, messages in cases.items():
        check = f"roles: {name}"
        plain = model.text(*messages, generation=True, tidy=False)
        tidied = model.text(*messages, generation=True)
        if tidied is None:
            yield Finding(check, "note", "refused")
        elif lost := _lost(messages, tidied):
            yield Finding(check, "note", f"left out: {', '.join(map(repr, lost))}")
        elif plain is None or _lost(messages, plain):
            yield Finding(check, "note", "written by tidying alone, which chat() and the server do")
        else:
            yield Finding(check, "ok", "written")


def _lost(messages: list[Message], text: str) -> list[Any]:
    return [message["content"] for message in messages if message["content"] not in text]
