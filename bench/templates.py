"""Cost of rendering a prompt: a long conversation with tools, a short chat, and loading, beside Jinja2 and minijinja.

    python bench/templates.py [--rounds 7] [--turns 1 20 200] [--before TREE] [--write]

"Prompt" is `ChatTemplate.render`, from messages to a `Prompt` with origins, and its guarded offsets; "engine" is the native
engine alone, from objects and from a request's JSON. The peers get the same variables and give a text. Jinja2 is transformers' compiled
environment, minijinja has transformers' `tojson` as a Python filter; neither copies the messages first. MB is what one engine's
render adds to the process at its height. Each turn is a question, a call, a result of 4 kB and an answer. `--before` names
an older checkout, built in place, whose `ChatTemplate.render` is measured too.
"""

from __future__ import annotations

import gc
import json
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shared.report import DATA, ROOT, arguments, machine, publish, table, told

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.chat_template import ChatTemplate

TEMPLATES = (
    "templates/Qwen-Qwen3-0.6B",
    "templates-more/Qwen3-Coder",
    "templates/GLM-4.6",
    "templates/openai-gpt-oss-120b",
    "templates/meta-llama-Llama-3.3-70B-Instruct",
    "templates-more/deepseek-ai-DeepSeek-V3.2",
    "templates/ByteDance-Seed-OSS",
    "templates-more/google-gemma-4-31B-it-interleaved",
    "templates-more/MiniMax-M2",
    "templates/Mistral-Small-3.2-24B-Instruct-2506",
)
NOTE = 'Milliseconds of CPU time, the lowest of rounds in which all programs of a row take turns; "differs": the peer\'s text is another one. `bench/templates.py` explains the columns.'
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "from": {"type": "integer"}},
    "required": ["path"],
}
TOOLS = [
    {"type": "function", "function": {"name": "read_file", "description": "Read a file", "parameters": PARAMETERS}}
]
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the weather like in Bern and in Geneva?"},
    {"role": "assistant", "content": "Sunny in both."},
]


def code(size: int) -> str:
    """Some text like a program's, the same each time."""
    random_ = random.Random(3)
    names = ["total", "first", "result", "read", "lines", "self.cache", "path", "größe", "buffer[1]", "options"]
    forms = [
        "def {a}({b}, {c}):\n",
        "    if {a} < {b} and {c} > 2:\n",
        "        return {a}.get('{b}', \"{c}\")\n",
        "    {a} = [{b} for {c} in {a}]  # <b>{c}</b>\n",
        "\n",
    ]
    text = ""
    while len(text) < size:
        a, b, c = (random_.choice(names) for _ in range(3))
        text += random_.choice(forms).format(a=a, b=b, c=c)
    return text


