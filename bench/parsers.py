"""Other people's cases of model output, through our parsers: how many agree, by model.

    python bench/parsers.py [--only TEMPLATE] [--show] [--write]

Each case is a text that a model wrote and what llama.cpp's own test expects of it (`parser-cases/llama.cpp.json` of the
test data). Its prompt is rendered by the model's template and encoded with that template's control tokens in the
vocabulary; the text is encoded likewise, and decoded by `ChatDecoder` with the styles that the template shows. Texts are
compared stripped, arguments as JSON, and of an output that is cut short the names of the calls only, as that test does.

Where we differ on purpose, `parsers.toml` says why, case by case.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from shared.report import DATA, arguments, machine, publish, table

from tokenweir import ChatDecoder, ChatTemplate, Tokenizer
from tokenweir.encode.errors import TemplateError
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.chat.message import AssistantMessage
from tokenweir.templates.styles.shown import style_of_answer

CASES = DATA / "parser-cases" / "llama.cpp.json"
MESSAGES = [{"role": "user", "content": "Hello"}]
GROUPS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["on_purpose"]
ON_PURPOSE = {(name, line) for group in GROUPS for name, line in group["cases"]}
"""The templates of the cases in which we differ on purpose, and their lines in llama.cpp's test."""


@cache
def template_of(name: str) -> ChatTemplate:
    """A template of either folder of the data."""
    path = next(path for folder in ("templates", "templates-more") if (path := DATA / folder / name).exists())
    return ChatTemplate.from_file(path, special_tokens={"bos_token": "", "eos_token": ""})


@cache
def tokenizer_of(name: str) -> Tokenizer:
    """The embedded vocabulary with a template's control tokens."""
    tok = Tokenizer.default()
    new = [token for token in template_of(name).control_tokens if tok.token_to_id(token) is None]
    return tok.with_added_tokens([AddedToken(token, special=True) for token in new]) if new else tok


def prompt_ids(case: dict[str, Any]) -> list[int]:
    """The prompt that the case's output answers; only its end matters."""
    template, tok = template_of(case["template"]), tokenizer_of(case["template"])
    thinking = case.get("enable_thinking", case["thinking"])
    tools = case["tools"] or None if "tools" in template.variables else None
    variables = {"enable_thinking": thinking, "thinking": thinking, "reasoning_effort": "high" if thinking else "low"}
    # Some templates take a variable otherwise, want tools, or read them under another name.
    for given in ({"tools": tools, **variables}, {"tools": tools}, {"tools": [], "functions": tools or []}):
        with suppress(TemplateError):
            return tok.encode(template.render(MESSAGES, **given).text, add_special_tokens=False)
    return []


def read(case: dict[str, Any]) -> dict[str, Any]:
    """Parse a case by our parser."""
    template, tok = template_of(case["template"]), tokenizer_of(case["template"])
    decoder = ChatDecoder(
        tok,
        prompt_ids=prompt_ids(case),
        reasoning=template.reasoning if case["thinking"] else None,
        tool_style=style_of_answer(template.tool_style, case["tools"]),
        tools=case["tools"],
        ignore_eos=True,
    )
    deltas = decoder.feed(tok.encode(case["input"], add_special_tokens=False)) + decoder.finish()
    message = AssistantMessage.of(deltas).as_dict()
    functions = [call["function"] for call in message.get("tool_calls", ())]
    calls = [[function["name"], function["arguments"]] for function in functions]
    return {"content": message["content"], "reasoning": message.get("reasoning_content", ""), "calls": calls}


def differences(case: dict[str, Any]) -> list[str]:
    """Return the differences between a case's result and the expected one, one line each."""
    found, expected = read(case), case["expect"]
    partial = bool(case.get("is_partial"))
    unchecked = case["input"].strip() and not any(expected.values())  # that test looks at no text then
    different = []
    for field in () if unchecked else ("content", "reasoning"):
        if found[field].strip() != expected[field].strip():
            different.append(f"{field} {found[field]!r}, not {expected[field]!r}")
    if partial:
        names, wanted = [call[0] for call in found["calls"]], [call[0] for call in expected["calls"]]
        if names != wanted:
            different.append(f"calls {names}, not {wanted}")
    elif not unchecked or found["calls"]:
        ours = [[name, _json(arguments)] for name, arguments in found["calls"]]
        if ours != [[name, _json(arguments)] for name, arguments in expected["calls"]] and not unchecked:
            different.append(f"calls {found['calls']}, not {expected['calls']}")
    return different


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def main() -> int:
    options = arguments(
        __doc__,
        only=("", "only templates whose name contains NAME"),
        show=(False, "print the cases that fail"),
    )
    counts: dict[str, Counter[str]] = {}
    for case in json.loads(CASES.read_text("utf-8")):
        name = Path(case["template"]).stem
        if options.only not in name:
            continue
        different = differences(case)
        verdict = "pass" if not different else "on purpose" if (name, case["line"]) in ON_PURPOSE else "fail"
        counts.setdefault(name, Counter())[verdict] += 1
        if options.show and verdict == "fail":
            print(f"\n{name}:{case['line']} {case['input']!r}", *different, sep="\n    ")
    verdicts = ("pass", "on purpose", "fail")
    rows = [(name, *(str(count[verdict]) for verdict in verdicts)) for name, count in sorted(counts.items())]
    rows.append(("all", *(str(sum(count[verdict] for count in counts.values())) for verdict in verdicts)))
    result = table(("template", "pass", "differs on purpose", "fail"), rows)
    publish("parsers", f"{result}\n\n{machine()}", options.write)
    return 1 if any(count["fail"] for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
