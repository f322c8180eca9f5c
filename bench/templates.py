"""The cost of rendering a prompt: transformers, the same with our limits, and with the guard as well.

    python bench/templates.py [--rounds 40] [--template FILE...] [--write]

Prints a table; --write puts it into bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from shared.report import DATA, machine, publish, table
from transformers.utils.chat_template_utils import render_jinja_template

from tokenweir.templates.chat_template import ChatTemplate

NOTE = """Microseconds of CPU time a render, the median of interleaved rounds: `render_jinja_template` of transformers (which copies
the messages and aliases reasoning, as we do), ours without the guard, and ours with it. "code" has `<` and `[` in every
message, so that there is something to mark and the guard renders twice; elsewhere it has nothing to do but to see that."""
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The name of a city or a village."},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "Degrees."},
        "days": {"type": "array", "items": {"type": "integer"}, "description": "Which days."},
    },
    "required": ["city"],
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": f"Tells the {name} somewhere.", "parameters": SCHEMA},
    }
    for name in ("weather", "forecast", "traffic")
]


def conversation(turns: int, text: str) -> list[dict[str, Any]]:
    """A system message and `turns` of user and assistant, the last one the user's."""
    messages = [{"role": "system", "content": "Be brief."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{text} {turn}"})
        messages.append({"role": "assistant", "content": f"Certainly. {text}"})
    return messages[:-1]


def microseconds(run: Callable[[], object], least: float = 0.02) -> float:
    """CPU time of one call, of as many as take `least` seconds."""
    calls, start = 0, time.process_time()
    while (spent := time.process_time() - start) < least:
        run()
        calls += 1
    return spent / calls * 1e6


def measure(
    source: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, rounds: int
) -> list[float]:
    """The medians of the three ways."""
    unguarded, guarded = (
        ChatTemplate(
            source, special_tokens=SPECIAL, control_tokens=["<|im_start|>", "<|im_end|>", "[INST]"], guard=guard
        )
        for guard in (False, True)
    )

    def peer() -> object:
        return render_jinja_template([messages], tools, chat_template=source, add_generation_prompt=True, **SPECIAL)

    ways = (peer, lambda: unguarded.render(messages, tools=tools), lambda: guarded.render(messages, tools=tools))
    for way in ways:
        way()
    return [median(times) for times in zip(*([microseconds(way) for way in ways] for _ in range(rounds)), strict=True)]


def cases(more: list[Path]) -> list[tuple[str, str, list[dict[str, Any]], list[dict[str, Any]] | None]]:
    """Name, source, messages and tools of every row."""
    plain, code = "What is the weather like in Bern and in Geneva?", "if a < b and c[1]: return x"
    qwen = (DATA / "templates" / "Qwen-Qwen3-0.6B.jinja").read_text("utf-8")
    gemma = (DATA / "templates" / "google-gemma-4-31B-it.jinja").read_text("utf-8")
    rows = [
        ("Qwen3, one turn", qwen, conversation(1, plain), None),
        ("Qwen3, tools", qwen, conversation(1, plain), TOOLS),
        ("Qwen3, 100 turns", qwen, conversation(100, plain), None),
        ("Qwen3, 100 turns of code", qwen, conversation(100, code), None),
        ("Gemma 4, tools", gemma, conversation(1, plain), TOOLS),
    ]
    for path in more:
        source = path.read_text("utf-8")
        rows += [
            (f"{path.stem}, tools", source, conversation(1, plain), TOOLS),
            (f"{path.stem}, 100 turns", source, conversation(100, plain), None),
        ]
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--template", type=Path, nargs="*", default=[], help="more templates to measure")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = []
    for name, source, messages, tools in cases(options.template):
        peer, limits, guard = measure(source, messages, tools, options.rounds)
        rows.append(
            [name, *(f"{time:,.0f}" for time in (peer, limits, guard)), f"{limits / peer:.2f}", f"{guard / peer:.2f}"]
        )
        print(rows[-1], flush=True)
    header = ["template", "transformers", "with limits", "and guard", "limits / peer", "guard / peer"]
    text = f"{NOTE}\n\n{table(header, rows)}\n\n{machine()}"
    publish("templates", text, options.write)


if __name__ == "__main__":
    main()