def conversation(turns: int, size: int = 4000) -> list[dict[str, Any]]:
    """An agent's conversation: it reads a file each turn."""
    source = code(100_000)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    for turn in range(turns):
        at = turn * 1237 % (len(source) - size)
        arguments = {"path": f"src/f{turn}.py", "from": turn}
        call = {"id": f"c{turn:08d}", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
        messages += [
            {"role": "user", "content": f"Step {turn}: look at this please."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": source[at : at + size]},
            {"role": "assistant", "content": f"I have read it; number {turn} is fine."},
        ]
    return [*messages, {"role": "user", "content": "And now?"}]


def milliseconds(ways: dict[str, Callable[[], object]], rounds: int, least: float = 0.01) -> dict[str, float]:
    """CPU time of one call of each way, the lowest of `rounds`; a round is as many calls as take `least` seconds.

    The ways take turns, and the lowest time is the one that other users of the machine have disturbed least.
    """
    lowest = dict.fromkeys(ways, math.inf)
    gc.collect()
    for _ in range(rounds):
        for name, run in ways.items():
            calls, start = 0, time.process_time()
            while (spent := time.process_time() - start) < least:
                run()
                calls += 1
            lowest[name] = min(lowest[name], spent / calls * 1e3)
    return lowest


def ours(
    source: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None
) -> Callable[[], object] | None:
    """`ChatTemplate.render`, with the guard's offsets; None if it refuses the conversation."""
    template = ChatTemplate(source, special_tokens=SPECIAL, control_tokens=["<|im_start|>", "<|im_end|>", "[INST]"])
    try:
        template.render(messages, tools=tools)
    except TemplateError:
        return None
    return lambda: template.render(messages, tools=tools).guarded


def before(tree: Path, turns: list[int], rounds: int) -> dict[str, float | None]:
    """Times of an older checkout, by template and turns."""
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}:{ROOT / 'bench'}"}
    command = [sys.executable, __file__, "--only-ours", "--rounds", str(rounds), "--turns", *map(str, turns)]
    found: dict[str, float | None] = json.loads(subprocess.check_output(command, env=environment))
    return found


def only_ours(turns: list[int], rounds: int) -> dict[str, float | None]:
    """Times of this checkout, by template and turns; 0 turns are the short chat."""
    found: dict[str, float | None] = {}
    for name in TEMPLATES:
        for count in (0, *turns):
            source = (DATA / f"{name}.jinja").read_text("utf-8")
            way = ours(source, conversation(count) if count else CHAT, TOOLS if count else None)
            found[f"{name} {count}"] = None if way is None else milliseconds({"": way}, rounds)[""]
    return found


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> None:
    raise ValueError(message)


def minijinja_renderer(source: str) -> Callable[[dict[str, Any]], str]:
    """minijinja, set up as servers that use it have it."""
    import minijinja

    environment = minijinja.Environment(trim_blocks=True, lstrip_blocks=True, pycompat=True)
    environment.add_filter("tojson", _tojson)
    environment.add_filter("from_json", json.loads)
    environment.add_function("raise_exception", _refuse)
    environment.add_function("strftime_now", time.strftime)
    environment.add_template("chat", source)
    return lambda variables: str(environment.render_template("chat", **variables))


def jinja_renderer(source: str) -> Callable[[dict[str, Any]], str]:
    """Jinja2, compiled as transformers does, with no cache between."""
    from transformers.utils.chat_template_utils import _cached_compile_jinja_template

    compiled = _cached_compile_jinja_template(source)
    compiled.environment.filters["from_json"] = json.loads
    return lambda variables: str(compiled.render(**variables))


def peer(render: Callable[[dict[str, Any]], str], variables: dict[str, Any], text: str) -> str:
    """Remark in a peer's cell: a refusal of the conversation, or a text that differs."""
    try:
        return "" if render(variables) == text else " (differs)"
    except Exception as error:  # noqa: BLE001 - a peer may raise anything
        return f"refused: {type(error).__name__}"


def memory(run: Callable[[], object]) -> int:
    """Bytes that a call adds to this process at its height."""

    def figure(field: str) -> int:
        return int(Path("/proc/self/status").read_text().partition(f"{field}:")[2].split()[0]) << 10

    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # begins the count of the most memory anew
    resting = figure("VmRSS")
    run()
    return max(0, figure("VmHWM") - resting)


def measure(name: str, turns: int, rounds: int, old: dict[str, float | None]) -> list[str]:
    """A row of the long conversation, or with 0 turns of the short chat."""
    from tokenweir.templates._native import Template

    source = (DATA / f"{name}.jinja").read_text("utf-8")
    messages, tools = (conversation(turns), TOOLS) if turns else (CHAT, None)
    variables = {"messages": messages, "tools": tools, "add_generation_prompt": True, "documents": None, **SPECIAL}
    template = Template(source)
    body = json.dumps(variables, ensure_ascii=False).encode()
    result = template.render(variables)
    added = memory(lambda: template.render(variables))
    remarks = {"Prompt": "", "engine": "", "from JSON": ""}
    ways: dict[str, Callable[[], object]] = {
        "engine": lambda: template.render(variables),
        "from JSON": lambda: template.render(body),
    }
    if (full := ours(source, messages, tools)) is None:
        remarks["Prompt"] = "refused"
    else:
        ways["Prompt"] = full
    for which, make in (("Jinja2", jinja_renderer), ("minijinja", minijinja_renderer)):
        render = make(source)
        remarks[which] = peer(render, variables, result.text)
        if not remarks[which].startswith("refused"):
            ways[which] = lambda render=render: render(variables)
    times = milliseconds(ways, rounds)
    row = [Path(name).name, str(turns or "chat"), f"{len(result.text) / 1e3:.1f}"]
    if old:
        past = old[f"{name} {turns}"]
        row.append("refused" if past is None else f"{past:.3f}")
    row += [f"{times[each]:.3f}{remark}" if each in times else remark for each, remark in remarks.items()]
    return [*row, f"{result.steps:,}", f"{times['engine'] * 1e6 / result.steps:.1f}", f"{added / 1e6:.1f}"]


def loading(name: str, rounds: int) -> list[str]:
    """A row of loading a template."""
    from tokenweir.templates._native import Template

    source = (DATA / f"{name}.jinja").read_text("utf-8")
    ways: dict[str, Callable[[], object]] = {
        "engine": lambda: Template(source),
        "ChatTemplate": lambda: ChatTemplate(source),
        "Jinja2": lambda: jinja_renderer(source),
        "minijinja": lambda: minijinja_renderer(source),
    }
    times = milliseconds(ways, rounds)
    return [Path(name).name, f"{len(source) / 1e3:.1f}", *(f"{times[way]:.3f}" for way in ways)]


def main() -> None:
    """Measure and print."""
    options = arguments(
        __doc__,
        rounds=7,
        turns={"type": int, "nargs": "*", "default": [200]},
        before={"type": Path, "help": "an older checkout, built in place"},
        only_ours=(False, "print our times as JSON"),
    )
    if options.only_ours:
        print(json.dumps(only_ours(options.turns, options.rounds)))
        return
    old = before(options.before, options.turns, options.rounds) if options.before else {}
    chats = [(name, turns) for turns in (0, *options.turns) for name in TEMPLATES]
    rows = [told(measure(name, turns, options.rounds, old)) for name, turns in chats]
    header = [
        "template",
        "turns",
        "kB",
        *(["before"] if old else []),
        "Prompt",
        "engine",
        "from JSON",
        "Jinja2",
        "minijinja",
    ]
    tables = [table([*header, "steps", "ns a step", "MB"], rows)]
    loads = [loading(name, options.rounds) for name in TEMPLATES]
    tables.append(table(["loading a template", "kB", "engine", "ChatTemplate", "Jinja2", "minijinja"], loads))
    publish("templates", "\n\n".join((NOTE, *tables, machine())), options.write)


if __name__ == "__main__":
    main()
